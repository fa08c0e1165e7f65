"""Breathing rate from four signs of breathing in one recording, only where they are clear.

Breathing changes the beat intervals (respiratory sinus arrhythmia), the height of the beats, the colour of
the skin (more or less blood) and the position of the head. Each sign is a series at 4 Hz. For a sine of
frequency f in noise of unknown strength, the log-likelihood is

    −N/2 · log(1 − share(f))

with the number N of independent samples and the share of the power in a line at f (Bretthorst 1988). The
power is weighted with f², because the rate of the heart, light and posture drift. The log-likelihoods of all
signs are added, and `p_ok` is the probability of ±2 breaths per minute around the best rate.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..types import BoolArray, FloatArray, Waveform
from . import filters, hrv
from .median import median
from .resample import interpolate_invalid

BAND_PER_MINUTE = (5.0, 36.0)
MIN_SECONDS = 30.0
TOLERANCE = 2.0  # breaths per minute: half width of the interval whose probability is `p_ok`
MIN_P_OK = 0.85
_WINDOW_S = 60.0  # longer recordings are divided into windows of at least this length
_MIN_CLEAR = 0.5  # share of the windows that must be clear
_HZ = 4.0
_BAND_HZ = (0.07, 0.7)  # in which a sign has independent samples
_LINE_HZ, _LINE_CYCLES = 0.025, 1.2  # half width of a line: in Hz, and in 1 / duration
_SMALLEST_REST = 0.03  # of the power outside the line
_MIN_BEATS = 15
_MIN_SEEN = 0.8  # share of valid samples of a slow signal
# Fitted on synthetic recordings, see docs/experiments/29-breathing.md.
_INDEPENDENT = 0.15  # share of the samples that count as independent: breathing is no exact sine
_WEIGHTS = {"intervals": 1.0, "amplitude": 1.0, "colour": 1.0, "motion": 0.25}
_GRID_HZ: FloatArray = np.arange(BAND_PER_MINUTE[0], BAND_PER_MINUTE[1] + 0.01, 0.25) / 60


class BreathingReason(str, enum.Enum):
    """Why there is no breathing rate."""

    NO_BEATS = "NO_BEATS"  # no window has a heart rate, or the beats are too few or irregular
    TOO_SHORT = "TOO_SHORT"  # fewer than 30 s of beats
    UNCLEAR = "UNCLEAR"  # the signs of breathing show no common rate

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Breathing:
    """A breathing rate with its interval and the probability that it is within 2 breaths per minute."""

    per_minute: float
    low: float
    high: float
    p_ok: float


@dataclass(frozen=True, slots=True)
class NoBreathing:
    """The reason why there is no breathing rate."""

    reason: BreathingReason
    p_ok: float = 0.0


BreathingReading: TypeAlias = Breathing | NoBreathing


@dataclass(frozen=True, slots=True, eq=False)
class SlowSignals:
    """Colour and position of a face at a low rate, on a uniform clock."""

    colour: FloatArray  # (T,) log of green over red: less green with more blood
    height: FloatArray | None  # (T,) vertical position in face widths; None if it is unknown
    fps: float
    start_s: float
    valid: BoolArray  # (T,)

    @property
    def t_s(self) -> FloatArray:
        return self.start_s + np.arange(len(self.colour)) / self.fps


def breathing(beats_s: FloatArray, wave: Waveform, slow: SlowSignals | None = None) -> BreathingReading:
    """Return the breathing rate of a recording from its beats, its pulse wave and its slow signals."""
    beats_s = np.asarray(beats_s, float)
    if not len(beats_s):
        return NoBreathing(BreathingReason.NO_BEATS)
    if beats_s[-1] - beats_s[0] < MIN_SECONDS:
        return NoBreathing(BreathingReason.TOO_SHORT)
    if len(beats_s) < _MIN_BEATS or hrv.normal_intervals(np.diff(beats_s)).mean() < 1 - hrv.MAX_DROPPED:
        return NoBreathing(BreathingReason.NO_BEATS)
    edges_s = np.linspace(beats_s[0], beats_s[-1], max(int((beats_s[-1] - beats_s[0]) / _WINDOW_S), 1) + 1)
    found = [_window(beats_s, wave, slow, low, high) for low, high in itertools.pairwise(edges_s)]
    clear = [one for one in found if one.p_ok >= MIN_P_OK]
    if len(clear) < _MIN_CLEAR * len(found):
        return NoBreathing(BreathingReason.UNCLEAR, float(np.mean([one.p_ok for one in found])))
    columns = np.array([(one.per_minute, one.low, one.high, one.p_ok) for one in clear])
    rate, low, high = median(columns[:, :3], axis=0).tolist()
    return Breathing(rate, min(low, rate), max(high, rate), float(columns[:, 3].mean()))


def _window(
    beats_s: FloatArray, wave: Waveform, slow: SlowSignals | None, start_s: float, end_s: float
) -> Breathing:
    """Return the most probable rate between two times."""
    inside = beats_s[(beats_s >= start_s - 1e-9) & (beats_s <= end_s + 1e-9)]
    if len(inside) < _MIN_BEATS:
        return Breathing(0.0, 0.0, 0.0, 0.0)
    signs = _beat_signs(inside, wave) | ({} if slow is None else _slow_signs(slow, inside[0], inside[-1]))
    nyquist_hz = 0.5 / float(median(np.diff(inside)))
    return _most_probable(signs, nyquist_hz, float(inside[-1] - inside[0]))


def _beat_signs(beats_s: FloatArray, wave: Waveform) -> dict[str, FloatArray]:
    """Return the modulation of the intervals and of the height of the beats, at 4 Hz."""
    clock_s = np.arange(beats_s[0], beats_s[-1], 1 / _HZ)
    intervals_s = np.diff(beats_s)
    normal = hrv.normal_intervals(intervals_s)
    if normal.sum() < _MIN_BEATS // 2:
        return {}
    signs: dict[str, FloatArray] = {"intervals": np.interp(clock_s, beats_s[1:][normal], intervals_s[normal])}
    interval_s = float(median(intervals_s))
    low_hz, high_hz = 0.6 / interval_s, min(3 / interval_s, 0.45 * wave.fps)
    if low_hz < high_hz:
        x = filters.bandpass(interpolate_invalid(wave.values, wave.valid), wave.fps, low_hz, high_hz)
        reach = max(round(0.45 * interval_s * wave.fps), 1)
        at = np.rint((beats_s - wave.start_s) * wave.fps).astype(int)[:, None] + np.arange(-reach, reach + 1)
        heights = np.ptp(x[np.clip(at, 0, len(x) - 1)], axis=1)
        floor = 1e-6 * float(median(heights)) + 1e-300
        signs["amplitude"] = np.interp(clock_s, beats_s, np.log(np.maximum(heights, floor)))
    return signs


def _slow_signs(slow: SlowSignals, start_s: float, end_s: float) -> dict[str, FloatArray]:
    """Return colour and position between two times, at 4 Hz."""
    clock_s = np.arange(start_s, end_s, 1 / _HZ)
    inside = (slow.t_s >= start_s) & (slow.t_s <= end_s)
    if not inside.any() or slow.valid[inside].mean() < _MIN_SEEN:
        return {}
    known_s = slow.t_s[slow.valid]
    signs: dict[str, FloatArray] = {"colour": np.interp(clock_s, known_s, slow.colour[slow.valid])}
    if slow.height is not None:
        signs["motion"] = np.interp(clock_s, known_s, slow.height[slow.valid])
    return signs


def _most_probable(signs: Mapping[str, FloatArray], nyquist_hz: float, seconds: float) -> Breathing:
    """Return the rate with most probability around it, and the interval with 90 % of the probability."""
    log_like = np.zeros(len(_GRID_HZ))
    for name, series in signs.items():
        # Half the heart rate is the Nyquist limit of signs that are sampled by the beats.
        by_beats = name in ("intervals", "amplitude")
        top_hz = min(_BAND_HZ[1], nyquist_hz) if by_beats else _BAND_HZ[1]
        count = _INDEPENDENT * 2 * (top_hz - _BAND_HZ[0]) * seconds
        gain = -0.5 * count * np.log1p(-_line_share(series, top_hz)) * _WEIGHTS[name]
        log_like += gain * (0.9 * nyquist_hz >= _GRID_HZ) if by_beats else gain
    p = np.exp(log_like - log_like.max())
    p /= p.sum()
    best = int(np.argmax(np.convolve(p, np.ones(5), "same")))
    near = np.abs(_GRID_HZ - _GRID_HZ[best]) <= TOLERANCE / 60 + 1e-9
    rate_hz = float(p[near] @ _GRID_HZ[near] / p[near].sum())
    ends = np.minimum(np.searchsorted(np.cumsum(p), (0.05, 0.95)), len(p) - 1)
    low_hz, high_hz = _GRID_HZ[ends].tolist()
    return Breathing(
        60 * rate_hz, 60 * min(low_hz, rate_hz), 60 * max(high_hz, rate_hz), float(min(p[near].sum(), 1.0))
    )


def _line_share(series: FloatArray, top_hz: float) -> FloatArray:
    """Return the share of the power in a line at each frequency of the grid, without a quadratic trend."""
    place = np.linspace(-1, 1, len(series))
    x = series - np.polynomial.Polynomial.fit(place, series, 2)(place)
    if x.std() <= 1e-9 * (np.abs(series).max() + 1e-300):
        return np.zeros(len(_GRID_HZ))
    size = filters.fast_length(max(4 * len(x), 8192))
    hz = np.fft.rfftfreq(size, 1 / _HZ)
    power = np.abs(np.fft.rfft(x * np.hanning(len(x)), size)) ** 2 * hz**2
    half_hz = max(_LINE_HZ, _LINE_CYCLES * _HZ / len(x))
    reached = np.concatenate([[0.0], np.cumsum(power)])
    low, high = (np.searchsorted(hz, _GRID_HZ + side * half_hz) for side in (-1, 1))
    total = float(power[hz <= top_hz].sum())  # also of drift, which is no breathing
    share = (reached[high] - reached[low]) / max(total, 1e-300)
    return np.asarray(np.clip(share, 0.0, 1 - _SMALLEST_REST))
