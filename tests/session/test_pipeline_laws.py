"""Laws of the pipeline of one face: when it samples anew, when it has a window, what a network is given."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.face.crop import Box, square
from phase_rppg.face.detector import Detection
from phase_rppg.face.tracker import Track
from phase_rppg.session.clock import Clock
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.face_pipeline import FacePipeline
from phase_rppg.session.session import Session
from phase_rppg.types import ByteArray, FloatArray, Frame
from plain_face import FACE, ScriptedModel, detection, frames, seconds, tone

T_S = seconds(6)
FRAMES = frames(T_S, 0.01 * tone(T_S, 90))


class Counting(ScriptedModel):
    """A network that returns the number of crops since its restart, and records the size of each batch."""

    def __init__(self, batches: list[int], delay_frames: int = 0) -> None:
        super().__init__(lambda t_s: np.rint(30 * t_s), delay_frames)
        self.batches = batches

    def fresh(self) -> Counting:
        return Counting(self.batches, self.delay_frames)

    def step(self, crops: ByteArray) -> FloatArray:
        self.batches.append(len(crops))
        assert crops.shape[1:] == (12, 12, 3)
        return super().step(crops)


def track_of(box: Box = FACE, detections: int = 2) -> Track:
    found = detection(box)
    return Track(4, found.box, found.landmarks, 0.0, detections)


class Run:
    """A pipeline that is given frames one by one."""

    def __init__(self, config: SessionConfig, detections: int = 2) -> None:
        self.clock = Clock(config.fps, 100.0)
        self.face = FacePipeline(track_of(detections=detections), FRAMES[0].rgb, self.clock, 0, config)

    def push(self, source: list[Frame], absent: bool = False) -> Run:
        for frame in source:
            step = self.clock.advance(frame.t_s)
            if absent:
                self.face.push_absence(step)
            else:
                self.face.push_frame(frame.rgb, frame.t_s, step, np.full(3, 100.0))
        return self


def test_a_restarted_sampler_samples_the_new_place_without_continuity() -> None:
    run = Run(SessionConfig(window_s=4.0)).push(FRAMES[:10])
    place: Box = (4.0, 10.0, 20.0, 24.0)
    run.face.restart_sampler(track_of(place), FRAMES[9].rgb)
    assert run.face.sampler.box == pytest.approx(square(place))
    fresh = Run(SessionConfig(window_s=4.0)).face
    fresh.restart_sampler(track_of(place), FRAMES[9].rgb)
    found, expected = (face.sampler.sample(FRAMES[10].rgb, 1 / 3) for face in (run.face, fresh))
    np.testing.assert_allclose(found, expected)


def test_a_window_needs_a_confirmed_face_that_was_seen() -> None:
    config = SessionConfig(window_s=4.0)
    run = Run(config).push(FRAMES)
    assert run.face.window_count == 0
    (window,) = run.face.analyze_window(30, 150)
    assert (window.face, window.start_s, window.end_s) == (4, 1.0, 5.0)
    assert window.peak is not None
    assert window.peak.bpm == pytest.approx(90, abs=1)
    assert run.face.window_count == 1
    assert Run(config, detections=1).push(FRAMES).face.analyze_window(0, 120) == []
    away = Run(config).push(FRAMES, absent=True)
    assert away.face.analyze_window(0, 120) == []
    assert away.face.window_count == 0


def test_the_wave_is_returned_up_to_a_tick_and_only_once() -> None:
    run = Run(SessionConfig(window_s=4.0)).push(FRAMES)
    run.face.analyze_window(0, 120)
    (piece,) = run.face.next_wave(60)
    assert (piece.face, piece.wave.start_s, len(piece.wave.values)) == (4, 0.0, 60)
    assert run.face.next_wave(60) == []
    run.face.complete_wave(60, 180)
    (rest,) = run.face.next_wave(180)
    assert (rest.wave.start_s, len(rest.wave.values)) == (2.0, 120)
    assert rest.wave.valid.all()


@pytest.mark.parametrize("delay_frames", [0, 4])
def test_the_wave_of_a_network_lies_at_the_ticks_of_its_crops(delay_frames: int) -> None:
    batches: list[int] = []
    config = SessionConfig(model=Counting(batches, delay_frames), window_s=4.0)
    run = Run(config).push(FRAMES[:100])
    run.face.flush_network()
    run.face.complete_wave(0, 100)
    (piece,) = run.face.next_wave(100)
    np.testing.assert_array_equal(piece.wave.values, np.arange(100))
    assert piece.wave.valid.all()
    assert sum(batches) == 100 + delay_frames


def test_an_absence_restarts_the_network() -> None:
    config = SessionConfig(model=Counting([]), window_s=4.0)
    run = Run(config).push(FRAMES[:40]).push(FRAMES[40:50], absent=True).push(FRAMES[50:90])
    run.face.complete_wave(0, 90)
    (piece,) = run.face.next_wave(90)
    np.testing.assert_array_equal(piece.wave.valid, [True] * 40 + [False] * 10 + [True] * 40)
    np.testing.assert_array_equal(piece.wave.values[:40], np.arange(40))
    np.testing.assert_array_equal(piece.wave.values[50:], np.arange(40))


def test_a_long_pause_restarts_the_network() -> None:
    config = SessionConfig(model=Counting([]), window_s=4.0)
    late = [Frame(frame.rgb, frame.t_s + 1.0) for frame in FRAMES[40:80]]
    run = Run(config).push(FRAMES[:40]).push(late)
    run.face.complete_wave(0, 110)
    (piece,) = run.face.next_wave(110)
    np.testing.assert_array_equal(np.flatnonzero(~piece.wave.valid), np.arange(40, 71))
    np.testing.assert_array_equal(piece.wave.values[71:], np.arange(39))


def test_samples_after_a_loss_are_discarded() -> None:
    run = Run(SessionConfig(window_s=4.0)).push(FRAMES)
    run.face.mark_lost(3.0)
    valid = run.face.state.samples(0, 180).skin.valid
    np.testing.assert_array_equal(np.flatnonzero(valid), np.arange(91))


def test_only_methods_that_need_crops_keep_them() -> None:
    assert Run(SessionConfig(window_s=4.0)).push(FRAMES[:5]).face.state.samples(0, 5).clip is None
    clip = Run(SessionConfig(method="2sr", window_s=4.0)).push(FRAMES[:5]).face.state.samples(0, 5).clip
    assert clip is not None
    assert clip.pixels.shape[0] == 5


class EmptyDetector:
    """Finds nothing, and counts its detections at full scale."""

    def __init__(self) -> None:
        self.count = 0

    def detect(self, rgb: ByteArray, long_side_px: int = 320) -> list[Detection]:
        self.count += 1
        return []

    def search(self, rgb: ByteArray) -> list[Detection]:
        return []


def test_without_a_face_the_detector_runs_twice_a_second() -> None:
    detector = EmptyDetector()
    session = Session(SessionConfig(), detector)  # type: ignore[arg-type]
    for frame in FRAMES[:91]:
        assert session.push(frame) == []
    assert detector.count == 7  # at 0, 0.5, … 3 s
    assert session.finish() == []
