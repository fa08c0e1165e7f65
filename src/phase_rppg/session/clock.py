"""From irregular frames onto one uniform clock, frame by frame, with a bounded memory.

Tick n of a session is at first frame + n / fps, for all faces and all windows. A tick between two frames is
their linear blend; a tick inside a pause longer than MAX_GAP_S is marked as not seen.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from ..signal.constants import CLOCK_TOLERANCE
from ..signal.uniform_clock import Step, UniformClock
from ..types import BoolArray, FloatArray


class Clock(UniformClock):
    """A uniform clock that also keeps the frame times of the last window."""

    def __init__(self, fps: float, memory_s: float) -> None:
        super().__init__(fps)
        self._memory_s = memory_s
        self.frame_times: deque[float] = deque()

    def advance(self, t_s: float) -> Step:
        """Take the time of the next frame, which must be later than the last one."""
        step = super().advance(t_s)
        self.frame_times.append(t_s)
        while t_s - self.frame_times[0] > self._memory_s:
            self.frame_times.popleft()
        return step

    def pace(self, start_s: float, end_s: float) -> tuple[float, float]:
        """(true frames per second, longest pause in s) between two times; pauses at the ends count."""
        times = [t for t in self.frame_times if start_s - CLOCK_TOLERANCE <= t <= end_s + CLOCK_TOLERANCE]
        if len(times) < 2:
            return 0.0, end_s - start_s
        gaps = np.diff([start_s, *times, max(end_s - 1 / self.fps, times[-1])])
        return (len(times) - 1) / (times[-1] - times[0]), float(gaps.max())


class History:
    """The last ticks of some columns of numbers, as plain arrays; older ones are forgotten."""

    def __init__(self, columns: int, keep: int, first: int) -> None:
        self.keep = keep
        self.start = self.stop = first  # ticks held: start ≤ tick < stop
        self._rows = np.zeros((2 * keep, columns))
        self._seen = np.zeros(2 * keep, bool)
        self._fill = 0

    def append(self, rows: FloatArray, seen: bool) -> None:
        """Add rows (n,C) for the next n ticks."""
        for begin in range(0, len(rows), self.keep):
            part = rows[begin : begin + self.keep]
            count = len(part)
            if self._fill + count > len(self._rows):
                kept = slice(self._fill - self.keep, self._fill)
                self._rows[: self.keep] = self._rows[kept].copy()
                self._seen[: self.keep] = self._seen[kept].copy()
                self._fill = self.keep
            self._rows[self._fill : self._fill + count] = part
            self._seen[self._fill : self._fill + count] = seen
            self._fill += count
            self.stop += count
        self.start = max(self.start, self.stop - self.keep)

    def window(self, first: int, stop: int) -> tuple[FloatArray, BoolArray]:
        """Rows (n,C) and what was seen (n,) for ticks first … stop−1; not held is not seen."""
        rows = np.zeros((stop - first, self._rows.shape[1]))
        seen = np.zeros(stop - first, bool)
        low, high = max(first, self.start), min(stop, self.stop)
        if low < high:
            at = self._fill - self.stop
            rows[low - first : high - first] = self._rows[low + at : high + at]
            seen[low - first : high - first] = self._seen[low + at : high + at]
        return rows, seen

    def forget_after(self, tick: int) -> None:
        """Mark ticks later than `tick` as not seen: the face had gone, as we know now."""
        at = self._fill - self.stop
        self._seen[max(tick + 1, self.start) + at : self._fill] = False

    def add(self, first: int, values: FloatArray, column: int) -> None:
        """Add values (n,) to a column, for the ticks from `first` that are held."""
        low, high = max(first, self.start), min(first + len(values), self.stop)
        if low < high:
            at = self._fill - self.stop
            self._rows[low + at : high + at, column] += values[low - first : high - first]
