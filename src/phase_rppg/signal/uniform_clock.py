"""The uniform clock: ticks between two samples, their interpolation weights, and the longest gap.

Tick n is at origin + n / fps, where the origin is the first timestamp. A tick between two samples is their
linear interpolation. A tick in a gap longer than `max_gap_s` is marked as missing. `session.clock` and
`datasets.face_crops` use the incremental form; `resample.to_uniform` applies the same rules to arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..types import BoolArray, FloatArray
from .constants import CLOCK_TOLERANCE, MAX_GAP_S

_GAP_TOLERANCE_S = 1e-9  # rounding of the difference of two timestamps


def ticks_until(elapsed_s: float, fps: float) -> int:
    """Return the number of ticks from the origin to `elapsed_s` after it, both included."""
    return math.floor(elapsed_s * fps + CLOCK_TOLERANCE) + 1


def can_interpolate(gap_s: FloatArray | float, max_gap_s: float = MAX_GAP_S) -> BoolArray:
    """Return whether two samples are near enough in time to interpolate between them."""
    return np.asarray(gap_s <= max_gap_s + _GAP_TOLERANCE_S)


@dataclass(frozen=True, slots=True)
class Step:
    """The ticks between the previous sample and this one."""

    first: int  # number of the first tick
    weights: FloatArray  # (n,) interpolation weight of this sample at each tick, 0–1
    seen: bool  # False: the gap is too long to interpolate


class UniformClock:
    """Converts increasing timestamps to ticks, one timestamp at a time."""

    def __init__(self, fps: float) -> None:
        self.fps = fps
        self.origin_s = math.nan
        self.last_s = math.nan
        self.count = 0  # number of ticks so far

    def time_s(self, tick: int) -> float:
        """Return the time of a tick."""
        return self.origin_s + tick / self.fps

    def advance(self, t_s: float) -> Step:
        """Add the time of the next sample, which must increase, and return the ticks up to it."""
        if math.isnan(self.origin_s):
            self.origin_s, self.last_s, self.count = t_s, t_s, 1
            return Step(0, np.ones(1), True)
        first, before_s = self.count, self.last_s
        stop = ticks_until(t_s - self.origin_s, self.fps)
        times_s = self.origin_s + np.arange(first, stop) / self.fps
        self.last_s, self.count = t_s, max(stop, first)
        gap_s = t_s - before_s
        return Step(first, np.clip((times_s - before_s) / gap_s, 0, 1), bool(can_interpolate(gap_s)))
