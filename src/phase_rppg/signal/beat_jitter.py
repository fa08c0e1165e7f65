"""How exactly beats can be timed in a noisy wave.

A beat is a maximum of the filtered wave x: x' = 0. Noise n moves it by n' / |x''|, so beats spread in time by

    σ = √(∫ S (2πf)² df) / |x''|

with the density S of the noise beside the lines of the pulse, over the band that the beats are looked for in.
"""

from __future__ import annotations

import math

import numpy as np

from ..types import FloatArray, Waveform
from . import filters, rate

WINDOW_S = 10.0
_LEAST_BEATS = 4  # of a window, to know its rate
_LINE_HZ = 0.35  # on both sides of a line: breathing widens it, and that is no noise
_HANN_WIDTH = 1.5  # noise bandwidth of the Hann window of `rate.spectrum`, in 1 / its length
_BAND = (0.6, 2.3)  # in heart rates: where `rate.find_beats` looks


def beat_jitter_s(wave: Waveform, beats_s: FloatArray) -> float:
    """The standard deviation of the times of beats that the noise of their wave explains.

    Infinite when no stretch of ten seconds holds enough of both.
    """
    size = round(WINDOW_S * wave.fps)
    found = []
    for first in range(0, len(wave.values) - size + 1, size):
        stretch = slice(first, first + size)
        start_s = wave.start_s + first / wave.fps
        inside = beats_s[(beats_s >= start_s) & (beats_s < start_s + WINDOW_S)]
        if len(inside) >= _LEAST_BEATS and wave.valid[stretch].all():
            part = Waveform(wave.values[stretch], wave.fps, start_s, wave.valid[stretch])
            found.append(_variance(part, inside))
    return math.sqrt(np.median(found)) if found else math.inf


def _variance(wave: Waveform, beats_s: FloatArray) -> float:
    """σ² within one window."""
    hz = 1 / float(np.median(np.diff(beats_s)))
    spectrum = rate.spectrum(wave)
    lines = [np.abs(spectrum.hz - k * hz) <= _LINE_HZ for k in (1, 2, 3)]
    beside = spectrum.power[spectrum.band & ~np.logical_or.reduce(lines)]
    low, high = _BAND[0] * hz, min(_BAND[1] * hz, 0.95 * wave.fps / 2)
    if not len(beside) or low >= high:
        return math.inf
    level = float(np.median(beside)) / math.log(2)  # mean power of noise, unmoved by a line that was missed
    density = level / 2 * wave.duration_s / _HANN_WIDTH  # power is squared amplitude: twice the variance
    slope_variance = density * (2 * math.pi) ** 2 * (high**3 - low**3) / 3
    x = filters.bandpass(wave.values, wave.fps, low, high, order=2)
    at = np.clip(np.rint((beats_s - wave.start_s) * wave.fps).astype(int), 1, len(x) - 2)
    bend = float(np.median(2 * x[at] - x[at - 1] - x[at + 1])) * wave.fps**2
    return slope_variance / bend**2 if bend > 0 else math.inf
