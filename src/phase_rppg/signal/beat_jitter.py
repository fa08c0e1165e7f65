"""The timing error of beats in a noisy waveform, from two independent sources.

**Intervals.** Errors of single beats are independent of each other. They add 2σ²(1 − cos 2πf) to the spectrum
of the intervals at f cycles per beat, most at f = 0.5. The heart changes its rate more slowly, so the power
above 0.4 cycles per beat gives σ. This holds for noise of any colour.

**Waveform.** A beat is a maximum of the filtered waveform x, where x' = 0. Noise n shifts it by n' / |x''|:

    σ = √(∫ S (2πf)² df) / |x''|

with the spectral density S of the noise between the harmonics of the pulse. The waveform is first resampled
to a constant beat interval, because a variable rhythm widens the harmonics. A network removes noise between
the harmonics, and a wide template (`beat_timing`) averages it. The result is therefore a guide: the first
estimate is used within the factors `_WAVE_LIMITS` of the second.
"""

from __future__ import annotations

import math

import numpy as np

from ..types import BoolArray, FloatArray, Waveform
from . import filters, hrv, rate
from .median import median

WINDOW_S = 10.0
_MIN_BEATS = 5  # in a window, to estimate its rate
_MAX_PAUSE = 1.8  # of the median interval: a longer one is a missed beat
_HARMONIC_HALF_WIDTH_HZ = 0.35  # excluded around each harmonic
_HANN_BANDWIDTH = 1.5  # equivalent noise bandwidth of the Hann window, in 1 / its length
_BAND = (0.6, 2.3)  # pass band of `rate.find_beats`, in heart rates
_NOISE_BAND = 0.4  # cycles per beat, above which the intervals contain only timing errors
_MIN_INTERVALS = 20  # for a spectrum of the intervals
# Fitted on synthetic recordings, see docs/experiments/28-beat-timing.md.
_INTERVAL_FACTOR = 1.15  # true error over that of the intervals: errors of neighbouring beats are correlated
_WAVE_LIMITS = (0.6, 2.0)  # true error over that of the waveform: POS, and networks
_WAVE_FACTOR = 1.6  # used if there are too few intervals


def beat_jitter_s(wave: Waveform, beats_s: FloatArray) -> float:
    """Return the standard deviation of the timing error of beats.

    It is infinite when no window of 10 s has enough valid samples and beats.
    """
    by_wave = wave_jitter_s(wave, beats_s)
    by_intervals = interval_jitter_s(beats_s)
    if by_intervals is None:
        return _WAVE_FACTOR * by_wave
    low, high = (factor * by_wave for factor in _WAVE_LIMITS)
    return min(max(_INTERVAL_FACTOR * by_intervals, low), high)


def interval_jitter_s(beats_s: FloatArray) -> float | None:
    """Return the timing error that explains the fastest changes of the intervals; None for few intervals."""
    intervals_s = np.diff(beats_s)
    normal = hrv.normal_intervals(intervals_s) if len(intervals_s) else np.zeros(0, bool)
    if normal.sum() < _MIN_INTERVALS:
        return None
    place = np.arange(len(intervals_s))
    x = np.interp(place, place[normal], intervals_s[normal])
    taper = np.hanning(len(x) + 2)[1:-1]
    per_beat = np.fft.rfftfreq(len(x))
    power = np.abs(np.fft.rfft((x - x.mean()) * taper)) ** 2 / (taper @ taper)
    fast = per_beat >= _NOISE_BAND
    return math.sqrt(power[fast].sum() / (2 - 2 * np.cos(2 * np.pi * per_beat[fast])).sum())


def wave_jitter_s(wave: Waveform, beats_s: FloatArray) -> float:
    """Return the timing error that the noise between the harmonics explains: the median over windows."""
    size = round(WINDOW_S * wave.fps)
    variances = []
    for first in range(0, len(wave.values) - size + 1, size):
        start_s = wave.start_s + first / wave.fps
        inside = beats_s[(beats_s >= start_s) & (beats_s < start_s + WINDOW_S)]
        if len(inside) >= _MIN_BEATS and wave.valid[first : first + size].all() and _complete(inside):
            variances.append(_variance(*_with_constant_interval(wave, inside)))
    return math.sqrt(median(variances)) if variances else math.inf


def _complete(beats_s: FloatArray) -> BoolArray:
    """Return whether no beat is missing."""
    intervals_s = np.diff(beats_s)
    return np.asarray(intervals_s.max() < _MAX_PAUSE * median(intervals_s))


def _with_constant_interval(wave: Waveform, beats_s: FloatArray) -> tuple[Waveform, float]:
    """Return the wave between the first and the last beat, resampled to equal intervals, and the interval."""
    interval_s = float(median(np.diff(beats_s)))
    even_s = beats_s[0] + interval_s * np.arange(len(beats_s))
    clock_s = np.arange(even_s[0], even_s[-1], 1 / wave.fps)
    values = np.interp(np.interp(clock_s, even_s, beats_s), wave.t_s, wave.values)
    return Waveform(values, wave.fps, float(clock_s[0]), np.ones(len(values), bool)), interval_s


def _variance(wave: Waveform, interval_s: float) -> float:
    """Return σ² of one window with beats at its start and after each `interval_s`."""
    hz = 1 / interval_s
    spectrum = rate.spectrum(wave)
    harmonics = [np.abs(spectrum.hz - k * hz) <= _HARMONIC_HALF_WIDTH_HZ for k in (1, 2, 3)]
    noise = spectrum.power[spectrum.band & ~np.logical_or.reduce(harmonics)]
    low, high = _BAND[0] * hz, min(_BAND[1] * hz, 0.95 * wave.fps / 2)
    if not len(noise) or low >= high:
        return math.inf
    level = float(median(noise)) / math.log(2)  # mean power of noise; the median ignores other peaks
    # Power is the squared amplitude of a sine, which is twice its variance.
    density = level / 2 * wave.duration_s / _HANN_BANDWIDTH
    slope_variance = density * (2 * math.pi) ** 2 * (high**3 - low**3) / 3
    x = filters.bandpass(wave.values, wave.fps, low, high, order=2)
    beats = np.arange(0, wave.duration_s, interval_s)
    at = np.clip(np.rint(beats * wave.fps).astype(int), 1, len(x) - 2)
    curvature = float(median(2 * x[at] - x[at - 1] - x[at + 1])) * wave.fps**2
    return slope_variance / curvature**2 if curvature > 0 else math.inf
