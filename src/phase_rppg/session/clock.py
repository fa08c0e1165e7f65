"""Resample live frames to a uniform clock, frame by frame, with bounded memory.

Tick n of a session is at first frame + n / fps, for all faces and all windows. `Clock` finds the ticks
between two frames, `at_ticks` interpolates the values of both frames there, and `History` keeps the last
ticks. A tick in a gap longer than MAX_GAP_S is marked as invalid.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..signal.constants import CLOCK_TOLERANCE
from ..signal.uniform_clock import Step, UniformClock
from ..types import BoolArray, FloatArray


class Clock(UniformClock):
    """A uniform clock that also keeps the times of the latest frames."""

    def __init__(self, fps: float, memory_s: float) -> None:
        super().__init__(fps)
        self._memory_s = memory_s
        self.frame_times: deque[float] = deque()

    def advance(self, t_s: float) -> Step:
        """Advance to the time of the next frame, which must be later than the previous one."""
        step = super().advance(t_s)
        self.frame_times.append(t_s)
        while t_s - self.frame_times[0] > self._memory_s:
            self.frame_times.popleft()
        return step

    def frame_timing(self, start_s: float, end_s: float) -> tuple[float, float]:
        """Return (true frames per second, longest gap in s) between two times, including their ends."""
        times = [t for t in self.frame_times if start_s - CLOCK_TOLERANCE <= t <= end_s + CLOCK_TOLERANCE]
        if len(times) < 2:
            return 0.0, end_s - start_s
        gaps = np.diff([start_s, *times, max(end_s - 1 / self.fps, times[-1])])
        return (len(times) - 1) / (times[-1] - times[0]), float(gaps.max())


def at_ticks(step: Step, before: FloatArray, after: FloatArray) -> FloatArray:
    """Interpolate between the values of two frames (…) at the ticks of `step`, (n,…)."""
    weights = step.weights.astype(after.dtype).reshape(-1, *(1,) * after.ndim)
    ticks: FloatArray = before + weights * (after - before)
    return ticks


class History:
    """A ring buffer: the last `keep` ticks of several columns, with a validity flag for each tick."""

    def __init__(self, columns: int, keep: int, first: int) -> None:
        self.keep = keep
        self.start = self.stop = first  # ticks held: start ≤ tick < stop
        self._rows = np.zeros((2 * keep, columns))
        self._valid = np.zeros(2 * keep, bool)
        self._fill = 0

    def append(self, rows: FloatArray, valid: bool) -> None:
        """Append rows (n,C) for the next n ticks."""
        for begin in range(0, len(rows), self.keep):
            part = rows[begin : begin + self.keep]
            count = len(part)
            if self._fill + count > len(self._rows):
                kept = slice(self._fill - self.keep, self._fill)
                self._rows[: self.keep] = self._rows[kept].copy()
                self._valid[: self.keep] = self._valid[kept].copy()
                self._fill = self.keep
            self._rows[self._fill : self._fill + count] = part
            self._valid[self._fill : self._fill + count] = valid
            self._fill += count
            self.stop += count
        self.start = max(self.start, self.stop - self.keep)

    def window(self, first: int, stop: int) -> tuple[FloatArray, BoolArray]:
        """Return rows (n,C) and validity (n,) of ticks first … stop−1; a tick that is not held is invalid."""
        rows = np.zeros((stop - first, self._rows.shape[1]))
        valid = np.zeros(stop - first, bool)
        low, high = max(first, self.start), min(stop, self.stop)
        if low < high:
            at = self._fill - self.stop
            rows[low - first : high - first] = self._rows[low + at : high + at]
            valid[low - first : high - first] = self._valid[low + at : high + at]
        return rows, valid

    def invalidate_after(self, tick: int) -> None:
        """Mark the ticks later than `tick` as invalid."""
        at = self._fill - self.stop
        self._valid[max(tick + 1, self.start) + at : self._fill] = False

    def add(self, first: int, values: FloatArray, column: int) -> None:
        """Add values (n,) to a column from tick `first` on; ticks that are not held are ignored."""
        low, high = max(first, self.start), min(first + len(values), self.stop)
        if low < high:
            at = self._fill - self.stop
            self._rows[low + at : high + at, column] += values[low - first : high - first]
