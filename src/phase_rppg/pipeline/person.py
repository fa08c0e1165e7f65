"""Everything a session keeps about one face: the last window of its signals, and nothing that grows."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .. import registry
from ..face.crop import to_bytes
from ..face.track import Track
from ..signal import rate
from ..signal.motion import without_motion
from ..signal.track import Look, RateTracker, posterior, summarise, support
from ..types import ByteArray, Clip, FloatArray, RgbTrace, Waveform
from .assess import Window, assess
from .clock import Clock, History, Step
from .config import SessionConfig
from .decide import decide, is_sure
from .meter import COLUMNS, Meter
from .model import PulseModel
from .result import WavePiece, WindowResult

# Columns of the history: what the meter gives, the background, and the wave as sum and weight.
_X, _Y, _FACE_PX, _CLIPPED = (COLUMNS.index(name) for name in ("x", "y", "face_px", "clipped"))
_BACKGROUND = slice(len(COLUMNS), len(COLUMNS) + 3)
_WAVE, _WEIGHT = len(COLUMNS) + 3, len(COLUMNS) + 4
_WIDTH = len(COLUMNS) + 5
_NO_BACKGROUND = np.full(3, -1.0)
_NO_PICTURE = np.zeros((0, 0, 3), np.float32)
_BATCH = 6  # pictures that a network gets at once
_SHORTEST_WAVE_S = 2.0  # less of a face than this in a window gives no wave


@dataclass(frozen=True, slots=True, eq=False)
class _Open:
    """A window that waits for what comes after it."""

    window: Window
    waves: list[Waveform]  # of the method or network, and of the second method
    look: Look | None  # of both; None: no wave at all
    own: Look | None  # without the second method
    start_s: float
    end_s: float


class Person:
    """One face of a session."""

    def __init__(
        self, track: Track, rgb: ByteArray, clock: Clock, first_tick: int, config: SessionConfig
    ) -> None:
        self.track, self.config, self.clock = track, config, clock
        self.announced = False
        self.windows = 0
        self.meter = Meter(track, rgb, config.crop_px)
        self._history = History(_WIDTH, config.keep_ticks, first_tick)
        self._rates = RateTracker()
        self._own_rates = RateTracker()  # without the second method
        self._open: deque[_Open] = deque()
        self._sure_s: float | None = None  # end of the last window that was sure
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

    def lose(self, seen_s: float) -> list[WindowResult]:
        """The face has been gone since `seen_s`: what was measured after that was not the face."""
        open_windows = self.judge_all()
        tick = int(np.floor((seen_s - self.clock.origin_s) * self.clock.fps + 1e-6))
        self._history.forget_after(tick)
        self._sure_s = None  # whoever comes back has to show a pulse anew
        return open_windows

    def window(self, first: int, stop: int) -> list[WindowResult]:
        """Take in the window of ticks first … stop−1, if the face was seen in it; returns what is due."""
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
        waves = [wave]
        if self._model is not None and self.config.second is not None:
            waves.append(without_motion(self._extract(self.config.second, skin), centre))
        waves = [one for one in waves if one.valid.any()]
        # One heart: both waves speak for one path and one number. Whether to believe it is asked of the wave
        # and its own path: a lamp or a step is in both waves, so that they agree is no proof of a heart.
        spectra = [rate.spectrum(one) for one in waves]
        look = self._rates.look(spectra, end_s) if spectra else None
        own = self._own_rates.look(spectra[:1], end_s) if len(spectra) > 1 else look
        self._open.append(_Open(seen_window, waves, look, own, start_s, end_s))
        self.windows += 1
        return self._judge(self.config.hindsight_windows)

    def judge_all(self) -> list[WindowResult]:
        """The results of the windows that waited for what comes after them: nothing will."""
        return self._judge(0)

    def _judge(self, waiting: int) -> list[WindowResult]:
        """The results of all windows but the last few, which wait for more."""
        results = []
        while len(self._open) > waiting:
            one = self._open.popleft()
            results.append(self._result(one, list(self._open)))
        return results

    def _result(self, one: _Open, later: Sequence[_Open]) -> WindowResult:
        """What one window says, in the light of those after it."""
        tracked = own = None
        if one.look is not None and one.own is not None:
            tracked = summarise(posterior(one.look, [o.look for o in later if o.look is not None]))
            own = posterior(one.own, [o.own for o in later if o.own is not None])
        peak, quality = assess(one.window, tracked)
        if peak is not None and tracked is not None and own is not None:
            peaks = [rate.spectral_peak(wave, near_bpm=tracked.bpm) for wave in one.waves]
            peak = replace(peak, bpm=rate.joint_bpm([found for found in peaks if found is not None]))
            if len(one.waves) > 1:
                quality = replace(quality, support=support(own, tracked.bpm))
        method, gated, sure_s = self.config.method, self.config.gated, self._sure_s
        reading = decide(peak, quality, one.start_s, one.end_s, method=method, gated=gated, sure_s=sure_s)
        if is_sure(reading, method):
            self._sure_s = one.end_s
        return WindowResult(self.track.id, one.start_s, one.end_s, reading, peak, quality)

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
        fps, start_s, seen = skin.fps, skin.start_s, skin.valid
        if self._model is not None:
            known = seen & (rows[:, _WEIGHT] > 0)
            return Waveform(np.where(known, rows[:, _WAVE], 0.0), fps, start_s, known)
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
