"""A camera yields frames in real time, and raises an error when it is missing or lost."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from phase_rppg.errors import VideoError
from phase_rppg.video.camera import Camera


def test_frames_come_in_order_and_a_lost_camera_is_an_error() -> None:
    camera = Camera("testsrc=size=64x48:rate=30:duration=0.4,realtime", driver="lavfi")
    frames = camera.frames()
    first = next(frames)
    assert camera.state == "running"
    assert first.rgb.shape == (48, 64, 3)
    times = [first.t_s]
    with pytest.raises(VideoError, match="stopped sending"):
        times.extend(frame.t_s for frame in frames)
    assert camera.state == "lost"
    assert times[0] == 0
    assert len(times) + camera.dropped >= 11
    assert np.all(np.diff(times) > 0)


def test_a_silent_camera_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Camera, "_read", lambda self, waiting, stop: threading.Event().wait(1))
    camera = Camera(timeout_s=0.2)
    with pytest.raises(VideoError, match="no picture"):
        list(camera.frames())
    assert camera.state == "lost"


def test_stopping_closes_the_camera() -> None:
    camera = Camera("testsrc=size=64x48:rate=30,realtime", driver="lavfi")
    frames = camera.frames()
    next(frames)
    frames.close()  # type: ignore[attr-defined]
    assert camera.state == "closed"


def test_an_absent_camera_is_named_with_a_hint() -> None:
    with pytest.raises(VideoError, match="camera /dev/video-none") as caught:
        next(Camera("/dev/video-none").frames())
    assert "connect" in caught.value.hint or "found" in caught.value.hint
