"""A session accepts any sequence of frames, sizes, pauses and detections: no failure, bounded memory."""

from __future__ import annotations

import math
import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.face.detector import Detection, Detector
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import Event, WavePiece, WindowResult
from phase_rppg.session.session import Session
from phase_rppg.types import Estimate, Frame

EXAMPLES = 200
MAX_SESSION_MB = 8.0  # pickled, with all buffers of four faces
SIDES = (0, 1, 2, 7, 16, 33, 64)
STEPS_S = (-5.0, 0.0, 1e-12, 1e-4, 1 / 60, 1 / 30, 0.04, 0.3, 3.0, 30.0, 59.9, 61.0, 1e5, 1e12)
CONFIG = SessionConfig(window_s=2.0, step_s=0.5)

number = st.floats(-200, 300)
side = st.floats(0.01, 200)


@dataclass(frozen=True)
class Run:
    """Some frames of one size, at one interval, with one picture and the faces that a detector finds."""

    count: int
    height: int
    width: int
    step_s: float
    picture: str
    boxes: tuple[tuple[float, float, float, float], ...]


runs = st.builds(
    Run,
    count=st.integers(1, 40),
    height=st.sampled_from(SIDES),
    width=st.sampled_from(SIDES),
    step_s=st.sampled_from(STEPS_S),
    picture=st.sampled_from(["noise", "black", "white", "pulse"]),
    boxes=st.lists(st.tuples(number, number, side, side), max_size=4).map(tuple),
)
LANDMARKS = np.array([[0.3, 0.4], [0.7, 0.4], [0.5, 0.6], [0.4, 0.8], [0.6, 0.8]])
FACE = ((10.0, 10.0, 40.0, 45.0),)
LONG = Run(80, 64, 64, 1 / 30, "pulse", FACE)


@dataclass
class GivenDetector:
    """A detector that finds what the test says."""

    boxes: tuple[tuple[float, float, float, float], ...] = ()

    def detect(self, rgb: Any, long_side_px: int = 320) -> list[Detection]:
        del rgb, long_side_px
        return [Detection(box, 0.9, LANDMARKS * (box[2], box[3]) + (box[0], box[1])) for box in self.boxes]

    search = detect


def picture(run: Run, index: int, rng: np.random.Generator) -> Any:
    shape = (run.height, run.width, 3)
    if run.picture == "noise":
        return rng.integers(0, 256, shape, np.uint8)
    if run.picture == "pulse":
        level = 120 + 4 * math.sin(2 * math.pi * 1.2 * index * run.step_s)
        return np.full(shape, (150, level, 100), np.float64).round().astype(np.uint8)
    return np.full(shape, 0 if run.picture == "black" else 255, np.uint8)


def check(events: list[Event]) -> None:
    for event in events:
        if isinstance(event, WindowResult):
            assert event.end_s >= event.start_s
            if isinstance(event.reading, Estimate):
                assert 20 < event.reading.bpm < 300
                assert 0 <= event.reading.p_ok <= 1
        if isinstance(event, WavePiece):
            assert np.isfinite(event.wave.values).all()
            assert len(event.wave.values) == len(event.wave.valid)


@settings(max_examples=EXAMPLES, deadline=20_000, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(runs, max_size=5), st.sampled_from(["all", "largest"]), st.booleans())
@example([LONG, LONG], "all", False)
@example([LONG, Run(1, 64, 64, 59.9, "pulse", FACE), LONG], "all", True)
@example([LONG, Run(3, 0, 0, 1 / 30, "black", FACE), LONG], "all", True)
def test_any_sequence_of_frames_is_measured(parts: list[Run], faces: str, gated: bool) -> None:
    detector, rng = GivenDetector(), np.random.default_rng(1)
    session = Session(SessionConfig(window_s=2.0, step_s=0.5, faces=faces, gated=gated), detector)  # type: ignore[arg-type]
    t_s, accepted = 0.0, 0
    for part in parts:
        detector.boxes = part.boxes
        for index in range(part.count):
            t_s += part.step_s
            frame = Frame(picture(part, index, rng), t_s)
            try:
                check(session.push(frame))
                accepted += 1
            except ArgumentError:
                assert 0 in (part.height, part.width)
    check(session.finish())
    assert session.frame_count + session.late_frames == accepted
    assert len(pickle.dumps(session)) < MAX_SESSION_MB * 2**20


@settings(max_examples=20, deadline=20_000, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(SIDES), st.sampled_from(SIDES), st.sampled_from(["noise", "black", "white"]))
def test_the_detector_accepts_any_size(height: int, width: int, kind: str) -> None:
    session, rng = Session(CONFIG, _detector()), np.random.default_rng(1)
    run = Run(1, height, width, 1 / 30, kind, ())
    for index in range(3):
        frame = Frame(picture(run, index, rng), index / 30)
        if 0 in (height, width):
            with pytest.raises(ArgumentError):
                session.push(frame)
        else:
            session.push(frame)
    session.finish()


def _detector(kept: list[Detector] = []) -> Detector:  # noqa: B006 (loaded once)
    if not kept:
        kept.append(Detector())
    return kept[0]


@pytest.mark.parametrize("t_s", [math.nan, math.inf, -math.inf])
def test_a_time_that_is_not_finite_is_refused(t_s: float) -> None:
    with pytest.raises(ArgumentError, match="finite"):
        Session(CONFIG).push(Frame(np.zeros((4, 4, 3), np.uint8), t_s))


def test_memory_does_not_grow_with_the_number_of_segments() -> None:
    """Sizes that change with every frame begin many segments."""
    session = Session(CONFIG, GivenDetector(FACE))  # type: ignore[arg-type]
    sizes = []
    for index in range(2000):
        session.push(Frame(np.zeros((60 + index % 2, 64, 3), np.uint8), index / 30))
        sizes.append(len(pickle.dumps(session)) if index % 200 == 1 else 0)
    measured = [size for size in sizes if size]
    assert max(measured) < 1.05 * measured[0] + 1000
