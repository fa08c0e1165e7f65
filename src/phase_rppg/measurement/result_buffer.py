"""What a session says about a whole video, kept so compactly that an hour of it hardly counts.

It is kept in small blocks that never move: one large array that grows is copied again and again, and the
holes that its copies leave behind are larger than what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ..session.results import Event, FaceEvent, WavePiece, WindowResult
from ..signal.rate import Peak
from ..types import Estimate, NoReading, Quality, Reading, Reason, Waveform

_REASONS = tuple(Reason)
_SHOWN = -1.0  # in the place of a reason: there is a reading
_QUALITY_WIDTH = len(fields(Quality))
_PEAK_WIDTH = len(fields(Peak))
_quality_row = attrgetter(*(field.name for field in fields(Quality)))
_peak_row = attrgetter(*(field.name for field in fields(Peak)))
# One row: start, end, reason, bpm, low, high, p_ok, whether there is a peak, the peak, the quality.
_WIDTH = 8 + _PEAK_WIDTH + _QUALITY_WIDTH
_SAID = slice(2, 7)
_BLOCK_BYTES = 2048  # small: it fits into gaps of the heap, and a face that soon leaves costs little


class _Blocks:
    """A list of equal rows of plain numbers in blocks of fixed size."""

    def __init__(self, dtype: npt.DTypeLike, width: int = 1) -> None:
        self._empty = np.zeros((0, width), dtype)
        self._block_rows = _BLOCK_BYTES // (width * self._empty.itemsize)
        self._blocks: list[npt.NDArray[Any]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> npt.NDArray[Any]:
        block, row = divmod(range(self._count)[index], self._block_rows)
        return self._blocks[block][row]

    def extend(self, rows: npt.ArrayLike) -> None:
        """Add rows (n, width)."""
        left = np.asarray(rows)
        while len(left):
            row = self._count % self._block_rows
            if row == 0:
                self._blocks.append(np.empty((self._block_rows, *self._empty.shape[1:]), self._empty.dtype))
            fits = left[: self._block_rows - row]
            self._blocks[-1][row : row + len(fits)] = fits
            self._count += len(fits)
            left = left[len(fits) :]

    def whole(self) -> npt.NDArray[Any]:
        """All rows as one array (n, width), a copy."""
        return np.concatenate([self._empty, *self._blocks])[: self._count]


class WindowTable(Sequence[WindowResult]):
    """The windows of one face, as rows of plain numbers: about 200 bytes each instead of 1,000."""

    def __init__(self, face: int, windows: Iterable[WindowResult] = ()) -> None:
        self.face = face
        self._rows = _Blocks(np.float64, _WIDTH)
        for window in windows:
            self.append(window)

    def append(self, window: WindowResult) -> None:
        peak = (0.0,) * (1 + _PEAK_WIDTH) if window.peak is None else (1.0, *_peak_row(window.peak))
        head = (window.start_s, window.end_s, *_said(window.reading))
        self._rows.extend([(*head, *peak, *_quality_row(window.quality))])

    def change(self, index: int, reading: Reading) -> None:
        """Give a window another reading."""
        self._rows[index][_SAID] = _said(reading)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> WindowResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[WindowResult]: ...
    def __getitem__(self, index: int | slice) -> WindowResult | list[WindowResult]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        start_s, end_s, reason, bpm, low, high, p_ok, has_peak, *rest = self._rows[index].tolist()
        reading = (
            Estimate(bpm, low, high, p_ok, start_s, end_s)
            if reason == _SHOWN
            else NoReading(_REASONS[int(reason)], start_s, end_s, p_ok)
        )
        peak = Peak(*rest[:_PEAK_WIDTH]) if has_peak else None
        quality = Quality(*rest[_PEAK_WIDTH:])
        return WindowResult(self.face, start_s, end_s, reading, peak, quality)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WindowTable)
            and self.face == other.face
            and np.array_equal(self._rows.whole(), other._rows.whole())
        )

    __hash__ = None  # type: ignore[assignment]  # rows may still be added


def _said(reading: Reading) -> tuple[float, float, float, float, float]:
    """A reading as numbers: why there is none, bpm, low, high, p_ok."""
    if isinstance(reading, Estimate):
        return _SHOWN, reading.bpm, reading.low, reading.high, reading.p_ok
    return float(_REASONS.index(reading.reason)), 0.0, 0.0, 0.0, reading.p_ok


class WaveBuffer:
    """A growing pulse wave on one clock; what lies between two pieces was not seen."""

    def __init__(self, fps: float, start_s: float) -> None:
        self.fps, self.start_s = fps, start_s
        self._values, self._valid = _Blocks(np.float32), _Blocks(np.bool_)

    def append(self, piece: Waveform) -> None:
        """Add a piece that begins where the last one ended, or later."""
        gap = round((piece.start_s - self.start_s) * self.fps) - len(self._values)
        if gap > 0:
            self._values.extend(np.zeros((gap, 1), np.float32))
            self._valid.extend(np.zeros((gap, 1), bool))
        self._values.extend(piece.values[:, None])
        self._valid.extend(piece.valid[:, None])

    def whole(self) -> Waveform:
        return Waveform(self._values.whole()[:, 0], self.fps, self.start_s, self._valid.whole()[:, 0])


class ResultBuffer:
    """The windows and the wave of every face, and when it was lost."""

    def __init__(self) -> None:
        self.windows: dict[int, WindowTable] = {}
        self.waves: dict[int, WaveBuffer] = {}
        self.lost_s: dict[int, list[float]] = {}

    def take(self, events: Sequence[Event]) -> None:
        """Take in what one frame brought."""
        for event in events:
            if isinstance(event, WindowResult):
                self.windows.setdefault(event.face, WindowTable(event.face)).append(event)
            elif isinstance(event, WavePiece):
                wave = event.wave
                self.waves.setdefault(event.face, WaveBuffer(wave.fps, wave.start_s)).append(wave)
            elif isinstance(event, FaceEvent) and event.kind == "lost":
                self.lost_s.setdefault(event.face, []).append(event.t_s)
