"""The work per frame stays small: a regression of speed fails here, on any machine and under any load.

Counts are of calls, not of time. If a change needs more of them, `python -m benchmarks run measure_480p` says
whether it pays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

from phase_rppg.face.crop import AreaCrop
from phase_rppg.measurement.offline import measure
from phase_rppg.picture import YuvFrame, YuvPicture, rgb_conversion
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.network_feeder import FILE_BATCH
from phase_rppg.session.session import Session
from phase_rppg.signal import rate
from phase_rppg.signal.motion_removal import FaceMotion
from phase_rppg.types import BoolArray, ByteArray
from phase_rppg.video.encode import write_video
from phase_rppg.video.slot_layout import PlaneLayout
from plain_face import FACE, FPS, HEIGHT, WIDTH, FixedDetector, ScriptedModel, frames, seconds, tone


def yuv_frame(rgb: ByteArray, t_s: float) -> YuvFrame:
    """Convert a frame to planes, roughly."""
    luma = rgb.mean(-1).astype(np.uint8)
    chroma = np.full((2, HEIGHT // 2, WIDTH // 2), 128, np.uint8)
    memory = np.concatenate([luma.ravel(), chroma.ravel()])
    planes = memory[: luma.size].reshape(luma.shape), memory[luma.size :].reshape(chroma.shape)
    return YuvFrame(YuvPicture(memory, *planes, *rgb_conversion(5, True)), t_s)


def calls(work: Callable[[], object]) -> int:
    """Return the number of calls of Python and C functions during some work."""
    count = 0

    def tally(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tally)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    ("config", "most"),
    [
        (SessionConfig(method="pos"), 220),
        (SessionConfig(model=ScriptedModel(lambda t: tone(t, 75)), context_s=10.0), 280),
    ],
    ids=["pos", "network"],
)
def test_a_frame_takes_few_calls(config: SessionConfig, most: int) -> None:
    """The median frame has neither a detection nor a window."""
    t_s = seconds(4)
    session, counts = Session(config, FixedDetector()), []
    for frame in frames(t_s, 0.01 * tone(t_s, 75)):
        planes = yuv_frame(frame.rgb, frame.t_s)
        counts.append(calls(lambda planes=planes: session.push(planes)))  # type: ignore[misc]
    assert session.present
    assert np.median(counts[30:]) <= most


def test_a_crop_is_four_products_whatever_its_size() -> None:
    frame = yuv_frame(frames(seconds(0.1), np.zeros(3))[0].rgb, 0.0)
    small, large = (AreaCrop(FACE, size, frame.picture.shape) for size in (36, 128))
    small.mean(frame.picture), large.mean(frame.picture)
    work = [calls(lambda crop=crop: crop.mean(frame.picture)) for crop in (small, large)]  # type: ignore[misc]
    assert work[0] == work[1] <= 30


def test_the_motion_of_a_window_is_analysed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waves of the network, of the second method and of the check share it; a context has its own."""
    spans: list[int] = []
    original = FaceMotion._compute_regressors

    def count(motion: FaceMotion, valid: BoolArray, *more: Any) -> None:
        spans.append(len(valid))
        original(motion, valid, *more)

    monkeypatch.setattr(FaceMotion, "_compute_regressors", count)
    t_s = seconds(13)
    config = SessionConfig(model=ScriptedModel(lambda t: tone(t, 75)), context_s=1.0)
    session = Session(config, FixedDetector())
    for frame in frames(t_s, 0.01 * tone(t_s, 75)):
        session.push(frame)
    session.finish()
    assert spans.count(10 * FPS) == 4  # windows that end after 10, 11, 12 and 13 s
    assert len(spans) == 8


def test_a_refined_rate_takes_few_systems_of_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[int] = []
    original = np.linalg.solve

    def count(a: Any, b: Any) -> Any:
        solved.append(len(a))
        return original(a, b)

    monkeypatch.setattr(np.linalg, "solve", count)
    assert rate.spectral_bpm(tone(seconds(10), 75), FPS) == pytest.approx(75, abs=0.01)
    assert len(solved) <= 5  # each is a stack of three frequencies


def test_a_file_runs_the_network_twice_per_second_of_video() -> None:
    batches: list[int] = []

    class Counted(ScriptedModel):
        def fresh(self) -> Counted:
            return self

        def step(self, crops: ByteArray) -> Any:
            batches.append(len(crops))
            return np.zeros(len(crops))

    t_s = seconds(13)
    session = Session(SessionConfig(model=Counted(lambda t: t), context_s=1.0), FixedDetector())
    for frame in frames(t_s, 0 * t_s):
        session.push(frame)
    assert np.median(batches) == FILE_BATCH == FPS // 2
    assert len(batches) <= 28


def test_a_picture_takes_half_the_memory_of_rgb() -> None:
    layout = PlaneLayout(480, 640, 640, 320, 5, False)
    assert layout.slot_bytes == 480 * 640 * 3 // 2


def test_a_file_is_measured_without_one_rgb_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(picture: YuvPicture) -> ByteArray:
        raise AssertionError("a whole picture was converted")

    class PlaneDetector(FixedDetector):
        pass

    t_s = seconds(3)
    pictures = [np.repeat(np.repeat(frame.rgb, 2, 0), 2, 1) for frame in frames(t_s, 0.01 * tone(t_s, 75))]
    write_video(tmp_path / "a.mp4", pictures, FPS, crf=10, preset="veryfast")
    monkeypatch.setattr("phase_rppg.face.detection_scheduler.readable_by", lambda _, picture: picture)
    monkeypatch.setattr(YuvPicture, "rgb", property(refuse))
    box = tuple(2 * side for side in FACE)
    result = measure(tmp_path / "a.mp4", SessionConfig(method="pos"), detector=PlaneDetector(box))  # type: ignore[arg-type]
    assert result.frame_count == len(t_s)
    assert len(result.faces) == 1
