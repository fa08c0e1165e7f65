"""The comparison of one recording: windows, lead-in, joining of clips, slopes and static crops."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from phase_rppg.datasets import face_crops
from phase_rppg.datasets.prepare import Settings, stretched
from phase_rppg.errors import ArgumentError, InputError, RecordingError
from phase_rppg.evaluate import clip_evaluation, conventions, predictors
from phase_rppg.evaluate.clip_evaluation import Prediction
from phase_rppg.evaluate.conventions import OURS, RELEASE, TOOLBOX, Convention
from phase_rppg.types import Frame

FPS = 30.0


class Fixed:
    """A predictor with a known answer."""

    def __init__(self, values: np.ndarray, **more: bool) -> None:
        self.prediction = Prediction(values, **more)

    def predict(self, pixels: np.ndarray, fps: float, convention: Convention) -> Prediction:
        return self.prediction


def sine(hz: float, frames: int, phase: float = 0.0) -> np.ndarray:
    return np.sin(2 * np.pi * hz * np.arange(frames) / FPS + phase)


def evaluated(predictor: Fixed, reference: np.ndarray, rules: Convention, window_s: float = 10.0) -> Any:
    pixels = np.zeros((len(reference), 2, 2, 3), np.uint8)
    clip = (pixels, reference, np.ones(len(reference), bool), FPS)
    return clip_evaluation.evaluate_clip(clip, predictor, rules, window_s)


@pytest.mark.parametrize(
    ("rules", "starts"), [(OURS, [1.0, 11.0]), (TOOLBOX, [0.0, 10.0, 20.0]), (RELEASE, [0.0, 10.0, 20.0])]
)
def test_windows_follow_the_convention(rules: Convention, starts: list[float]) -> None:
    """Ours drops the first second and a part of a window; the others compare every frame."""
    found = evaluated(Fixed(sine(1.25, 690, 1)), sine(1.2, 690), rules)
    assert found.whole.bpm - found.whole.truth_bpm == pytest.approx(3, abs=2)
    assert [start_s for start_s, _ in found.windows] == pytest.approx(starts)


@pytest.mark.parametrize("rules", conventions.ALL.values(), ids=list(conventions.ALL))
def test_a_waveform_without_a_peak_gets_the_largest_bin(rules: Convention) -> None:
    found = evaluated(Fixed(np.zeros(330)), sine(1.2, 330), rules)
    assert abs(found.whole.bpm - found.whole.truth_bpm) > 10
    assert found.whole.bpm >= 60 * rules.band_hz[0] - 2


def test_a_reference_without_a_rate_has_no_comparison() -> None:
    for rules in conventions.ALL.values():
        assert evaluated(Fixed(sine(1.2, 400)), np.ones(400), rules).whole is None


def test_a_slope_is_integrated_after_joining_and_so_is_the_label() -> None:
    wave = sine(1.3, 600) + 0.3 * sine(2.6, 600)
    steps = np.append(np.diff(wave), 0.0)
    found = evaluated(Fixed(steps, slope=True), wave, TOOLBOX)
    assert found.whole.macc == pytest.approx(1)
    assert found.whole.bpm == found.whole.truth_bpm
    np.testing.assert_allclose(np.corrcoef(found.wave.values[:-1], wave[1:])[0, 1], 1, atol=1e-9)


def test_dropped_frames_of_a_network_are_dropped_from_the_label_and_those_of_chrom_are_not() -> None:
    wave = sine(1.3, 600)
    network = evaluated(Fixed(wave[:512]), wave, TOOLBOX)
    assert len(network.reference.values) == 512
    method = evaluated(Fixed(wave[:512], ends_early=True), wave, TOOLBOX)
    assert (len(method.wave.values), len(method.reference.values)) == (512, 600)
    with pytest.raises(ArgumentError, match="equal length"):
        evaluated(Fixed(wave[:512], ends_early=True), wave, OURS)


def test_mixed_conventions_are_refused_by_name() -> None:
    assert conventions.single_convention([("a", "ours"), ("b", "ours")]) == "ours"
    assert conventions.single_convention([]) == ""
    with pytest.raises(InputError, match=r"mixed conventions in one table: a \(ours\), c \(toolbox\)"):
        conventions.single_convention([("a", "ours"), ("b", "ours"), ("c", "toolbox")])


def test_every_rule_of_a_convention_is_in_its_description() -> None:
    texts = [one.describe() for one in conventions.ALL.values()]
    assert len(set(texts)) == len(texts)
    assert "labels by index, 30 fps" in TOOLBOX.describe()
    assert TOOLBOX.facts()["band_hz"] == [0.6, 3.3]


# ---- joining of clips --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frames", "length", "delay"), [(300, 128, 0), (300, 128, 6), (262, 128, 6), (90, 128, 6)]
)
def test_clips_cover_consecutive_frames_once(frames: int, length: int, delay: int) -> None:
    pixels = np.arange(frames)[:, None, None, None] * np.ones((1, 1, 1, 3), int)
    parts = [part[:, 0, 0, 0] for part in predictors.clips(pixels, length, delay)]
    joined = np.concatenate([part[: len(part) - delay] for part in parts])
    np.testing.assert_array_equal(joined, np.arange(len(joined)))
    assert frames - delay - len(joined) < min(length, frames - delay)
    assert all(part[-1] == part[0] + len(part) - 1 for part in parts)


class Counter:
    """A streaming network whose output is the number of frames since its start."""

    name, fps, size, delay_frames = "counter", FPS, 2, 3

    def __init__(self) -> None:
        self.seen = 0

    def fresh(self) -> Counter:
        return Counter()

    def step(self, crops: np.ndarray) -> np.ndarray:
        first, self.seen = self.seen, self.seen + len(crops)
        return np.arange(first, self.seen, dtype=float)


def test_a_stream_runs_through_and_clips_start_afresh() -> None:
    pixels = np.zeros((300, 4, 4, 3), np.uint8)
    predictor = predictors.StreamPredictor(Counter())
    np.testing.assert_array_equal(predictor.predict(pixels, FPS, OURS).values, np.arange(3, 300))
    clip = np.arange(3, 131)
    np.testing.assert_array_equal(
        predictor.predict(pixels, FPS, TOOLBOX).values, np.concatenate([clip, clip])
    )
    with pytest.raises(InputError, match="25 fps, but the network needs 30 fps"):
        predictor.predict(pixels, 25.0, OURS)


# ---- crop and labels ---------------------------------------------------------------------------------------


class Film:
    """Frames with irregular timestamps."""

    def __init__(self, frames: int) -> None:
        self.count = frames

    def frames(self) -> Iterator[Frame]:
        for number in range(self.count):
            yield Frame(np.full((60, 80, 3), number, np.uint8), number**1.1 / 30)


def detector(found_from: int, box: tuple[float, float, float, float] = (30, 20, 16, 20)) -> Any:
    def detect(rgb: np.ndarray) -> list[Any]:
        return [SimpleNamespace(box=box)] if rgb[0, 0, 0] >= found_from else []

    return SimpleNamespace(detect=detect)


def test_the_static_crop_is_the_square_of_the_first_face_enlarged() -> None:
    # Side 20 around (38, 30), enlarged to 30 around it.
    assert face_crops.static_box((30, 20, 16, 20), (60, 80, 3)) == (23, 15, 30, 30)
    # At a border the start is cut and the length is not, as rPPG-Toolbox does; the frame cuts the end.
    assert face_crops.static_box((0, 0, 20, 20), (60, 80, 3)) == (0, 0, 30, 30)
    assert face_crops.static_box((60, 40, 20, 20), (60, 80, 3)) == (55, 35, 25, 25)
    crops = list(face_crops.static_crops(Film(50), 8, "film", detector(5)))
    assert {crop.box for crop in crops} == {(23, 15, 30, 30)}
    assert [round(float(crop.picture.mean())) for crop in crops] == list(
        range(50)
    )  # also those before the face


def test_without_a_face_at_the_start_the_recording_is_excluded_by_name() -> None:
    with pytest.raises(RecordingError, match=r"film.*no face in the first 1 s"):
        list(face_crops.static_crops(Film(200), 8, "film", detector(150)))


def test_labels_by_index_take_every_frame_once_and_stretch_the_reference() -> None:
    crops = face_crops.static_crops(Film(10), 4, "film", detector(0))
    frames = list(face_crops.index_crops(crops, FPS))
    assert [frame.t_s for frame in frames] == pytest.approx(np.arange(10) / FPS)
    assert [int(frame.picture[0, 0, 0]) for frame in frames] == list(range(10))
    values, known = stretched(np.array([0.0, 1.0, 2.0]), 5)
    np.testing.assert_allclose(values, [0, 0.5, 1, 1.5, 2])
    assert known.all()


def test_the_face_of_the_first_frame_is_that_of_the_haar_cascade(monkeypatch: pytest.MonkeyPatch) -> None:
    """YuNet is asked only if the cascade finds nothing, and the cascade sees no later frame."""
    seen: list[int] = []

    def cascade(rgb: np.ndarray) -> list[tuple[float, float, float, float]]:
        seen.append(int(rgb[0, 0, 0]))
        return [(0, 0, 4, 4), (30, 20, 20, 20)]

    monkeypatch.setattr(face_crops.haar_cascade, "detect", cascade)
    boxes = {crop.box for crop in face_crops.static_crops(Film(5), 8, "film", detector(0, (0, 0, 9, 9)))}
    assert boxes == {(25, 15, 30, 30)}
    monkeypatch.setattr(face_crops.haar_cascade, "detect", lambda rgb: cascade(rgb)[:0])
    boxes = {crop.box for crop in face_crops.static_crops(Film(5), 8, "film", detector(2))}
    assert boxes == {(23, 15, 30, 30)}
    assert seen == [0, 0]


def test_a_static_crop_has_the_size_of_the_models_input() -> None:
    """rPPG-Toolbox reduces a frame once; a size in between would round the pixels twice."""
    method, stream = predictors.MethodPredictor("pos"), predictors.StreamPredictor(Counter())
    assert [clip_evaluation.crop_px(TOOLBOX, one) for one in (method, stream)] == [72, Counter.size]
    assert [clip_evaluation.crop_px(OURS, one) for one in (method, stream)] == [128, 128]
    assert clip_evaluation.crop_px(OURS, method, 36) == 36
    assert clip_evaluation.preparation(TOOLBOX, 72).size == 72


def test_new_settings_keep_the_keys_of_old_entries() -> None:
    assert Settings().key_facts() == {"size": 128, "fps": 30.0, "min_coverage": 0.5}
    assert clip_evaluation.preparation(TOOLBOX).key_facts()["crop"] == "haar"
    assert clip_evaluation.preparation(TOOLBOX) == clip_evaluation.preparation(RELEASE)
    for wrong in ({"crop": "none"}, {"labels": "time"}):
        with pytest.raises(ArgumentError):
            Settings(**wrong)  # type: ignore[arg-type]
