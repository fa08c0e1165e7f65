"""What a session says about a whole video, kept so compactly that an hour of it hardly counts."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import overload

import numpy as np

from ..signal.rate import Peak
from ..types import Estimate, NoReading, Quality, Reason, Waveform
from .result import Event, WavePiece, WindowResult

_REASONS = tuple(Reason)
_SHOWN = -1.0  # in the place of a reason: there is a reading
_QUALITY_WIDTH = len(fields(Quality))
_PEAK_WIDTH = len(fields(Peak))
# One row: start, end, whether it is the second method's number, reason, bpm, low, high, p_ok, whether there
# is a peak, the peak, the quality.
_WIDTH = 9 + _PEAK_WIDTH + _QUALITY_WIDTH


class Windows(Sequence[WindowResult]):
    """The windows of one face, as rows of plain numbers: about 200 bytes each instead of 1,000."""

    def __init__(self, face: int, windows: Sequence[WindowResult] = ()) -> None:
        self.face = face
        self._rows = array("d")
        for window in windows:
            self.append(window)

    def append(self, window: WindowResult) -> None:
        reading = window.reading
        if isinstance(reading, Estimate):
            said = (_SHOWN, reading.bpm, reading.low, reading.high)
        else:
            said = (float(_REASONS.index(reading.reason)), 0.0, 0.0, 0.0)
        peak = (0.0,) * (1 + _PEAK_WIDTH) if window.peak is None else (1.0, *astuple(window.peak))
        self._rows.extend((window.start_s, window.end_s, float(window.stand_in), *said, reading.p_ok))
        self._rows.extend((*peak, *astuple(window.quality)))

    def __len__(self) -> int:
        return len(self._rows) // _WIDTH

    @overload
    def __getitem__(self, index: int) -> WindowResult: ...
    @overload
    def __getitem__(self, index: slice) -> list[WindowResult]: ...
    def __getitem__(self, index: int | slice) -> WindowResult | list[WindowResult]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index] * _WIDTH
        start_s, end_s, stand_in, reason, bpm, low, high, p_ok, has_peak, *rest = self._rows[at : at + _WIDTH]
        reading = (
            Estimate(bpm, low, high, p_ok, start_s, end_s)
            if reason == _SHOWN
            else NoReading(_REASONS[int(reason)], start_s, end_s, p_ok)
        )
        peak = Peak(*rest[:_PEAK_WIDTH]) if has_peak else None
        quality = Quality(*rest[_PEAK_WIDTH:])
        return WindowResult(self.face, start_s, end_s, reading, peak, quality, bool(stand_in))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Windows) and self.face == other.face and self._rows == other._rows

    __hash__ = None  # type: ignore[assignment]  # rows may still be added


class Wave:
    """A growing pulse wave on one clock; what lies between two pieces was not seen."""

    def __init__(self, fps: float, start_s: float) -> None:
        self.fps, self.start_s = fps, start_s
        self._values, self._valid = array("f"), bytearray()

    def append(self, piece: Waveform) -> None:
        """Add a piece that begins where the last one ended, or later."""
        gap = round((piece.start_s - self.start_s) * self.fps) - len(self._values)
        if gap > 0:
            self._values.frombytes(bytes(4 * gap))
            self._valid.extend(bytes(gap))
        self._values.frombytes(piece.values.astype(np.float32).tobytes())
        self._valid.extend(piece.valid.tobytes())

    def whole(self) -> Waveform:
        values, valid = np.frombuffer(self._values, np.float32), np.frombuffer(self._valid, np.bool_)
        return Waveform(values, self.fps, self.start_s, valid)


class Gathered:
    """The windows and the wave of every face."""

    def __init__(self) -> None:
        self.windows: dict[int, Windows] = {}
        self.waves: dict[int, Wave] = {}

    def take(self, events: Sequence[Event]) -> None:
        """Take in what one frame brought."""
        for event in events:
            if isinstance(event, WindowResult):
                self.windows.setdefault(event.face, Windows(event.face)).append(event)
            elif isinstance(event, WavePiece):
                wave = event.wave
                self.waves.setdefault(event.face, Wave(wave.fps, wave.start_s)).append(wave)
