"""A session measures drawn faces: the right rate, for the right face, at the right time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from drawing import Actor, Film, clock, still
from phase_rppg.errors import ArgumentError, UnknownNameError
from phase_rppg.face.detector import Detector
from phase_rppg.measurement.offline import measure
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import Event, FaceEvent, WavePiece, WindowResult
from phase_rppg.session.session import Session
from phase_rppg.types import ByteArray, Estimate, FloatArray, Frame, NoReading, Reason

UNGATED = SessionConfig(gated=False)
SMALL = {"height": 160, "width": 200}
GREEN = np.array([0.3, 1.0, 0.6])


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector()


@pytest.fixture(scope="module")
def portrait_frames() -> list[Frame]:
    """12 s of a face at 72 bpm."""
    return list(Film((Actor(still(100, 80), width=80),), clock(12), **SMALL).frames())


@dataclass(frozen=True)
class Held:
    """Frames from memory."""

    kept: list[Frame]

    def frames(self) -> Iterator[Frame]:
        return iter(self.kept)


def run(session: Session, frames: list[Frame]) -> list[Event]:
    return [event for frame in frames for event in session.push(frame)] + session.finish()


def windows(events: list[Event]) -> list[WindowResult]:
    return [event for event in events if isinstance(event, WindowResult)]


def rates(events: list[Event]) -> list[float]:
    return [w.reading.bpm for w in windows(events) if isinstance(w.reading, Estimate)]


def test_a_drawn_pulse_is_measured(detector: Detector, portrait_frames: list[Frame]) -> None:
    events = run(Session(UNGATED, detector), portrait_frames)
    assert [(w.start_s, w.end_s) for w in windows(events)] == [(0, 10), (1, 11), (2, 12)]
    np.testing.assert_allclose(rates(events), 72, atol=0.5)
    quality = windows(events)[0].quality
    assert quality.coverage == 1
    assert quality.fps == pytest.approx(30, abs=0.2)
    assert quality.amplitude == pytest.approx(0.01, rel=0.3)


def test_the_pieces_of_the_wave_join_and_rise_with_the_blood_volume(
    detector: Detector, portrait_frames: list[Frame]
) -> None:
    result = measure(Held(portrait_frames), UNGATED, detector=detector)
    (face,) = result.faces
    assert face.wave.valid.all()
    assert len(face.wave.values) == 360
    assert np.corrcoef(face.wave.values, np.sin(2 * np.pi * 1.2 * face.wave.t_s))[0, 1] > 0.9
    assert np.diff(face.beats_s) == pytest.approx(60 / 72, abs=0.08)
    assert isinstance(face.summary, Estimate)
    assert face.summary.bpm == pytest.approx(72, abs=0.5)
    assert result.duration_s == pytest.approx(12, abs=0.01)
    assert result.fps == pytest.approx(30, abs=0.1)
    assert result.warnings == ()


def test_live_and_offline_give_the_same_numbers(detector: Detector, portrait_frames: list[Frame]) -> None:
    session = Session(UNGATED, detector)
    live: list[Event] = []
    for frame in portrait_frames:
        live += session.push(Frame(frame.rgb.copy(), frame.t_s))
    live += session.finish()
    (face,) = measure(Held(portrait_frames), UNGATED, detector=detector).faces
    assert list(face.windows) == windows(live)
    wave = np.concatenate([e.wave.values for e in live if isinstance(e, WavePiece)])
    assert np.array_equal(face.wave.values, wave.astype(np.float32))


def test_later_frames_do_not_change_earlier_windows(detector: Detector, portrait_frames: list[Frame]) -> None:
    short = windows(run(Session(UNGATED, detector), portrait_frames[:315]))
    assert short == windows(run(Session(UNGATED, detector), portrait_frames))[: len(short)]


def test_the_context_of_a_window_helps_to_find_its_rate(detector: Detector) -> None:
    """A pulse at 72 bpm, disturbed for six seconds by green light of another frequency."""
    frames = list(Film((Actor(still(100, 80), width=80),), clock(22), **SMALL).frames())
    for frame in frames[:180]:
        frame.rgb[:] = np.clip(frame.rgb * (1 + 0.015 * np.sin(2 * np.pi * 1.85 * frame.t_s) * GREEN), 0, 255)
    at_once = run(Session(UNGATED, detector), frames)
    session = Session(replace(UNGATED, context_s=10.0), detector)
    early = [event for frame in frames[:595] for event in session.push(frame)]
    assert not windows(early)  # the first window ends at 10 s and waits for ten more seconds
    late = early + [event for frame in frames[595:] for event in session.push(frame)] + session.finish()
    assert [w.end_s for w in windows(late)] == [w.end_s for w in windows(at_once)]
    assert abs(rates(at_once)[0] - 72) > 10
    np.testing.assert_allclose(rates(late), 72, atol=3)
    waves = [
        np.concatenate([e.wave.values for e in each if isinstance(e, WavePiece)]) for each in (at_once, late)
    ]
    assert np.array_equal(*waves)


def test_windows_that_wait_for_context_are_reported_when_the_face_ends(detector: Detector) -> None:
    """The events are those of a session without context, in the same order."""
    film = Film((Actor(lambda t: (100, 80) if t < 12.5 else None, width=80),), clock(34), **SMALL)
    frames = list(film.frames())
    at_once = run(Session(UNGATED, detector), frames)
    late = run(Session(replace(UNGATED, context_s=10.0), detector), frames)
    kinds = [e.kind for e in late if isinstance(e, FaceEvent)]
    assert kinds == [e.kind for e in at_once if isinstance(e, FaceEvent)]
    assert len(windows(at_once)) > 3
    assert [w.end_s for w in windows(late)] == [w.end_s for w in windows(at_once)]


def test_a_video_of_one_window_is_read_as_without_context(
    detector: Detector, portrait_frames: list[Frame]
) -> None:
    ten = portrait_frames[:300]
    around = replace(UNGATED, context_s=10.0)
    assert windows(run(Session(around, detector), ten)) == windows(run(Session(UNGATED, detector), ten))


@pytest.mark.parametrize("bpm", [50.0, 110.0])
def test_irregular_timestamps_do_not_change_the_rate(detector: Detector, bpm: float) -> None:
    steps = np.random.default_rng(1).uniform(0.02, 0.06, 260)
    film = Film((Actor(still(100, 80), 80, bpm),), tuple(100 + np.cumsum(steps)), **SMALL)
    found = rates(run(Session(UNGATED, detector), list(film.frames())))
    assert found
    np.testing.assert_allclose(found, bpm, atol=1)


def test_two_people_have_two_rates(detector: Detector) -> None:
    people = (Actor(still(80, 90), 90, 60.0), Actor(still(240, 90), 90, 90.0))
    film = Film(people, clock(10.5, 15), 180, 320)
    result = measure(film, UNGATED, detector=detector)
    found = {round(face.summary.bpm / 30) * 30 for face in result.faces if isinstance(face.summary, Estimate)}
    assert found == {60, 90}
    only = measure(film, replace(UNGATED, faces="largest"), detector=detector)
    assert len(only.faces) == 1


def test_a_face_that_leaves_and_returns_keeps_its_id(detector: Detector) -> None:
    def place(t: float) -> tuple[float, float] | None:
        return None if 6 <= t < 9 else (100, 80)

    film = Film((Actor(place, 80),), clock(15, 15), **SMALL)
    events = run(Session(SessionConfig(), detector), list(film.frames()))
    kinds = [(e.kind, e.face) for e in events if isinstance(e, FaceEvent)]
    assert kinds == [("appeared", 0), ("lost", 0), ("returned", 0)]
    assert {w.face for w in windows(events)} == {0}
    during = next(w for w in windows(events) if (w.start_s, w.end_s) == (2, 12))
    assert during.quality.coverage == pytest.approx(0.7, abs=0.08)
    assert isinstance(during.reading, NoReading)
    assert during.reading.reason is Reason.FACE_LOST
    wave = [e.wave for e in events if isinstance(e, WavePiece)]
    unseen_s = sum(int((~w.valid).sum()) for w in wave) / 30
    assert unseen_s == pytest.approx(3, abs=0.7)


def test_crossing_faces_are_never_spliced(detector: Detector) -> None:
    people = (
        Actor(lambda t: (60 + 40 * t, 90), 80, 60.0),
        Actor(lambda t: (260 - 40 * t, 92), 80, 100.0, skin=(150.0, 105.0, 85.0)),
    )
    session = Session(UNGATED, detector)
    events = run(session, list(Film(people, clock(5, 15), 180, 320).frames()))
    before = {e.face for e in events if isinstance(e, FaceEvent) and e.kind == "appeared" and e.t_s < 1.5}
    after = {e.face for e in events if isinstance(e, FaceEvent) and e.kind == "appeared" and e.t_s >= 2}
    ended = {e.face for e in events if isinstance(e, FaceEvent) and e.kind in ("ended", "lost")}
    assert len(before) == 2
    assert before <= ended
    assert after.isdisjoint(before)


def test_a_video_without_a_face_has_that_reason(detector: Detector) -> None:
    result = measure(Film((), clock(2, 10), **SMALL), detector=detector)
    assert result.faces == ()
    assert result.reason is Reason.NO_FACE


@pytest.mark.parametrize("count", [0, 1])
def test_almost_no_frames_are_too_short(detector: Detector, portrait_frames: list[Frame], count: int) -> None:
    result = measure(Held(portrait_frames[:count]), detector=detector)
    assert result.faces == ()
    assert result.reason is Reason.TOO_SHORT


@pytest.mark.parametrize(
    ("reason", "film"),
    [
        (Reason.TOO_SHORT, Film((Actor(still(100, 80), 80),), clock(2), **SMALL)),
        (Reason.LOW_FPS, Film((Actor(still(100, 80), 80),), clock(11, 7), **SMALL)),
        (Reason.NO_COLOUR, Film((Actor(still(100, 80), 80),), clock(10.1, 15), grey=True, **SMALL)),
        (Reason.TOO_DARK, Film((Actor(still(100, 80), 80),), clock(10.1, 15), light=lambda t: 0.09, **SMALL)),
    ],
    ids=["short", "slow", "grey", "dark"],
)
def test_unsuitable_videos_get_their_reason(detector: Detector, reason: Reason, film: Film) -> None:
    eager = Detector(min_score=0.4) if reason is Reason.TOO_DARK else detector
    (face,) = measure(film, detector=eager).faces
    assert isinstance(face.summary, NoReading)
    assert face.summary.reason is reason


def test_frames_that_go_back_in_time_are_skipped(detector: Detector, portrait_frames: list[Frame]) -> None:
    disturbed = [f for frame in portrait_frames for f in (frame, Frame(frame.rgb, frame.t_s - 0.5))]
    result = measure(Held(disturbed), UNGATED, detector=detector)
    assert (
        result.faces[0].windows == measure(Held(portrait_frames), UNGATED, detector=detector).faces[0].windows
    )
    assert any("360 frames" in warning for warning in result.warnings)


def test_a_new_frame_size_or_a_very_long_pause_begins_a_new_segment(
    detector: Detector, portrait_frames: list[Frame]
) -> None:
    session = Session(UNGATED, detector)
    few = portrait_frames[:45]
    larger = [Frame(np.pad(f.rgb, ((0, 20), (0, 20), (0, 0)), mode="edge"), f.t_s + 3) for f in few]
    much_later = [Frame(f.rgb, f.t_s + 1e6) for f in few]
    events = run(session, few + larger + much_later)
    assert [e.face for e in events if isinstance(e, FaceEvent) and e.kind == "appeared"] == [0, 1, 2]


def test_memory_does_not_grow(detector: Detector, portrait_frames: list[Frame]) -> None:
    session = Session(SessionConfig(window_s=4.0), detector)

    def feed(first: int, last: int) -> None:
        for i in range(first, last):
            session.push(Frame(portrait_frames[i % 300].rgb, i / 12))

    feed(0, 120)
    tracemalloc.start()
    feed(120, 240)
    early = tracemalloc.get_traced_memory()[0]
    feed(240, 800)
    late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert late - early < 50_000  # bytes, after 47 s more


@pytest.mark.parametrize(
    "frame",
    [
        Frame(np.zeros((160, 200, 3), np.uint8), float("nan")),
        Frame(np.zeros((160, 200, 3), np.float32), 0.0),  # type: ignore[arg-type]
        Frame(np.zeros((160, 200), np.uint8), 0.0),
    ],
    ids=["time", "dtype", "shape"],
)
def test_an_invalid_frame_is_refused(detector: Detector, frame: Frame) -> None:
    with pytest.raises(ArgumentError):
        Session(UNGATED, detector).push(frame)


@pytest.mark.parametrize(
    "change", [{"window_s": 1}, {"window_s": float("nan")}, {"step_s": 0}, {"step_s": 11}, {"faces": "some"}]
)
def test_invalid_settings_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match="accepted"):
        SessionConfig(**change)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="did you mean 'pos'"):
        SessionConfig(method="poss")


def test_every_method_runs(detector: Detector, portrait_frames: list[Frame]) -> None:
    for method in ("green", "chrom", "2sr"):
        config = SessionConfig(method=method, gated=False)
        events = run(Session(config, detector), portrait_frames[:305])
        np.testing.assert_allclose(rates(events), 72, atol=2)


class EchoModel:
    """A network that outputs the negative mean green of the crop `delay_frames` ago."""

    name, fps, size = "echo", 30.0, 24

    def __init__(self, delay_frames: int) -> None:
        self.delay_frames = delay_frames
        self.past = [np.nan] * delay_frames

    def fresh(self) -> EchoModel:
        return EchoModel(self.delay_frames)

    def step(self, crops: ByteArray) -> FloatArray:
        self.past += [-float(crop[8:16, 8:16, 1].mean()) for crop in crops]
        answer, self.past = self.past[: len(crops)], self.past[len(crops) :]
        return np.array(answer)


def test_a_delayed_network_is_shifted_back(detector: Detector, portrait_frames: list[Frame]) -> None:
    waves = []
    for delay in (0, 7):
        config = SessionConfig(model=EchoModel(delay), gated=False)
        (face,) = measure(Held(portrait_frames), config, detector=detector).faces
        assert face.wave.valid.all()
        assert len(face.windows) == 3
        np.testing.assert_allclose([w.reading.bpm for w in face.windows], 72, atol=1)  # type: ignore[union-attr]
        waves.append(face.wave.values)
    np.testing.assert_allclose(waves[0], waves[1], atol=1e-5)


class NoiseModel(EchoModel):
    """A network that outputs noise whatever the crop."""

    def __init__(self, noise: float = 1.0) -> None:
        super().__init__(0)
        self.noise, self.rng = noise, np.random.default_rng(3)

    def fresh(self) -> NoiseModel:
        return NoiseModel(self.noise)

    def step(self, crops: ByteArray) -> FloatArray:
        return self.rng.normal(0, self.noise, len(crops))


def test_the_second_method_gives_the_rate_if_the_network_outputs_noise(
    detector: Detector, portrait_frames: list[Frame]
) -> None:
    config = SessionConfig(model=NoiseModel(), gated=False)
    together = windows(run(Session(config, detector), portrait_frames))
    alone = windows(run(Session(replace(config, second=None), detector), portrait_frames))
    assert max(abs(w.peak.bpm - 72) for w in together if w.peak) < 7
    assert max(abs(w.peak.bpm - 72) for w in alone if w.peak) > 7


def test_the_rate_lies_between_those_of_both_waves(detector: Detector, portrait_frames: list[Frame]) -> None:
    both = SessionConfig(model=EchoModel(0), gated=False)
    found = [
        windows(run(Session(config, detector), portrait_frames))
        for config in (both, replace(both, second=None), SessionConfig(method="pos", gated=False))
    ]
    for peaks in zip(*([w.peak for w in some] for some in found), strict=True):
        together, *each = (peak.bpm for peak in peaks if peak is not None)
        assert len(each) == 2
        assert min(each) - 1e-6 <= together <= max(each) + 1e-6


def test_the_second_method_must_use_the_mean_colour() -> None:
    with pytest.raises(ArgumentError, match="second"):
        SessionConfig(model=EchoModel(0), second="2sr")


def test_a_network_restarts_after_a_pause(detector: Detector, portrait_frames: list[Frame]) -> None:
    gap = portrait_frames[:60] + [Frame(f.rgb, f.t_s + 3) for f in portrait_frames[60:150]]
    config = SessionConfig(model=EchoModel(5), gated=False)
    (face,) = measure(Held(gap), config, detector=detector).faces
    unseen = ~face.wave.valid
    assert unseen.sum() == pytest.approx(3 * 30 + 5, abs=6)
    assert np.isfinite(face.wave.values).all()
