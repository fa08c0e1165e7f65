"""Heart rate variability and breathing rate from beat times, only where the recording supports them.

Limits: RMSSD from 30 s, SDNN and pNN50 from 45 s, LF/HF from 120 s of beats. The Task Force of the ESC and
NASPE (1996) and Shaffer and Ginsberg (2017) ask for 60 s for ultra-short SDNN. A video of 60 s has fewer
seconds between its first and its last beat, and 45 s add little error (docs/experiments/28-beat-timing.md).
Abnormal intervals are dropped: those outside 0.3–1.5 s, or more than
25 % from the running median. If more than 20 % are abnormal, the result is None.

Noise in the waveform shifts the beats and adds false variability. Timing errors with a standard deviation σ
add 6σ² to RMSSD² and 2σ² to SDNN², which are subtracted. A value is returned only if the noise is at most one
third of its square, because σ itself is uncertain. In addition, σ must be at most 2 % of the beat interval:
above this limit wrong maxima are detected as beats, which the formula does not cover. pNN50 and LF/HF follow
the limit of RMSSD.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..types import BoolArray, FloatArray
from . import filters
from .median import median

MIN_DURATION_S = {"rmssd_ms": 30.0, "sdnn_ms": 45.0, "pnn50": 45.0, "lf_hf": 120.0}  # of usable beats
MIN_RESPIRATION_S = 30.0
MIN_BEATS = 3
MAX_DROPPED = 0.2
MAX_NOISE = 1 / 3  # largest share of timing noise in a variance
RMSSD_NOISE, SDNN_NOISE = 6.0, 2.0  # σ² of independent timing errors in the square of each value
MAX_JITTER = 0.02  # largest timing error, as a share of the beat interval
LF_HZ, HF_HZ = (0.04, 0.15), (0.15, 0.40)
BREATHING_HZ = (0.1, 0.5)  # 6–30 breaths per minute
# The breathing peak must hold this share of the power: 0.5 + 10 s / duration. Noise reaches it in fewer than
# 1 of 50 short recordings.
MIN_BREATHING_SHARE, MIN_BREATHING_SHARE_S = 0.5, 10.0
_TACHOGRAM_HZ = 4.0


@dataclass(frozen=True, slots=True)
class Hrv:
    """Heart rate variability; a field is None when the recording is too short or too noisy for it."""

    beats: int
    duration_s: float
    rmssd_ms: float | None
    sdnn_ms: float | None
    pnn50: float | None  # 0–1
    lf_hf: float | None
    breaths_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class HrvLimit:
    """A limit that prevents a value of `Hrv`: what was measured, and what is needed."""

    name: str  # "beats", "normal_share", "duration_s" (at least), or "jitter_s" (at most)
    value: float | None  # None: it could not be measured
    needed: float


def failed_limits(beat_times_s: FloatArray, jitter_s: float = 0.0) -> dict[str, HrvLimit]:
    """Return the first limit that prevents each value of `hrv`, by the name of the value.

    Values without a failed limit are left out. The parameters are those of `hrv`.
    """
    beat_times_s = np.asarray(beat_times_s, float)
    if len(beat_times_s) < MIN_BEATS:
        return dict.fromkeys(MIN_DURATION_S, HrvLimit("beats", len(beat_times_s), MIN_BEATS))
    intervals_s = np.diff(beat_times_s)
    normal = normal_intervals(intervals_s)
    if normal.mean() < 1 - MAX_DROPPED:
        return dict.fromkeys(MIN_DURATION_S, HrvLimit("normal_share", float(normal.mean()), 1 - MAX_DROPPED))
    usable_s = float(intervals_s[normal].sum())
    failed = {
        name: HrvLimit("duration_s", usable_s, needed_s)
        for name, needed_s in MIN_DURATION_S.items()
        if usable_s < needed_s
    }
    if "rmssd_ms" in failed:
        return failed
    precise_s = MAX_JITTER * float(median(intervals_s))
    rmssd_s, sdnn_s = _rmssd_s(intervals_s, normal), _sdnn_s(intervals_s, normal)
    for name in MIN_DURATION_S.keys() - failed.keys():
        noise_s = (
            sdnn_s * math.sqrt(MAX_NOISE / SDNN_NOISE)
            if name == "sdnn_ms"
            else rmssd_s * math.sqrt(MAX_NOISE / RMSSD_NOISE)
        )
        needed_s = min(precise_s, noise_s)
        if not jitter_s <= needed_s:
            failed[name] = HrvLimit("jitter_s", jitter_s if math.isfinite(jitter_s) else None, needed_s)
    return failed


def hrv(beat_times_s: FloatArray, jitter_s: float = 0.0) -> Hrv | None:
    """Return the variability of consecutive beats, or None if they are too few or too irregular.

    `jitter_s` is the standard deviation of the timing error (`beat_jitter.beat_jitter_s`). Its part in RMSSD
    and SDNN is subtracted.
    """
    beat_times_s = np.asarray(beat_times_s, float)
    failed = failed_limits(beat_times_s, jitter_s)
    if "rmssd_ms" in failed and failed["rmssd_ms"].name != "jitter_s":
        return None
    intervals_s = np.diff(beat_times_s)
    normal = normal_intervals(intervals_s)
    values: dict[str, Callable[[], float | None]] = {
        "rmssd_ms": lambda: 1000 * _without_noise(_rmssd_s(intervals_s, normal), RMSSD_NOISE * jitter_s**2),
        "sdnn_ms": lambda: 1000 * _without_noise(_sdnn_s(intervals_s, normal), SDNN_NOISE * jitter_s**2),
        "pnn50": lambda: float(np.mean(np.abs(_changes_s(intervals_s, normal)) > 0.05)),
        "lf_hf": lambda: _lf_hf(beat_times_s, intervals_s, normal),
    }
    return Hrv(
        beats=len(beat_times_s),
        duration_s=float(intervals_s[normal].sum()),
        breaths_per_minute=respiration(beat_times_s),
        **{name: None if name in failed else value() for name, value in values.items()},
    )


def _changes_s(intervals_s: FloatArray, normal: BoolArray) -> FloatArray:
    """Return the differences of consecutive normal intervals."""
    changes: FloatArray = np.diff(intervals_s)[normal[1:] & normal[:-1]]
    return changes


def _without_noise(spread_s: float, noise: float) -> float:
    """Return a standard deviation without the variance of the noise."""
    return math.sqrt(max(spread_s**2 - noise, 0.0))


def _rmssd_s(intervals_s: FloatArray, normal: BoolArray) -> float:
    return float(np.sqrt(np.mean(_changes_s(intervals_s, normal) ** 2)))


def _sdnn_s(intervals_s: FloatArray, normal: BoolArray) -> float:
    return float(intervals_s[normal].std(ddof=1))


def respiration(beat_times_s: FloatArray) -> float | None:
    """Return breaths per minute from the modulation of beat intervals, or None without a clear peak."""
    beat_times_s = np.asarray(beat_times_s, float)
    if len(beat_times_s) < 10 or beat_times_s[-1] - beat_times_s[0] < MIN_RESPIRATION_S:
        return None
    intervals_s = np.diff(beat_times_s)
    normal = normal_intervals(intervals_s)
    if normal.mean() < 1 - MAX_DROPPED:
        return None
    return _breathing_peak(beat_times_s[1:][normal], intervals_s[normal], 0.5 / float(median(intervals_s)))


def normal_intervals(intervals_s: FloatArray) -> BoolArray:
    """Return which intervals lie between two normal beats."""
    half = 5
    padded = np.pad(intervals_s, half, mode="reflect" if len(intervals_s) > half else "edge")
    local_median = median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1)
    return np.asarray(
        (intervals_s > 0.3)
        & (intervals_s < 1.5)
        & (np.abs(intervals_s - local_median) <= 0.25 * local_median)
    )


def _tachogram(at_s: FloatArray, values: FloatArray) -> FloatArray:
    grid_s = np.arange(at_s[0], at_s[-1], 1 / _TACHOGRAM_HZ)
    return np.interp(grid_s, at_s, values)


def _power(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    x = filters.remove_linear_trend(values) * np.hanning(len(values))
    size = filters.fast_length(max(4 * len(x), 1024))
    return np.fft.rfftfreq(size, 1 / _TACHOGRAM_HZ), np.abs(np.fft.rfft(x, size)) ** 2


def _lf_hf(beat_times_s: FloatArray, intervals_s: FloatArray, normal: BoolArray) -> float | None:
    hz, power = _power(_tachogram(beat_times_s[1:][normal], intervals_s[normal]))
    low = float(power[(hz >= LF_HZ[0]) & (hz < LF_HZ[1])].sum())
    high = float(power[(hz >= HF_HZ[0]) & (hz < HF_HZ[1])].sum())
    return low / high if high > 0 else None


def _breathing_peak(at_s: FloatArray, intervals_s: FloatArray, nyquist_hz: float) -> float | None:
    """Return the rate of the peak with most of the power, in breaths per minute; None for drift and noise."""
    series = _tachogram(at_s, intervals_s)
    duration_s = len(series) / _TACHOGRAM_HZ
    hz, power = _power(series)
    # Half the heart rate is the Nyquist limit of the beat intervals.
    inside = (hz >= BREATHING_HZ[0]) & (hz <= min(BREATHING_HZ[1], 0.9 * nyquist_hz))
    if not inside.any() or series.std() < 1e-6 * abs(series.mean()):
        return None
    best = int(np.flatnonzero(inside)[np.argmax(power[inside])])
    if power[best] < max(power[best - 1], power[best + 1]):
        return None  # the edge of a peak outside the band
    total = (hz >= LF_HZ[0]) & (hz <= nyquist_hz)
    peak = total & (np.abs(hz - hz[best]) <= max(0.03, 1.5 / duration_s))
    min_share = MIN_BREATHING_SHARE + MIN_BREATHING_SHARE_S / duration_s
    return 60 * float(hz[best]) if power[peak].sum() >= min_share * power[total].sum() else None
