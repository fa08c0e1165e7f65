"""A lost camera is opened again with growing pauses, on one clock; one that never worked is an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from phase_rppg.errors import VideoError
from phase_rppg.types import Frame
from phase_rppg.video import camera
from phase_rppg.video.reconnect import FIRST_WAIT_S, LONGEST_WAIT_S, CameraLoss, reconnecting_frames

PICTURE = np.zeros((4, 4, 3), np.uint8)


@dataclass
class Flaky:
    """A source with a given number of frames for each opening, which then ends or fails."""

    openings: Sequence[int]
    fails: bool = True
    opened: int = field(default=0, init=False)

    def frames(self) -> Iterator[Frame]:
        count = self.openings[min(self.opened, len(self.openings) - 1)]
        self.opened += 1
        for i in range(count):
            yield Frame(PICTURE, i / 30)
        if self.fails:
            raise VideoError("camera 0", "was unplugged")


class Time:
    """A clock that advances only in `sleep`."""

    now_s = 100.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def watch(source: Flaky, time: Time) -> Iterator[Frame | CameraLoss]:
    return reconnecting_frames(source, sleep=time.sleep, clock=lambda: time.now_s)


@pytest.mark.parametrize("fails", [True, False])
def test_frames_go_on_after_a_loss_with_later_times(fails: bool) -> None:
    items = watch(Flaky([3, 5], fails), Time())
    seen: list[Frame] = []
    losses: list[CameraLoss] = []
    while len(seen) < 8:
        item = next(items)
        seen.append(item) if isinstance(item, Frame) else losses.append(item)  # type: ignore[func-returns-value]
    times_s = [frame.t_s for frame in seen]
    assert np.all(np.diff(times_s) > 0)
    assert times_s[3] == pytest.approx(FIRST_WAIT_S)
    assert {loss.problem for loss in losses} == {"was unplugged" if fails else "stopped sending pictures"}
    assert losses[0].retry_in_s == FIRST_WAIT_S


def test_pauses_grow_up_to_a_limit_and_start_anew_after_a_picture() -> None:
    items = watch(Flaky([1, 0, 0, 0, 0, 0, 0, 1, 0]), Time())
    waits = []
    before = 0.0
    while len(waits) < 8:
        item = next(items)
        left_s = item.retry_in_s if isinstance(item, CameraLoss) else 0.0
        if left_s > before:
            waits.append(left_s)
        before = left_s
    assert waits[:7] == [1, 2, 4, 8, LONGEST_WAIT_S, LONGEST_WAIT_S, LONGEST_WAIT_S]
    assert waits[7] == FIRST_WAIT_S


def test_a_camera_that_never_gave_a_picture_is_an_error() -> None:
    with pytest.raises(VideoError, match="unplugged"):
        next(watch(Flaky([0]), Time()))
    with pytest.raises(VideoError, match="stopped"):
        next(watch(Flaky([0], fails=False), Time()))


def test_a_real_stream_that_ends_is_opened_again() -> None:
    source = camera.parse_camera("lavfi:testsrc=size=32x24:rate=30:duration=0.2")
    items = reconnecting_frames(source, sleep=lambda _: None)
    kinds = [type(next(items)) for _ in range(40)]
    assert kinds.index(CameraLoss) < len(kinds) - kinds[::-1].index(Frame) - 1


def test_a_camera_is_named_as_people_do() -> None:
    assert camera.parse_camera("2").device == 2
    assert camera.parse_camera("/dev/video7").device == "/dev/video7"
    assert camera.parse_camera("video=Some: Webcam").device == "video=Some: Webcam"
    assert (camera.parse_camera("lavfi:testsrc").driver, camera.parse_camera("lavfi:testsrc").device) == (
        "lavfi",
        "testsrc",
    )
