"""The buffers of one face: samples, crops and pulse wave of the last ticks. Their size is bounded."""

from __future__ import annotations

from collections import deque

import numpy as np

from ..face.crop import to_bytes
from ..signal.median import median
from ..signal.uniform_clock import Step
from ..types import BoolArray, ByteArray, Clip, FloatArray, RgbTrace, Waveform
from .clock import Clock, History, at_ticks
from .config import SessionConfig
from .skin_sampler import COLUMNS
from .window_samples import WindowContext, WindowSamples

# Columns of the history: the sample of the skin, the background, and the wave as weighted sum and weight.
_X, _Y, _FACE_PX, _CLIPPED = (COLUMNS.index(name) for name in ("x", "y", "face_px", "clipped"))
_BACKGROUND = slice(len(COLUMNS), len(COLUMNS) + 3)
_WAVE, _WEIGHT = len(COLUMNS) + 3, len(COLUMNS) + 4
_WIDTH = len(COLUMNS) + 5
_NO_BACKGROUND = np.full(3, -1.0)
_NO_CROP = np.zeros((0, 0, 3), np.float32)


class FaceState:
    """The last ticks of one face on the uniform clock."""

    def __init__(self, clock: Clock, first_tick: int, config: SessionConfig) -> None:
        self.clock = clock
        self._crop_px = config.crop_px
        self._history = History(_WIDTH, config.keep_ticks, first_tick)
        self._crops: deque[ByteArray] | None = deque(maxlen=config.keep_ticks) if config.wants_clip else None
        self._previous: tuple[FloatArray, FloatArray] | None = None  # row and crop of the previous frame
        self._emitted = first_tick  # `next_wave` has returned the ticks before this one

    @property
    def first_tick(self) -> int:
        """The oldest tick that is held."""
        return self._history.start

    @property
    def stop_tick(self) -> int:
        """The tick after the newest one."""
        return self._history.stop

    @property
    def last_crop(self) -> ByteArray | None:
        """The crop of the last frame; None if the face was absent in it."""
        return None if self._previous is None else to_bytes(self._previous[1])

    def append(
        self, step: Step, sample: FloatArray, background: FloatArray | None, crop: FloatArray | None = None
    ) -> list[ByteArray]:
        """Interpolate the sample of a frame to the ticks of `step` and return the crops of these ticks.

        `sample` (7,) is a row of the skin sampler. Without a crop the list is empty.
        """
        row = np.zeros(_WIDTH)
        row[: len(COLUMNS)] = sample
        row[_BACKGROUND] = _NO_BACKGROUND if background is None else background
        new = _NO_CROP if crop is None else crop
        old_row, old = self._previous or (row, new)
        self._previous = (row, new)
        self._history.append(at_ticks(step, old_row, row), step.seen)
        if crop is None:
            return []
        crops = [to_bytes(crop_at) for crop_at in at_ticks(step, old, new)]
        if self._crops is not None:
            self._crops.extend(crops)
        return crops

    def append_absence(self, step: Step) -> None:
        """Append the ticks of a frame in which the face is absent."""
        count = len(step.weights)
        self._history.append(np.zeros((count, _WIDTH)), False)
        self._previous = None
        if self._crops is not None:
            self._crops.extend([np.zeros((self._crop_px, self._crop_px, 3), np.uint8)] * count)

    def rows(self) -> tuple[FloatArray, BoolArray]:
        """Return all ticks that are held: rows (T,C) of sampler and background, and which are valid (T,)."""
        rows, seen = self._history.window(self.first_tick, self.stop_tick)
        return rows[:, :_WAVE], seen

    def restore(self, rows: FloatArray, seen: BoolArray) -> None:
        """Append the ticks that `rows` of another state returned."""
        wide = np.zeros((1, _WIDTH))
        for row, valid in zip(rows, seen, strict=True):
            wide[0, :_WAVE] = row
            self._history.append(wide, bool(valid))

    def invalidate_after(self, t_s: float) -> None:
        """Mark the samples after `t_s` as invalid, because the face was not there."""
        tick = int(np.floor((t_s - self.clock.origin_s) * self.clock.fps + 1e-6))
        self._history.invalidate_after(tick)

    def samples(self, first: int, stop: int) -> WindowSamples:
        """Return the samples of ticks first … stop−1; ticks that are not held are invalid."""
        rows, seen = self._history.window(first, stop)
        fps, start_s, end_s = self.clock.fps, self.clock.time_s(first), self.clock.time_s(stop)
        skin = RgbTrace(rows[:, :3], fps, start_s, seen)
        has_background = seen & (rows[:, _BACKGROUND] >= 0).all(1)
        background = RgbTrace(rows[:, _BACKGROUND], fps, start_s, has_background)
        true_fps, max_gap_s = self.clock.frame_timing(start_s, end_s)
        return WindowSamples(
            skin=skin,
            background=background if has_background.any() else None,
            centre=rows[:, [_X, _Y]],
            coverage=float(seen.mean()),
            face_px=float(median(rows[seen, _FACE_PX])) if seen.any() else 0.0,
            clipped=float(rows[seen, _CLIPPED].mean()) if seen.any() else 0.0,
            fps=true_fps,
            max_gap_s=max_gap_s,
            end_s=end_s,
            wave=self.wave(first, stop),
            clip=self._clip(first, skin) if self._crops and seen.any() else None,
        )

    def context(self, first: int, stop: int, reach: int) -> WindowContext | None:
        """Return the samples up to `reach` ticks around a window; None if the face was not seen there.

        They begin and end where the face was seen, because a spectrum weights the middle of its input most.
        """
        begin, end = first - reach, stop + reach
        _, seen = self._history.window(begin, end)
        extra_s = float(seen.sum() - seen[reach : len(seen) - reach].sum()) / self.clock.fps
        if extra_s <= 0:
            return None
        first_seen, last_seen = np.flatnonzero(seen)[[0, -1]].tolist()
        return WindowContext(self.samples(begin + first_seen, begin + last_seen + 1), extra_s)

    def add_wave(self, first: int, weighted: FloatArray, weights: FloatArray) -> None:
        """Add weighted values (n,) and their weights (n,) to the pulse wave, from tick `first` on."""
        self._history.add(first, weighted, _WAVE)
        self._history.add(first, weights, _WEIGHT)

    def overlap_add(self, first: int, wave: Waveform) -> None:
        """Add the wave of one window to the pulse wave, with unit variance and smooth ends."""
        spread = float(wave.values[wave.valid].std()) if wave.valid.any() else 0.0
        if spread > 0:
            count = len(wave.values)
            fade = np.sin(np.pi * (np.arange(count) + 0.5) / count) ** 2 + 1e-3
            self.add_wave(first, fade * wave.values / spread, fade)

    def wave(self, first: int, stop: int) -> Waveform:
        """Return the pulse wave of ticks first … stop−1 as far as it is known."""
        rows, seen = self._history.window(first, stop)
        known = seen & (rows[:, _WEIGHT] > 0)
        values = np.where(known, rows[:, _WAVE] / np.where(known, rows[:, _WEIGHT], 1.0), 0.0)
        return Waveform(values, self.clock.fps, self.clock.time_s(first), known)

    def slow_signals(self, wave: Waveform) -> FloatArray:
        """Return (T,2) at the times of a piece of the wave: log of green over red, and height of the face."""
        first = round((wave.start_s - self.clock.origin_s) * self.clock.fps)
        rows, _ = self._history.window(first, first + len(wave.values))
        red, green = np.maximum(rows[:, 0], 1.0), np.maximum(rows[:, 1], 1.0)
        return np.stack([np.log(green / red), rows[:, _Y]], 1)

    def next_wave(self, stop: int) -> Waveform | None:
        """Return the pulse wave before tick `stop` that was not returned yet; None if there is none."""
        first, stop = max(self._emitted, self.first_tick), min(stop, self.stop_tick)
        if stop <= first:
            return None
        self._emitted = stop
        return self.wave(first, stop)

    def recent_wave(self, seconds: float) -> Waveform:
        """Return the last seconds of the pulse wave; later windows may still change its end."""
        return self.wave(self.stop_tick - round(seconds * self.clock.fps), self.stop_tick)

    def recent_path(self, seconds: float) -> FloatArray:
        """Return the position of the face in the last seconds, (T,2) right and down, in face widths."""
        rows, _ = self._history.window(self.stop_tick - round(seconds * self.clock.fps), self.stop_tick)
        return rows[:, [_X, _Y]]

    def _clip(self, first: int, skin: RgbTrace) -> Clip:
        """Return the crops of a window; ticks before the first crop repeat it and are invalid."""
        held = list(self._crops or ())
        oldest = self.stop_tick - len(held)
        index = np.clip(np.arange(first, first + len(skin.valid)) - oldest, 0, len(held) - 1)
        return Clip(np.stack([held[int(i)] for i in index]), skin.t_s, skin.fps, skin.valid)
