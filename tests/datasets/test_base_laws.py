"""Laws that every dataset reader relies on: clocks, names, files, and refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from phase_rppg.datasets import base
from phase_rppg.datasets.base import CompleteVideo, Found, Reference, RetimedVideo
from phase_rppg.errors import DatasetLayoutError, InputError, RecordingError, VideoError
from phase_rppg.types import Frame

PICTURE = np.zeros((2, 2, 3), np.uint8)


@dataclass(frozen=True)
class Source:
    """Frames at 30 per second, with an optional error at the end."""

    count: int
    broken: bool = False

    def frames(self) -> Iterator[Frame]:
        for index in range(self.count):
            yield Frame(PICTURE, index / 30)
        if self.broken:
            raise VideoError(Path("x.avi"), "ends too early")


def test_retimed_frames_have_the_given_times() -> None:
    times_s = np.array([0.0, 0.1, 0.5])
    assert [frame.t_s for frame in RetimedVideo(Source(3), times_s, "x").frames()] == times_s.tolist()
    assert len(list(RetimedVideo(Source(2), times_s, "x").frames())) == 2
    with pytest.raises(RecordingError, match="more frames than the 3 known timestamps"):
        list(RetimedVideo(Source(4), times_s, "x").frames())


def test_a_broken_video_is_named_by_its_recording() -> None:
    assert len(list(CompleteVideo(Source(3), "anna").frames())) == 3
    with pytest.raises(RecordingError, match=r"anna.*ends too early"):
        list(CompleteVideo(Source(3, broken=True), "anna").frames())


# ---- the clock of the reference ----------------------------------------------------------------------------


def test_the_reference_keeps_its_rate_its_start_and_its_values() -> None:
    t_s = 4.0 + np.arange(300) / 60
    wave = base.to_waveform("x", Reference(t_s, np.sin(t_s)))
    assert wave.fps == pytest.approx(60)
    assert wave.start_s == pytest.approx(4.0)
    assert wave.valid.all()
    np.testing.assert_allclose(wave.values, np.sin(4.0 + np.arange(len(wave.values)) / 60), atol=1e-6)
    assert len(wave.values) == 300


def test_pauses_do_not_count_for_the_rate() -> None:
    t_s = np.concatenate([np.arange(0, 3, 1 / 60), np.arange(4, 7, 1 / 60)])
    wave = base.to_waveform("x", Reference(t_s, np.sin(t_s)))
    assert wave.fps == pytest.approx(60, rel=1e-6)
    inside = (wave.t_s > 3.01) & (wave.t_s < 3.99)
    assert not wave.valid[inside].any()
    assert wave.valid[~inside].mean() > 0.98


@pytest.mark.parametrize(("gap_s", "bridged"), [(0.45, True), (0.55, False)])
def test_pauses_up_to_half_a_second_are_bridged(gap_s: float, bridged: bool) -> None:
    t_s = np.concatenate([np.arange(181) / 60, 3 + gap_s + np.arange(180) / 60])
    wave = base.to_waveform("x", Reference(t_s, np.sin(t_s)))
    assert wave.valid[(wave.t_s > 3.05) & (wave.t_s < 3 + gap_s - 0.05)].all() == bridged


@pytest.mark.parametrize(("duration_s", "enough"), [(1.9, False), (2.1, True)])
def test_two_seconds_of_reference_are_needed(duration_s: float, enough: bool) -> None:
    t_s = np.arange(round(duration_s * 100) + 1) / 100
    if enough:
        assert base.to_waveform("x", Reference(t_s, np.sin(9 * t_s))).valid.all()
    else:
        with pytest.raises(RecordingError, match="shorter than 2 s"):
            base.to_waveform("x", Reference(t_s, np.sin(9 * t_s)))


@pytest.mark.parametrize(("rate_hz", "enough"), [(7.0, False), (8.0, True), (9.0, True)])
def test_eight_samples_per_second_are_needed(rate_hz: float, enough: bool) -> None:
    t_s = np.arange(80) / rate_hz
    if enough:
        assert base.to_waveform("x", Reference(t_s, np.sin(9 * t_s))).fps == pytest.approx(rate_hz)
    else:
        with pytest.raises(RecordingError, match=r"7\.0 samples per second"):
            base.to_waveform("x", Reference(t_s, np.sin(9 * t_s)))


@pytest.mark.parametrize("which", ["t_s", "values"])
def test_a_single_nan_is_refused(which: str) -> None:
    t_s, values = np.arange(300) / 60, np.sin(np.arange(300))
    {"t_s": t_s, "values": values}[which][5] = np.nan
    with pytest.raises(RecordingError, match="NaN or infinity"):
        base.to_waveform("x", Reference(t_s, values))


def test_a_single_sample_is_too_short_and_the_step_back_is_named() -> None:
    with pytest.raises(RecordingError, match="shorter"):
        base.to_waveform("x", Reference(np.zeros(1), np.zeros(1)))
    with pytest.raises(RecordingError, match=r"decrease at sample 2 \(0\.500 s\)"):
        base.to_waveform("x", Reference(np.array([0.0, 1.0, 0.5, 2.0]), np.arange(4.0)))


def test_two_samples_are_long_enough_and_too_few_per_second() -> None:
    with pytest.raises(RecordingError, match=r"0\.3 samples per second"):
        base.to_waveform("x", Reference(np.array([0.0, 3.0]), np.array([0.0, 1.0])))


def test_samples_that_share_a_time_become_their_mean() -> None:
    t_s, values = base.merge_repeated_times(
        np.array([0.0, 1.0, 1.0, 1.0, 2.0]), np.array([5.0, 1.0, 2.0, 6.0, 7.0])
    )
    assert t_s.tolist() == [0.0, 1.0, 2.0]
    assert values.tolist() == [5.0, 3.0, 7.0]
    untouched = np.array([0.0, 1.0])
    assert base.merge_repeated_times(untouched, untouched)[0] is untouched


# ---- names and files ---------------------------------------------------------------------------------------


def test_numbers_in_names_are_compared_as_numbers() -> None:
    names = ["subject10", "subject9", "Subject1", "a", "10", "9"]
    assert sorted(names, key=base.natural_key) == ["9", "10", "a", "Subject1", "subject9", "subject10"]


def test_files_and_folders_are_listed_in_natural_order_without_hidden_ones(tmp_path: Path) -> None:
    for name in ("v10.AVI", "v9.avi", ".hidden.avi", "notes.txt"):
        (tmp_path / name).touch()
    for name in ("f10", "f9", ".git", "folder.avi"):
        (tmp_path / name).mkdir()
    assert [p.name for p in base.files(tmp_path, (".avi",))] == ["v9.avi", "v10.AVI"]
    assert [p.name for p in base.files(tmp_path, (".TXT", ".avi"))] == ["notes.txt", "v9.avi", "v10.AVI"]
    assert [p.name for p in base.subfolders(tmp_path)] == ["f9", "f10", "folder.avi"]
    assert base.listing(tmp_path, 10) == ["f10/", "f9/", "folder.avi/", "notes.txt", "v10.AVI", "v9.avi"]
    assert base.listing(tmp_path, 6) == base.listing(tmp_path, 10)
    assert base.listing(tmp_path, 2) == ["f10/", "f9/", "… 6 in total"]


def test_a_table_is_two_dimensional_and_a_malformed_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("1 2 3\n")
    assert base.read_table("x", path).tolist() == [[1, 2, 3]]
    path.write_text("1,2\n3,4\n")
    assert base.read_table("x", path, ",").tolist() == [[1, 2], [3, 4]]
    path.write_text(" \n")
    with pytest.raises(RecordingError, match="empty"):
        base.read_table("x", path)
    path.write_text("one two")
    with pytest.raises(RecordingError, match="not a table"):
        base.read_table("x", path)


@pytest.mark.parametrize(("count", "more"), [(1, False), (3, False), (4, True), (6, True)])
def test_the_first_three_problems_are_named_and_the_others_counted(count: int, more: bool) -> None:
    problems = [RecordingError(f"r{i}", "bad") for i in range(count)]
    text = str(base.no_usable_recording("root", problems))
    assert f"{count} excluded" in text
    assert [f"r{i}" in text for i in range(count)] == [i < 3 for i in range(count)]
    assert (f"and {count - 3} more" in text) == more


# ---- reading a whole data set ------------------------------------------------------------------------------


def reader(**functions: object) -> ModuleType:
    """A data set whose recordings have ten seconds of reference."""
    t_s = np.arange(600) / 60
    usual = {
        "NAME": "made",
        "LAYOUT": "anything",
        "read_reference": lambda found: Reference(t_s, np.sin(9 * t_s)),
        "open_video": lambda found: Source(3),
    }
    return SimpleNamespace(**{**usual, **functions})  # type: ignore[return-value]


def found_in(folder: Path, name: str = "r1", subject: str = "s1") -> Found:
    (folder / f"{name}.avi").touch()
    (folder / f"{name}.txt").touch()
    return Found(subject, name, folder / f"{name}.avi", folder / f"{name}.txt", {"light": "day"})


def raising(error: Exception) -> object:
    def function(found: Found) -> None:
        raise error

    return function


def test_a_recording_carries_its_name_and_all_conditions(tmp_path: Path) -> None:
    found = found_in(tmp_path)
    recording = base.read(reader(), found)
    assert (recording.dataset, recording.subject, recording.name) == ("made", "s1", "r1")
    assert recording.conditions == {"light": "day"}
    more = base.read(reader(read_conditions=lambda found: {"motion": "none", "light": "dark"}), found)
    assert more.conditions == {"light": "dark", "motion": "none"}


@pytest.mark.parametrize("which", ["video", "reference"])
def test_a_missing_file_is_named(tmp_path: Path, which: str) -> None:
    found = found_in(tmp_path)
    getattr(found, which).unlink()
    with pytest.raises(RecordingError, match=f"r1: the {which} is missing"):
        base.read(reader(), found)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (RecordingError("r1", "plain"), "plain"),
        (VideoError(Path("r1.avi"), "has no picture"), "the video cannot be used: has no picture"),
        (ValueError("seven"), "cannot be read: seven"),
        (KeyError("key"), "cannot be read: 'key'"),
        (OSError("disk"), "cannot be read: disk"),
        (InputError("other"), "cannot be read: other"),
    ],
)
def test_every_error_of_a_file_becomes_a_recording_error(tmp_path: Path, error: Exception, says: str) -> None:
    for function in ("open_video", "read_reference", "read_conditions"):
        with pytest.raises(RecordingError, match=says):
            base.read(reader(**{function: raising(error)}), found_in(tmp_path))


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    functions: dict[str, object] = {}
    monkeypatch.setattr(base.registry, "load", lambda *_: reader(**functions))
    return functions


def test_recordings_are_in_natural_order_of_subject_and_name(
    tmp_path: Path, registered: dict[str, object]
) -> None:
    made = [found_in(tmp_path, name, subject) for name, subject in (("a", "s10"), ("z", "s9"), ("b", "s10"))]
    registered["find"] = lambda root: list(made)
    assert [found.name for found in base.find("made", tmp_path)] == ["z", "a", "b"]
    assert [recording.name for recording in base.load("made", tmp_path)] == ["z", "a", "b"]


def test_missing_and_empty_folders_are_refused(tmp_path: Path, registered: dict[str, object]) -> None:
    registered["find"] = lambda root: []
    with pytest.raises(DatasetLayoutError, match="no such folder"):
        base.find("made", tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(DatasetLayoutError, match="a file"):
        base.find("made", tmp_path / "file")
    with pytest.raises(DatasetLayoutError, match="anything"):
        base.find("made", tmp_path)
    twice = found_in(tmp_path)
    registered["find"] = lambda root: [twice, twice]
    with pytest.raises(DatasetLayoutError, match="r1 in more than one place"):
        base.find("made", tmp_path)


def test_problems_are_reported_and_other_recordings_are_kept(
    tmp_path: Path, registered: dict[str, object]
) -> None:
    good, bad = found_in(tmp_path), found_in(tmp_path, "r2")
    bad.reference.unlink()
    registered["find"] = lambda root: [good, bad]
    survey = base.survey("made", tmp_path)
    assert [r.name for r in survey.recordings] == ["r1"]
    assert [str(p).split(":")[0] for p in survey.problems] == ["r2"]
    reported: list[RecordingError] = []
    assert len(base.load("made", tmp_path, on_problem=reported.append)) == 1
    assert len(reported) == 1
    good.video.unlink()
    with pytest.raises(InputError, match="no usable recording, 2 excluded"):
        base.load("made", tmp_path)
