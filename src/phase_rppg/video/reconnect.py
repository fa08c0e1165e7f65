"""Open a camera again after it was lost: one stream of frames on one clock, with the losses in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..errors import VideoError
from ..types import Frame, FrameSource

FIRST_WAIT_S = 1.0  # before the first attempt; it doubles with each attempt
LONGEST_WAIT_S = 15.0
_TICK_S = 0.25  # between two reports of the same loss


@dataclass(frozen=True, slots=True)
class CameraLoss:
    """The reason why there is no picture, and the time until the next attempt."""

    problem: str
    retry_in_s: float


def reconnecting_frames(
    source: FrameSource,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Frame | CameraLoss]:
    """Yield the frames of a live source without end; after a loss, open it again with growing pauses.

    While there is no picture, a `CameraLoss` is yielded several times per second. The clock continues during
    a loss. If the source never gives a picture, its VideoError is raised.
    """
    origin_s: float | None = None  # time of the first frame on `clock`
    wait_s = FIRST_WAIT_S
    while True:
        offset_s: float | None = None
        problem = "stopped sending pictures"
        try:
            for frame in source.frames():
                if offset_s is None:
                    now_s = clock()
                    origin_s = now_s - frame.t_s if origin_s is None else origin_s
                    offset_s = now_s - origin_s - frame.t_s
                    wait_s = FIRST_WAIT_S
                yield Frame(frame.rgb, frame.t_s + offset_s)
        except VideoError as error:
            if origin_s is None:
                raise
            problem = error.problem
        if origin_s is None:
            raise VideoError("camera", problem, "check that no other program uses it")
        left_s = wait_s
        while left_s > 0:
            yield CameraLoss(problem, left_s)
            sleep(min(_TICK_S, left_s))
            left_s -= _TICK_S
        wait_s = min(2 * wait_s, LONGEST_WAIT_S)
