"""The work of a session per frame, as numbers that do not depend on the load of the machine.

Time varies with the machine, but the number of calls and the memory of a step do not. A change that converts
whole pictures, analyses a window twice or adds a loop over pixels exceeds these limits.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from call_counter import count_calls
from phase_rppg.face.detector import Detector
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.picture import YuvFrame, YuvPicture, rgb_conversion
from phase_rppg.session.session import Session
from phase_rppg.types import FloatArray
from plain_face import FACE, FPS, FixedDetector, frames, seconds, tone

SCALE = 8  # 640×480 pixels
WARM_S, COUNTED_S = 14.0, 4.0  # the buffers are full, and every second has a window
MOST_CALLS = {"pos": 250, "phasenet-stream": 325}  # measured: 212 and 276
MOST_BYTES = 1_400_000  # measured: 1.1 MB; one RGB picture of bytes takes 0.9 MB, one of floats 3.7 MB


def yuv_frames(duration_s: float) -> list[YuvFrame]:
    """Enlarged frames of `plain_face` as planes: brightness from green, colour constant."""
    t_s = seconds(duration_s)
    black, weights = rgb_conversion(1, full_range=False)
    made = []
    for frame in frames(t_s, 0.01 * tone(t_s, 72)):
        luma = np.repeat(np.repeat(frame.rgb[..., 1], SCALE, 0), SCALE, 1)
        height, width = luma.shape
        memory = np.full(height * width * 3 // 2, 128, np.uint8)
        memory[: luma.size] = luma.ravel()
        chroma = memory[luma.size :].reshape(2, height // 2, width // 2)
        plane = memory[: luma.size].reshape(height, width)
        made.append(YuvFrame(YuvPicture(memory, plane, chroma, black, weights), frame.t_s))
    return made


class PlaneDetector(FixedDetector, Detector):
    """Finds the face in pictures of any form; another class would get a conversion to RGB."""


def session(method: str) -> Session:
    x, y, width, height = (SCALE * side for side in FACE)
    return Session(MeasureOptions(method, gated=False).config(), PlaneDetector((x, y, width, height)))


def calls_per_frame(running: Session, source: list[YuvFrame]) -> float:
    def push_all() -> None:
        for frame in source:
            running.push(frame)

    return count_calls(push_all) / len(source)


def bytes_per_step(running: Session, source: list[YuvFrame]) -> FloatArray:
    """Return the largest memory (N,) of each step beyond that before the step."""
    peaks = np.zeros(len(source))
    tracemalloc.start()
    try:
        for index, frame in enumerate(source):
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            running.push(frame)
            peaks[index] = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return peaks


@pytest.mark.parametrize("method", MOST_CALLS)
def test_calls_per_frame(method: str) -> None:
    source = yuv_frames(WARM_S + COUNTED_S)
    running = session(method)
    warm = round(WARM_S * FPS)
    for frame in source[:warm]:
        running.push(frame)
    calls = calls_per_frame(running, source[warm:])
    assert 0 < calls <= MOST_CALLS[method]


@pytest.mark.parametrize("method", MOST_CALLS)
def test_memory_of_a_step(method: str) -> None:
    source = yuv_frames(WARM_S + COUNTED_S)
    running = session(method)
    warm = round(WARM_S * FPS)
    for frame in source[:warm]:
        running.push(frame)
    peaks = bytes_per_step(running, source[warm:])
    assert peaks.max() < MOST_BYTES
