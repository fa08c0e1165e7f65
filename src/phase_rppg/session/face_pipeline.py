"""The measurement of one face: skin sampler, buffers, network and window analysis in sequence."""

from __future__ import annotations

import numpy as np

from ..face.tracker import Track
from ..picture import Picture
from ..signal.uniform_clock import Step
from ..types import FloatArray
from .clock import Clock
from .config import SessionConfig
from .face_state import FaceState
from .network_feeder import NetworkFeeder
from .results import WavePiece, WindowResult
from .skin_sampler import SkinSampler
from .window_analyzer import WindowAnalyzer


class FacePipeline:
    """Turns the frames of one track into windows and pieces of the pulse wave."""

    def __init__(
        self, track: Track, frame: Picture, clock: Clock, first_tick: int, config: SessionConfig
    ) -> None:
        self.track, self._config = track, config
        self.announced = False  # whether the session has reported the face
        self.window_count = 0
        self.sampler = SkinSampler(track, frame, config.crop_px)
        self.state = FaceState(clock, first_tick, config)
        self.network: NetworkFeeder | None = None
        if config.model is not None:
            self.network = NetworkFeeder(config.model, first_tick, self._add_output, config.batch)
        self._needs_crop = config.wants_clip or self.network is not None
        self._analyzer = WindowAnalyzer(config)

    def push_frame(self, frame: Picture, t_s: float, step: Step, background: FloatArray | None) -> None:
        """Sample a frame in which the face is present."""
        sample = self.sampler.sample(frame, t_s)
        picture = self.sampler.crop(frame) if self._needs_crop else None
        crops = self.state.append(step, sample, background, picture)
        if self.network is not None:
            for tick, crop in enumerate(crops, step.first):
                if step.seen:
                    self.network.push(tick, crop)
                else:
                    self.network.restart()

    def push_absence(self, step: Step) -> None:
        """Record a frame in which the face is absent."""
        self.state.append_absence(step)
        if self.network is not None and len(step.weights):
            self.network.restart()

    def mark_lost(self, last_seen_s: float) -> None:
        """Discard the samples after `last_seen_s`, when the face was seen for the last time."""
        self.state.invalidate_after(last_seen_s)
        self._analyzer.record_loss(last_seen_s)

    def restart_sampler(self, track: Track, frame: Picture) -> None:
        """Sample the face at a new position, without continuity to the old one."""
        self.sampler = SkinSampler(track, frame, self._config.crop_px)

    def analyze_window(self, first: int, stop: int) -> list[WindowResult]:
        """Return the result of the window of ticks first … stop−1, if the face was seen in it."""
        self._run_network()
        samples = self.state.samples(first, stop)
        if samples.coverage <= 0 or not self.track.confirmed:
            return []
        wave = self._analyzer.extract_wave(samples)
        if self.network is None:
            self.state.overlap_add(first, wave)
        reach = 0 if self._config.wants_clip else self._config.context_ticks
        context = self.state.context(first, stop, reach) if reach else None
        self.window_count += 1
        return [self._analyzer.analyze(self.track.id, samples, wave, context)]

    def complete_wave(self, first: int, stop: int) -> None:
        """Extend the pulse wave to the last tick, which may be later than the last window."""
        self._run_network()
        if self.network is None:
            self.state.overlap_add(first, self._analyzer.extract_wave(self.state.samples(first, stop)))

    def next_wave(self, stop: int) -> list[WavePiece]:
        """Return the pulse wave before tick `stop` that was not returned yet."""
        wave = self.state.next_wave(stop)
        return [] if wave is None else [WavePiece(self.track.id, wave, self.state.slow_signals(wave))]

    def flush_network(self) -> None:
        """Make a delayed network answer for the last crops."""
        if self.network is not None and (crop := self.state.last_crop) is not None:
            self.network.flush(crop, self.state.stop_tick)

    def _run_network(self) -> None:
        if self.network is not None:
            self.network.run()

    def _add_output(self, first: int, values: FloatArray) -> None:
        self.state.add_wave(first, values, np.ones(len(values)))
