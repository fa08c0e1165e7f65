"""Store the events of a whole video compactly: about 1 MB for an hour of windows.

Rows are stored in small blocks that are never moved. An array that grows would be copied repeatedly, and the
freed copies would fragment the heap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ..face.crop import resize_area, square
from ..picture import AnyFrame, picture_of
from ..session.results import Event, FaceEvent, FacePosition, WavePiece, WindowResult
from ..signal.breathing import SlowSignals
from ..signal.rate import Peak
from ..types import ByteArray, Estimate, FaceTrack, FloatArray, NoReading, Quality, Reading, Reason, Waveform

_REASONS = tuple(Reason)
_SHOWN = -1.0  # in the column of the reason: there is an estimate
_QUALITY_WIDTH = len(fields(Quality))
_PEAK_WIDTH = len(fields(Peak))
_quality_row = attrgetter(*(field.name for field in fields(Quality)))
_peak_row = attrgetter(*(field.name for field in fields(Peak)))
# One row: start, end, reason, bpm, low, high, p_ok, p_alive, whether there is a peak, the peak, the quality.
_WIDTH = 9 + _PEAK_WIDTH + _QUALITY_WIDTH
_READING = slice(2, 8)
SLOW_HZ = 5.0  # rate of the slow signals, which show breathing
BOX_INTERVAL_S = 1.0  # time between two stored boxes of a face
THUMBNAIL_PX = 96  # side of the picture of a face
_BLOCK_BYTES = 2048  # small: a block fits into gaps of the heap, and a face with few windows needs few


class _Blocks:
    """A growing list of rows of numbers, in blocks of fixed size."""

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
        """Append rows (n, width)."""
        left = np.asarray(rows)
        while len(left):
            row = self._count % self._block_rows
            if row == 0:
                self._blocks.append(np.empty((self._block_rows, *self._empty.shape[1:]), self._empty.dtype))
            fits = left[: self._block_rows - row]
            self._blocks[-1][row : row + len(fits)] = fits
            self._count += len(fits)
            left = left[len(fits) :]

    def to_array(self) -> npt.NDArray[Any]:
        """Return all rows as one array (n, width), a copy."""
        return np.concatenate([self._empty, *self._blocks])[: self._count]


class WindowTable(Sequence[WindowResult]):
    """The windows of one face as rows of numbers: about 200 bytes each instead of 1,000."""

    def __init__(self, face: int, windows: Iterable[WindowResult] = ()) -> None:
        self.face = face
        self._rows = _Blocks(np.float64, _WIDTH)
        for window in windows:
            self.append(window)

    def append(self, window: WindowResult) -> None:
        """Append a window."""
        peak = (0.0,) * (1 + _PEAK_WIDTH) if window.peak is None else (1.0, *_peak_row(window.peak))
        head = (window.start_s, window.end_s, *_reading_row(window.reading))
        self._rows.extend([(*head, *peak, *_quality_row(window.quality))])

    def replace_reading(self, index: int, reading: Reading) -> None:
        """Replace the reading of a window."""
        self._rows[index][_READING] = _reading_row(reading)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> WindowResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[WindowResult]: ...
    def __getitem__(self, index: int | slice) -> WindowResult | list[WindowResult]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        start_s, end_s, reason, bpm, low, high, p_ok, p_alive, has_peak, *rest = self._rows[index].tolist()
        reading = (
            Estimate(bpm, low, high, p_ok, start_s, end_s, p_alive=p_alive)
            if reason == _SHOWN
            else NoReading(_REASONS[int(reason)], start_s, end_s, p_ok, bpm or None, p_alive=p_alive)
        )
        peak = Peak(*rest[:_PEAK_WIDTH]) if has_peak else None
        quality = Quality(*rest[_PEAK_WIDTH:])
        return WindowResult(self.face, start_s, end_s, reading, peak, quality)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, WindowTable)
            and self.face == other.face
            and np.array_equal(self._rows.to_array(), other._rows.to_array())
        )

    __hash__ = None  # type: ignore[assignment]  # rows may still be added


def _reading_row(reading: Reading) -> tuple[float, ...]:
    """Return a reading as numbers: index of the reason, (probable) bpm, low, high, p_ok, p_alive."""
    chances = (reading.p_ok, reading.p_alive)
    if isinstance(reading, Estimate):
        return _SHOWN, reading.bpm, reading.low, reading.high, *chances
    return float(_REASONS.index(reading.reason)), reading.probable_bpm or 0.0, 0.0, 0.0, *chances


class WaveBuffer:
    """A growing pulse wave on one clock; samples between two pieces are invalid."""

    def __init__(self, fps: float, start_s: float) -> None:
        self.fps, self.start_s = fps, start_s
        self._values, self._valid = _Blocks(np.float32), _Blocks(np.bool_)

    def append(self, piece: Waveform) -> None:
        """Append a piece that begins at the end of the previous one or later."""
        gap = round((piece.start_s - self.start_s) * self.fps) - len(self._values)
        if gap > 0:
            self._values.extend(np.zeros((gap, 1), np.float32))
            self._valid.extend(np.zeros((gap, 1), bool))
        self._values.extend(piece.values[:, None])
        self._valid.extend(piece.valid[:, None])

    def to_waveform(self) -> Waveform:
        """Return the whole wave."""
        return Waveform(self._values.to_array()[:, 0], self.fps, self.start_s, self._valid.to_array()[:, 0])


class SlowBuffer:
    """Colour and height of a face at SLOW_HZ, as means of the samples of the pulse wave."""

    def __init__(self, fps: float, start_s: float) -> None:
        self.fps, self.start_s = fps, start_s
        self._group = max(round(fps / SLOW_HZ), 1)
        self._rows = _Blocks(np.float32, 3)  # colour, height, share of valid samples
        self._waiting = np.zeros((0, 3))
        self._count = 0  # samples so far

    def append(self, wave: Waveform, slow: FloatArray) -> None:
        """Append the slow signals (T,2) of a piece of the wave; samples between two pieces are invalid."""
        gap = max(round((wave.start_s - self.start_s) * self.fps) - self._count, 0)
        rows = np.column_stack([slow * wave.valid[:, None], wave.valid])
        rows = np.concatenate([self._waiting, np.zeros((gap, 3)), rows])
        self._count += gap + len(wave.values)
        whole = len(rows) // self._group * self._group
        sums = rows[:whole].reshape(-1, self._group, 3).sum(1)
        seen = np.maximum(sums[:, 2:], 1.0)
        self._rows.extend(np.concatenate([sums[:, :2] / seen, sums[:, 2:] / self._group], 1))
        self._waiting = rows[whole:]

    def to_signals(self) -> SlowSignals:
        """Return the signals; the height is absent if it was never known."""
        rows = self._rows.to_array().astype(np.float64)
        hz = self.fps / self._group
        start_s = self.start_s + (self._group - 1) / 2 / self.fps  # the middle of the first group
        known = np.isfinite(rows[:, 1]).all()
        valid = rows[:, 2] >= 0.5  # at least half of the samples
        return SlowSignals(rows[:, 0], rows[:, 1] if known else None, hz, start_s, valid)


class BoxBuffer:
    """The box of one face over time: one row per second, and one when the face is lost."""

    def __init__(self) -> None:
        self._rows = _Blocks(np.float64, 6)  # t_s, x, y, width, height, present

    def add(self, position: FacePosition) -> None:
        """Add the position of the face, unless the last one is less than a second old."""
        if not len(self._rows) or position.t_s - self._rows[-1][0] >= BOX_INTERVAL_S or not self._rows[-1][5]:
            self._rows.extend([(position.t_s, *position.box, 1.0)])

    def add_loss(self, t_s: float) -> None:
        """Record that the face is absent from `t_s` on."""
        if len(self._rows):
            self._rows.extend([(t_s, *self._rows[-1][1:5].tolist(), 0.0)])

    def to_track(self, face: int) -> FaceTrack:
        """Return all boxes."""
        rows = self._rows.to_array()
        return FaceTrack(face, rows[:, 0], rows[:, 1:5], rows[:, 5] > 0)


class ResultBuffer:
    """The windows, the wave and the boxes of every face, its picture and the times at which it was lost."""

    def __init__(self) -> None:
        self.boxes: dict[int, BoxBuffer] = {}
        self.thumbnails: dict[int, ByteArray] = {}
        self.windows: dict[int, WindowTable] = {}
        self.waves: dict[int, WaveBuffer] = {}
        self.slow: dict[int, SlowBuffer] = {}
        self.lost_s: dict[int, list[float]] = {}

    def add(self, events: Sequence[Event], frame: AnyFrame | None = None) -> None:
        """Add the events of one frame; with the frame, the first picture of each face is kept."""
        for event in events:
            if isinstance(event, WindowResult):
                self.windows.setdefault(event.face, WindowTable(event.face)).append(event)
            elif isinstance(event, WavePiece):
                wave = event.wave
                self.waves.setdefault(event.face, WaveBuffer(wave.fps, wave.start_s)).append(wave)
                if event.slow is not None:
                    slow = self.slow.setdefault(event.face, SlowBuffer(wave.fps, wave.start_s))
                    slow.append(wave, event.slow)
            elif isinstance(event, FaceEvent) and event.kind == "lost":
                self.lost_s.setdefault(event.face, []).append(event.t_s)
                if event.face in self.boxes:
                    self.boxes[event.face].add_loss(event.t_s)
            elif isinstance(event, FacePosition):
                self.boxes.setdefault(event.face, BoxBuffer()).add(event)
                if frame is not None and event.face not in self.thumbnails:
                    self.thumbnails[event.face] = resize_area(
                        picture_of(frame), square(event.box), THUMBNAIL_PX
                    )
