"""A camera that goes away and comes back: one stream of frames on one clock, with the losses in between."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..errors import VideoError
from ..types import Frame, FrameSource

FIRST_WAIT_S = 1.0  # before the first new attempt; then twice as long each time …
LONGEST_WAIT_S = 15.0  # … up to this
_TICK_S = 0.25  # between two reports of the same loss


@dataclass(frozen=True, slots=True)
class Loss:
    """There is no picture at the moment, and when the next attempt will be."""

    problem: str
    retry_in_s: float


def persistent(
    source: FrameSource,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Frame | Loss]:
    """The frames of a live source, for ever: after a loss it is opened again, with growing pauses.

    While there is no picture, a `Loss` comes several times a second. Times go on across a loss. A source that
    never gave a picture raises its VideoError: there is nothing to wait for.
    """
    origin_s: float | None = None  # on `clock`, when the first frame was taken
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
            raise VideoError("camera", problem, "check that it is not used by another program")
        left_s = wait_s
        while left_s > 0:
            yield Loss(problem, left_s)
            sleep(min(_TICK_S, left_s))
            left_s -= _TICK_S
        wait_s = min(2 * wait_s, LONGEST_WAIT_S)
