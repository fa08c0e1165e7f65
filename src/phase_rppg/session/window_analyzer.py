"""Analyse the windows of one face: pulse wave, heart rate, quality and the decision of the gate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .. import registry
from ..signal import rate
from ..signal.rate import Peak, Spectrum
from ..signal.rate_tracking import RateTracker, TrackedRate
from ..types import Clip, Quality, RgbTrace, Waveform
from .calibration import load
from .config import SessionConfig
from .gate import Gate
from .results import WindowResult
from .window_quality import Window, assess
from .window_samples import WindowContext, WindowSamples

# Weight of the context relative to the window, and the extra seconds with a face that give the full weight.
_CONTEXT_WEIGHT, _CONTEXT_FULL_S = 1.5, 5.0
_MIN_WAVE_S = 2.0  # a method gets no window with less of the face


class WindowAssessor:
    """Measures the rate and the quality of the windows of one face in order of time, without a gate.

    The state is the rate tracker and a second tracker for the wave of the network alone.
    """

    def __init__(self, config: SessionConfig) -> None:
        self._config = config
        self._rates = RateTracker()
        self._network_rates = RateTracker()

    def extract_wave(self, samples: WindowSamples) -> Waveform:
        """Return the pulse wave: the output of the network, or what the method finds in the samples."""
        if self._config.model is not None:
            assert samples.wave is not None
            return samples.wave
        return _extract(self._config.method, samples.skin, samples.clip)

    def assess(
        self, samples: WindowSamples, wave: Waveform, context: WindowContext | None = None
    ) -> tuple[Peak | None, Quality]:
        """Return the peak and the quality of the next window; `wave` is its `extract_wave`.

        A network and the second method share one rate track and one rate, because they show one heart. The
        support counts the network alone: flicker and motion appear in both waves, so that their agreement
        is no evidence of a pulse.
        """
        window = self._window(samples, wave)
        second_spectrum = window.second_spectrum
        spectra = [spec for spec in (window.spectrum, second_spectrum) if spec is not None]
        around, weight = self._context_spectra(context)
        tracked = _update(self._rates, spectra, around, weight, samples.end_s) if spectra else None
        peak, quality = assess(window, tracked)
        if peak is not None and tracked is not None:
            peak = replace(peak, bpm=rate.joint_bpm([peak, *_second_peak(window, tracked)]))
            if second_spectrum is not None:
                _update(self._network_rates, spectra[:1], around[:1], weight, samples.end_s)
                quality = replace(quality, support=self._network_rates.support(tracked.bpm))
        return peak, quality

    def _window(self, samples: WindowSamples, wave: Waveform) -> Window:
        """Return the samples with the waves of the network or method and of the second method."""
        name = self._config.second if self._config.model is not None else None
        second = None if name is None else _extract(name, samples.skin)
        second = None if second is None else samples.without_motion(second)
        return Window(samples, samples.without_motion(wave), self._config.method, second, name)

    def _context_spectra(self, context: WindowContext | None) -> tuple[list[Spectrum], float]:
        """Return the spectra of the context and their weight."""
        if context is None:
            return [], 0.0
        window = self._window(context.samples, self.extract_wave(context.samples))
        spectra = [spec for spec in (window.spectrum, window.second_spectrum) if spec is not None]
        return spectra, _CONTEXT_WEIGHT * min(1.0, context.extra_s / _CONTEXT_FULL_S)


class WindowAnalyzer(WindowAssessor):
    """Analyses the windows of one face in order of time. Its state includes the gate."""

    def __init__(self, config: SessionConfig) -> None:
        super().__init__(config)
        self._gate = Gate(load(config.method), gated=config.gated)

    def record_loss(self, t_s: float) -> None:
        """Record that the face was lost at `t_s`."""
        self._gate.record_loss(t_s)

    def analyze(
        self, face: int, samples: WindowSamples, wave: Waveform, context: WindowContext | None = None
    ) -> WindowResult:
        """Return the result of the next window; `wave` is its `extract_wave`."""
        peak, quality = self.assess(samples, wave, context)
        start_s, end_s = samples.skin.start_s, samples.end_s
        reading = self._gate.push(peak, quality, start_s, end_s)
        return WindowResult(face, start_s, end_s, reading, peak, quality)


def _extract(method: str, skin: RgbTrace, clip: Clip | None = None) -> Waveform:
    """Return the wave that a method extracts; an invalid one if the face was seen too briefly."""
    if skin.valid.sum() < _MIN_WAVE_S * skin.fps:
        nothing = np.zeros(len(skin.valid))
        return Waveform(nothing, skin.fps, skin.start_s, nothing.astype(bool))
    wave: Waveform = registry.load("methods", method).extract(skin if clip is None else clip)
    return wave


def _second_peak(window: Window, tracked: TrackedRate) -> list[Peak]:
    """Return the peak of the second method near the tracked rate, if there is one."""
    if window.second is None or window.second_spectrum is None:
        return []
    peak = rate.spectral_peak(window.second, near_bpm=tracked.bpm, spec=window.second_spectrum)
    return [] if peak is None else [peak]


def _update(
    rates: RateTracker, spectra: list[Spectrum], around: list[Spectrum], weight: float, end_s: float
) -> TrackedRate:
    """Update a rate track with the spectra of a window and, with their weight, those of its context."""
    weights = [1.0] * len(spectra) + [weight] * len(around)
    return rates.update([*spectra, *around], end_s, weights)
