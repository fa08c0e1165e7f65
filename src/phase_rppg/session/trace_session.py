"""The streaming core for a colour trace: windows, rates and the gate without pictures.

A trace has no background, no position and no size of the face. The quality features that need them have
neutral values, so the gate decides by the colour alone.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..errors import ArgumentError
from ..signal.constants import MAX_GAP_S
from ..types import FloatArray
from .clock import Clock
from .config import SessionConfig
from .face_state import FaceState
from .results import Event, FaceEvent, WavePiece
from .session import MAX_PAUSE_S
from .skin_sampler import COLUMNS
from .window_analyzer import WindowAnalyzer
from .window_samples import WindowContext, WindowSamples

UNKNOWN_FACE_PX = 128.0  # width that no limit refuses
_FACE_PX = COLUMNS.index("face_px")


class TraceSession:
    """Turns colours into events: `push` every sample, then call `finish`; both return the new events.

    The memory does not grow with time. `config.method` must be a method that uses the mean colour.
    """

    def __init__(self, config: SessionConfig) -> None:
        if config.model is not None or config.wants_clip:
            raise ArgumentError("method", config.method, "a method that uses the mean colour, such as pos")
        self._config = config
        self._face = 0
        self._last_seen_s = math.nan  # time of the last sample with a face
        self._lost = False
        self._begin_segment()

    def push(self, t_s: float, rgb: FloatArray | None) -> list[Event]:
        """Add the mean colour (3,) of the skin at `t_s`; None if there is no face. Times must increase.

        After a pause of more than MAX_PAUSE_S the samples count as another face.
        """
        events: list[Event] = []
        if t_s - self._clock.last_s > MAX_PAUSE_S:
            events += self.finish()
            self._face += 1
            self._begin_segment()
        step = self._clock.advance(t_s)
        if rgb is None:
            self._state.append_absence(step)
            if not self._lost and t_s - self._last_seen_s > MAX_GAP_S:
                self._lost = True
                self._analyzer.record_loss(self._last_seen_s)
                events.append(FaceEvent(self._face, t_s, "lost"))
        else:
            sample = np.zeros(len(COLUMNS))
            sample[:3], sample[_FACE_PX] = rgb, UNKNOWN_FACE_PX
            self._state.append(step, sample, None)
            if self._lost:
                events.append(FaceEvent(self._face, t_s, "returned"))
            self._last_seen_s, self._lost = t_s, False
        return events + self._complete_windows(self._config.context_ticks)

    def finish(self) -> list[Event]:
        """Return the remaining events; a trace that is shorter than a window gets one window."""
        events = self._complete_windows(0)
        stop = self._clock.count
        first = max(self._state.first_tick, stop - self._config.window_ticks)
        if self._window_count == 0:
            events += self._analyze(first, stop)
        elif stop > first:
            samples = self._without_position(self._state.samples(first, stop))
            self._state.overlap_add(first, self._analyzer.extract_wave(samples))
        return events + self._next_wave(stop)

    def _begin_segment(self) -> None:
        config = self._config
        self._clock = Clock(config.fps, config.window_s + config.keep_ticks / config.fps)
        self._state = FaceState(self._clock, 0, config)
        self._analyzer = WindowAnalyzer(config)
        self._next_stop = config.window_ticks  # the tick at which the next window ends
        self._window_count = 0
        self._last_seen_s = math.nan
        self._lost = False

    def _complete_windows(self, delay: int) -> list[Event]:
        """Analyse the windows that end at least `delay` ticks ago."""
        events: list[Event] = []
        while self._clock.count >= self._next_stop + delay:
            first = self._next_stop - self._config.window_ticks
            events += self._analyze(first, self._next_stop)
            events += self._next_wave(first + self._config.step_ticks)
            self._next_stop += self._config.step_ticks
        return events

    def _analyze(self, first: int, stop: int) -> list[Event]:
        """Return the result of the window of ticks first … stop−1, if the face was seen in it."""
        if stop - first < 2:  # a single sample after a pause
            return []
        samples = self._without_position(self._state.samples(first, stop))
        if samples.coverage <= 0:
            return []
        wave = self._analyzer.extract_wave(samples)
        self._state.overlap_add(first, wave)
        context = None
        if self._config.context_ticks:
            context = self._state.context(first, stop, self._config.context_ticks)
        if context is not None:
            context = WindowContext(self._without_position(context.samples), context.extra_s)
        self._window_count += 1
        return [self._analyzer.analyze(self._face, samples, wave, context)]

    def _next_wave(self, stop: int) -> list[Event]:
        wave = self._state.next_wave(stop)
        if wave is None:
            return []
        slow = self._state.slow_signals(wave)
        slow[:, 1] = np.nan  # a trace has no position
        return [WavePiece(self._face, wave, slow)]

    @staticmethod
    def _without_position(samples: WindowSamples) -> WindowSamples:
        return replace(samples, centre=None)
