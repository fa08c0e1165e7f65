"""Everything a session keeps about one face: the last window of its signals, and nothing that grows."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from .. import registry
from ..face.crop import to_bytes
from ..face.tracker import Track
from ..signal import rate
from ..signal.motion_removal import without_motion
from ..signal.rate import Spectrum
from ..signal.rate_tracking import RateTracker, Tracked
from ..signal.uniform_clock import Step
from ..types import ByteArray, Clip, FloatArray, RgbTrace, Waveform
from .calibration import load
from .clock import Clock, History
from .config import SessionConfig
from .gate import Gate
from .pulse_model import PulseModel
from .results import WavePiece, WindowResult
from .skin_sampler import COLUMNS, SkinSampler
from .window_quality import Window, assess

# Columns of the history: what the meter gives, the background, and the wave as sum and weight.
_X, _Y, _FACE_PX, _CLIPPED = (COLUMNS.index(name) for name in ("x", "y", "face_px", "clipped"))
_BACKGROUND = slice(len(COLUMNS), len(COLUMNS) + 3)
_WAVE, _WEIGHT = len(COLUMNS) + 3, len(COLUMNS) + 4
_WIDTH = len(COLUMNS) + 5
_NO_BACKGROUND = np.full(3, -1.0)
_NO_PICTURE = np.zeros((0, 0, 3), np.float32)
_BATCH = 6  # pictures that a network gets at once
# How much the time around a window counts beside the window itself, and how much more of the face that takes.
_CONTEXT_WEIGHT, _CONTEXT_FULL_S = 1.5, 5.0
_SHORTEST_WAVE_S = 2.0  # less of a face than this in a window gives no wave


class FaceState:
    """One face of a session."""

    def __init__(
        self, track: Track, rgb: ByteArray, clock: Clock, first_tick: int, config: SessionConfig
    ) -> None:
        self.track, self.config, self.clock = track, config, clock
        self.announced = False
        self.windows = 0
        self.meter = SkinSampler(track, rgb, config.crop_px)
        self._history = History(_WIDTH, config.keep_ticks, first_tick)
        self._rates = RateTracker()
        self._own_rates = RateTracker()  # without the second method
        self._gate = Gate(load(config.method), gated=config.gated)
        self._emitted = first_tick  # ticks of the wave that were handed out
        self._before: tuple[FloatArray, FloatArray] | None = None  # row and picture of the frame before
        self._pictures: deque[ByteArray] | None = (
            deque(maxlen=config.keep_ticks) if config.wants_clip else None
        )
        self._model: PulseModel | None = config.model.fresh() if config.model is not None else None
        self._to_skip = self._model.delay_frames if self._model is not None else 0
        self._fed = False  # whether the network has a past
        self._pending: list[ByteArray] = []  # pictures that wait for the network
        self._pending_first = first_tick
        self.answered = first_tick  # the network has seen the pictures before this tick

    def frame(self, rgb: ByteArray, t_s: float, step: Step, background: FloatArray | None) -> None:
        """Take in a frame in which the face is present."""
        row = np.zeros(_WIDTH)
        row[: len(COLUMNS)] = self.meter.measure(rgb, t_s)
        row[_BACKGROUND] = _NO_BACKGROUND if background is None else background
        looks = self._pictures is not None or self._model is not None
        picture = self.meter.cut(rgb) if looks else _NO_PICTURE
        before_row, before_picture = self._before or (row, picture)
        self._history.append(before_row + step.shares[:, None] * (row - before_row), step.seen)
        if looks:
            for tick, share in enumerate(step.shares, step.first):
                blend = before_picture + np.float32(share) * (picture - before_picture)
                self._picture(tick, to_bytes(blend), step.seen)
        self._before = (row, picture)

    def absent(self, step: Step) -> None:
        """Take in a frame without the face."""
        self._history.append(np.zeros((len(step.shares), _WIDTH)), False)
        self._before = None
        for tick in range(step.first, step.first + len(step.shares)):
            self._picture(tick, np.zeros((self.meter.size, self.meter.size, 3), np.uint8), False)

    def lose(self, seen_s: float) -> None:
        """The face has been gone since `seen_s`: what was measured after that was not the face."""
        tick = int(np.floor((seen_s - self.clock.origin_s) * self.clock.fps + 1e-6))
        self._history.forget_after(tick)
        self._gate.lost(seen_s)

    def window(self, first: int, stop: int) -> list[WindowResult]:
        """The result of the window of ticks first … stop−1, if the face was seen in it."""
        self._run_model()
        rows, seen = self._history.window(first, stop)
        if not seen.any() or not self.track.confirmed:
            return []
        fps, start_s, end_s = self.clock.fps, self.clock.time_s(first), self.clock.time_s(stop)
        skin = RgbTrace(rows[:, :3], fps, start_s, seen)
        centre = rows[:, [_X, _Y]]
        wave = without_motion(self._wave(rows, skin, first), centre)
        true_fps, max_gap_s = self.clock.pace(start_s, end_s)
        lit = seen & (rows[:, _BACKGROUND] >= 0).all(1)
        background = RgbTrace(rows[:, _BACKGROUND], fps, start_s, lit) if lit.any() else None
        seen_window = Window(
            wave=wave,
            skin=skin,
            background=background,
            centre=centre,
            method=self.config.method,
            coverage=float(seen.mean()),
            face_px=float(np.median(rows[seen, _FACE_PX])),
            clipped=float(rows[seen, _CLIPPED].mean()),
            fps=true_fps,
            max_gap_s=max_gap_s,
        )
        waves = [wave, *self._second(skin, centre)]
        # One heart: both waves speak for one path and one number. Whether to believe it is asked of the wave
        # and its own path: a lamp or a step is in both waves, so that they agree is no proof of a heart.
        waves = [one for one in waves if one.valid.any()]
        spectra = [rate.spectrum(one) for one in waves]
        around, weight = self._around(first, stop)
        tracked = _follow(self._rates, spectra, around, weight, end_s) if spectra else None
        peak, quality = assess(seen_window, tracked)
        if peak is not None and tracked is not None:
            peaks = [rate.spectral_peak(one, near_bpm=tracked.bpm) for one in waves]
            peak = replace(peak, bpm=rate.joint_bpm([one for one in peaks if one is not None]))
            if len(waves) > 1:
                _follow(self._own_rates, spectra[:1], around[:1], weight, end_s)
                quality = replace(quality, support=self._own_rates.support(tracked.bpm))
        reading = self._gate.push(peak, quality, start_s, end_s)
        self.windows += 1
        return [WindowResult(self.track.id, start_s, end_s, reading, peak, quality)]

    def _second(self, skin: RgbTrace, centre: FloatArray) -> list[Waveform]:
        """The wave of the method that reads along with a network, without motion, if there is one."""
        if self._model is None or self.config.second is None:
            return []
        return [without_motion(self._extract(self.config.second, skin), centre)]

    def _around(self, first: int, stop: int) -> tuple[list[Spectrum], float]:
        """The spectra of a window with the time around it, and how much they count: not at all where that has
        no more of the face."""
        reach = self.config.context_ticks
        if not reach or self.config.wants_clip:
            return [], 0.0
        rows, seen = self._history.window(first - reach, stop + reach)
        new_s = float(seen.sum() - seen[reach:-reach].sum()) / self.clock.fps
        if new_s <= 0:
            return [], 0.0
        # From where the face comes to where it goes: a spectrum weighs the middle of what it is given.
        begin, end = np.flatnonzero(seen)[[0, -1]] + (0, 1)
        rows, seen = rows[begin:end], seen[begin:end]
        skin = RgbTrace(rows[:, :3], self.clock.fps, self.clock.time_s(first - reach + begin), seen)
        centre = rows[:, [_X, _Y]]
        network, method = self._model is not None, self.config.method
        wave = _network_wave(rows, skin) if network else self._extract(method, skin)
        waves = [without_motion(wave, centre), *self._second(skin, centre)]
        weight = _CONTEXT_WEIGHT * min(1.0, new_s / _CONTEXT_FULL_S)
        return [rate.spectrum(one) for one in waves if one.valid.any()], weight

    def complete_wave(self, first: int, stop: int) -> None:
        """Let the whole wave reach the last tick, which the last window may have missed."""
        self._run_model()
        rows, seen = self._history.window(first, stop)
        self._wave(rows, RgbTrace(rows[:, :3], self.clock.fps, self.clock.time_s(first), seen), first)

    def piece(self, stop: int) -> list[WavePiece]:
        """The wave up to tick `stop`, as far as it was not handed out yet."""
        first, stop = max(self._emitted, self._history.start), min(stop, self._history.stop)
        if stop <= first:
            return []
        self._emitted = stop
        return [WavePiece(self.track.id, self._known_wave(first, stop))]

    def recent(self, seconds: float) -> Waveform:
        """The last seconds of the wave as far as it is known; its end may still change a little."""
        stop = self._history.stop
        return self._known_wave(stop - round(seconds * self.clock.fps), stop)

    def path(self, seconds: float) -> FloatArray:
        """Where the face was in the last seconds, (T,2) right and down, in face widths."""
        stop = self._history.stop
        rows, _ = self._history.window(stop - round(seconds * self.clock.fps), stop)
        return rows[:, [_X, _Y]]

    def flush(self) -> None:
        """Make a network answer for the last pictures, by repeating the last one for as long as its delay."""
        if self._model is not None and self._model.delay_frames and self._before is not None:
            self._run_model()
            self._pending_first = self._history.stop
            self._pending = [to_bytes(self._before[1])] * self._model.delay_frames
            self._run_model()

    @property
    def model(self) -> PulseModel | None:
        """The network as it stands, with what it remembers of this face."""
        return self._model

    @property
    def first_tick(self) -> int:
        return self._history.start

    def _known_wave(self, first: int, stop: int) -> Waveform:
        rows, seen = self._history.window(first, stop)
        known = seen & (rows[:, _WEIGHT] > 0)
        values = np.where(known, rows[:, _WAVE] / np.where(known, rows[:, _WEIGHT], 1.0), 0.0)
        return Waveform(values, self.clock.fps, self.clock.time_s(first), known)

    def _wave(self, rows: FloatArray, skin: RgbTrace, first: int) -> Waveform:
        """The wave of the window, from the network or the method; windows add up to the whole wave."""
        if self._model is not None:
            return _network_wave(rows, skin)
        wave = self._extract(
            self.config.method, skin, self._clip(len(rows), first, skin) if self.config.wants_clip else None
        )
        spread = float(wave.values[wave.valid].std()) if wave.valid.any() else 0.0
        if spread > 0:
            fade = np.sin(np.pi * (np.arange(len(rows)) + 0.5) / len(rows)) ** 2 + 1e-3
            self._history.add(first, fade * wave.values / spread, _WAVE)
            self._history.add(first, fade, _WEIGHT)
        return wave

    def _extract(self, method: str, skin: RgbTrace, clip: Clip | None = None) -> Waveform:
        """The wave that a method finds in the skin's colour, or in its pictures."""
        if skin.valid.sum() < _SHORTEST_WAVE_S * skin.fps:
            nothing = np.zeros(len(skin.valid))
            return Waveform(nothing, skin.fps, skin.start_s, nothing.astype(bool))
        wave: Waveform = registry.load("methods", method).extract(skin if clip is None else clip)
        return wave

    def _clip(self, count: int, first: int, skin: RgbTrace) -> Clip:
        """The pictures of a window; ticks before the face came hold the first picture and are not valid."""
        assert self._pictures is not None
        newest = self._history.stop
        held = list(self._pictures)
        index = np.clip(np.arange(first, first + count) - (newest - len(held)), 0, len(held) - 1)
        pixels = np.stack([held[int(i)] for i in index])
        return Clip(pixels, skin.t_s, skin.fps, skin.valid)

    def _picture(self, tick: int, picture: ByteArray, seen: bool) -> None:
        if self._pictures is not None:
            self._pictures.append(picture)
        if self._model is None or self.config.model is None:
            return
        if not seen:
            if self._fed:
                self._run_model()
                self._model, self._fed = self.config.model.fresh(), False
                self._to_skip = self._model.delay_frames
            return
        if not self._pending:
            self._pending_first = tick
        self._pending.append(picture)
        self._fed = True
        if len(self._pending) >= _BATCH:
            self._run_model()

    def _run_model(self) -> None:
        """Feed the pictures that wait."""
        if self._model is None or not self._pending:
            return
        values = np.asarray(self._model.step(np.stack(self._pending)), float)  # (t,)
        first = self._pending_first - self._model.delay_frames
        skip = min(self._to_skip, len(values))  # answers for pictures from before the beginning
        self._to_skip -= skip
        self._history.add(first + skip, values[skip:], _WAVE)
        self._history.add(first + skip, np.ones(len(values) - skip), _WEIGHT)
        self.answered = self._pending_first + len(values)
        self._pending.clear()


def _network_wave(rows: FloatArray, skin: RgbTrace) -> Waveform:
    """What the network has answered for these rows of the history."""
    known = skin.valid & (rows[:, _WEIGHT] > 0)
    return Waveform(np.where(known, rows[:, _WAVE], 0.0), skin.fps, skin.start_s, known)


def _follow(
    rates: RateTracker, spectra: list[Spectrum], around: list[Spectrum], weight: float, end_s: float
) -> Tracked:
    """The rate of a window by what it shows and what the time around it shows, on the path so far."""
    weights = [1.0] * len(spectra) + [weight] * len(around)
    return rates.update([*spectra, *around], end_s, weights)
