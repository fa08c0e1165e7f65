"""Measure the spectral peak and the quality features of one window, before the gate decides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .. import registry
from ..signal import quality, rate
from ..signal.median import median
from ..signal.rate import Peak, Spectrum
from ..signal.rate_tracking import TrackedRate
from ..signal.rhythm import rhythm
from ..types import FloatArray, Quality, RgbTrace, Waveform
from .window_samples import WindowSamples

_FULL_SWAY = 0.01  # face widths: motion of this amplitude at the pulse rate can explain the whole peak
_UNKNOWN_COHERENCE = 0.3  # used if faces fill the picture and no background is visible
_UNKNOWN_SIGMA_BPM = 10.0  # used if there is no tracked rate
_CHECK_METHODS = {"pos": "chrom"}  # the method that checks another one; POS checks all others
BEATS_ALIKE = 0.95  # least correlation of beats that are not noise
_DEFAULT_BPM = 72.0  # rate at which features are evaluated if there is no peak; the gate refuses the window


@dataclass(frozen=True, eq=False)  # without slots: cached properties need a dictionary
class Window:
    """One window of one face with its waves. Each spectrum is computed once, when it is first needed."""

    samples: WindowSamples
    wave: Waveform  # of the method or network, without motion
    method: str  # name of the method or network
    second: Waveform | None = None  # of the second method, without motion
    second_method: str | None = None

    @cached_property
    def spectrum(self) -> Spectrum | None:
        """Spectrum of the wave; None if no sample is valid."""
        return rate.spectrum(self.wave) if self.wave.valid.any() else None

    @cached_property
    def second_spectrum(self) -> Spectrum | None:
        """Spectrum of the wave of the second method; None if there is none or no sample is valid."""
        if self.second is None or not self.second.valid.any():
            return None
        return rate.spectrum(self.second)

    @cached_property
    def green_spectrum(self) -> Spectrum:
        """Spectrum of the green channel of the skin."""
        return quality.green_spectrum(self.samples.skin)

    @cached_property
    def check_wave(self) -> Waveform:
        """Wave of the method that checks the rate, without motion: the second one if it is that method."""
        name = _CHECK_METHODS.get(self.method, "pos")
        if self.second is not None and self.second_method == name and self.second.valid.any():
            return self.second
        wave: Waveform = registry.load("methods", name).extract(self.samples.skin)
        return self.samples.without_motion(wave)

    @cached_property
    def check_spectrum(self) -> Spectrum | None:
        """Spectrum of `check_wave`; None if no sample is valid."""
        if self.check_wave is self.second:
            return self.second_spectrum
        return rate.spectrum(self.check_wave) if self.check_wave.valid.any() else None


def assess(window: Window, tracked: TrackedRate | None = None) -> tuple[Peak | None, Quality]:
    """Return the spectral peak of the window and its quality.

    The peak is searched near the tracked rate, if there is one. It is None if the signal is flat or has
    fewer than three cycles.
    """
    near_bpm = tracked.bpm if tracked is not None else None
    peak = None
    if window.spectrum is not None:
        peak = rate.spectral_peak(window.wave, near_bpm=near_bpm, spec=window.spectrum)
    bpm = peak.bpm if peak is not None else _DEFAULT_BPM
    samples, skin = window.samples, window.samples.skin
    amplitude = quality.pulsation(skin, bpm, window.green_spectrum)
    colour = _mean_colour(skin)
    return peak, Quality(
        snr_db=peak.snr_db if peak is not None else -60.0,
        amplitude=amplitude,
        background=_background(samples, bpm, amplitude),
        motion=_motion(samples, bpm),
        coverage=float(samples.coverage),
        face_px=float(samples.face_px),
        luma=float(colour @ (0.299, 0.587, 0.114)),
        clipped=float(samples.clipped),
        colourfulness=quality.colourfulness(colour),
        fps=float(samples.fps),
        max_gap_s=float(samples.max_gap_s),
        support=tracked.support if tracked is not None else 0.0,
        agreement=_agreement(window, bpm),
        visible_db=quality.visible_db(skin, bpm, window.green_spectrum),
        background_coherence=_background_coherence(samples, bpm),
        red=quality.red_green_ratio(skin, bpm),
        blue=quality.blue_green_ratio(skin, bpm),
        track_sigma_bpm=tracked.sigma_bpm if tracked is not None else _UNKNOWN_SIGMA_BPM,
        change_bpm=quality.rate_change_bpm(window.wave),
        **_beats(window, bpm),
    )


def _beats(window: Window, bpm: float) -> dict[str, float]:
    """Return the features of the beats of the wave and of the wave that checks it; none without beats."""
    if not window.samples.skin.valid.any():
        return {}
    found = [rhythm(wave, bpm) for wave in (window.wave, window.check_wave)]
    known = [one for one in found if one is not None]
    if len(known) < len(found):
        return {}
    first, second = known
    return {
        "beat_bpm": (first.bpm + second.bpm) / 2,
        "beat_difference_bpm": abs(first.bpm - second.bpm),
        "beat_spread": (first.spread + second.spread) / 2,
        "beat_match": min(first.match, second.match),
    }


def _mean_colour(trace: RgbTrace) -> FloatArray:
    return median(trace.values[trace.valid]) if trace.valid.any() else np.zeros(3)


def _background(samples: WindowSamples, bpm: float, amplitude: float) -> float:
    """Return how much of the peak the background shows in phase with the skin, 0–1."""
    trace = samples.background
    if trace is None or not trace.valid.any():
        return 0.0
    relative = trace.values / np.maximum(_mean_colour(trace), 1.0)
    line = quality.shared_line(relative, trace.fps, bpm, trace.valid, full_scale=max(amplitude, 1e-6))
    return line * quality.in_phase(samples.skin, trace, bpm)


def _background_coherence(samples: WindowSamples, bpm: float) -> float:
    if samples.background is None or not samples.background.valid.any():
        return _UNKNOWN_COHERENCE
    return quality.background_coherence(samples.skin, samples.background, bpm)


def _motion(samples: WindowSamples, bpm: float) -> float:
    """Return how much of the peak the motion of the face shows, 0–1."""
    if samples.centre is None:
        return 0.0
    skin = samples.skin
    return quality.shared_line(samples.centre, skin.fps, bpm, skin.valid, full_scale=_FULL_SWAY)


def _agreement(window: Window, bpm: float) -> float:
    """Return how much of the peak a classical method shows, 0–1; a network can output a pulse without one."""
    if not window.samples.skin.valid.any():
        return 0.0
    wave = window.check_wave
    return quality.shared_line(wave.values, wave.fps, bpm, wave.valid, spec=window.check_spectrum)
