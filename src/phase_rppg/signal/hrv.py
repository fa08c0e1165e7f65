"""Heart rate variability and breathing from beats, each given only where it means something.

Limits (Task Force of the ESC and NASPE 1996; Shaffer and Ginsberg 2017): RMSSD from 30 s, SDNN and pNN50
from 60 s, LF/HF from 120 s of beats. Intervals that cannot be a normal beat (outside 0.3–1.5 s, or more
than 25 % from the running median) are dropped; if more than a fifth would have to go, nothing is returned.

Noise of the wave moves its beats, and every number but breathing would take that for variability: times that
spread by σ add 6σ² to RMSSD² and 2σ² to SDNN². A number is given only if that is at most a third of it (it is
then at most 22 % too high), and if σ is at most 2 % of the beat interval: beyond that, wrong maxima are taken
for beats, of which the formula knows nothing. pNN50 and LF/HF live on the same differences as RMSSD.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import FloatArray
from . import filters

MIN_RMSSD_S, MIN_SDNN_S, MIN_LF_HF_S = 30.0, 60.0, 120.0
MIN_RESPIRATION_S = 30.0
MAX_DROPPED = 0.2
MAX_NOISE = 1 / 3  # share of a variance that may be noise of the beat times
MAX_JITTER = 0.02  # of the beat interval
LF_HZ, HF_HZ = (0.04, 0.15), (0.15, 0.40)
BREATHING_HZ = (0.1, 0.5)  # 6–30 breaths per minute
# Share of all sway that one line must hold: noise alone gathers this much in fewer than 1 of 50 short runs.
CLEAR_BREATHING, CLEAR_BREATHING_S = 0.5, 10.0  # 0.5 + 10 s / duration
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


def hrv(beat_times_s: FloatArray, jitter_s: float = 0.0) -> Hrv | None:
    """Variability of a run of beats, or None when it is too short or too broken to say anything.

    `jitter_s` is the standard deviation of the times that is not the heart's (`jitter.beat_jitter_s`).
    """
    beat_times_s = np.asarray(beat_times_s, float)
    if len(beat_times_s) < 3:
        return None
    intervals_s = np.diff(beat_times_s)
    normal = _normal(intervals_s)
    usable_s = float(intervals_s[normal].sum())
    if normal.mean() < 1 - MAX_DROPPED or usable_s < MIN_RMSSD_S:
        return None
    ms = 1000 * intervals_s
    follows = normal[1:] & normal[:-1]
    change_ms = np.diff(ms)[follows]
    rmssd_ms, sdnn_ms = float(np.sqrt(np.mean(change_ms**2))), float(ms[normal].std(ddof=1))
    exact = jitter_s <= MAX_JITTER * float(np.median(intervals_s))
    changes_seen = exact and 6 * (1000 * jitter_s) ** 2 <= MAX_NOISE * rmssd_ms**2
    spread_seen = exact and 2 * (1000 * jitter_s) ** 2 <= MAX_NOISE * sdnn_ms**2
    long_enough = usable_s >= MIN_SDNN_S
    lf_hf = changes_seen and usable_s >= MIN_LF_HF_S
    return Hrv(
        beats=len(beat_times_s),
        duration_s=usable_s,
        rmssd_ms=rmssd_ms if changes_seen else None,
        sdnn_ms=sdnn_ms if spread_seen and long_enough else None,
        pnn50=float(np.mean(np.abs(change_ms) > 50)) if changes_seen and long_enough else None,
        lf_hf=_lf_hf(beat_times_s, intervals_s, normal) if lf_hf else None,
        breaths_per_minute=respiration(beat_times_s),
    )


def respiration(beat_times_s: FloatArray) -> float | None:
    """Breaths per minute from the sway of the beat intervals, or None when no clear single line is there."""
    beat_times_s = np.asarray(beat_times_s, float)
    if len(beat_times_s) < 10 or beat_times_s[-1] - beat_times_s[0] < MIN_RESPIRATION_S:
        return None
    intervals_s = np.diff(beat_times_s)
    normal = _normal(intervals_s)
    if normal.mean() < 1 - MAX_DROPPED:
        return None
    return _clear_line(beat_times_s[1:][normal], intervals_s[normal], 0.5 / float(np.median(intervals_s)))


def _normal(intervals_s: FloatArray) -> np.ndarray:
    """Which intervals may lie between two normal beats."""
    reach = 5
    padded = np.pad(intervals_s, reach, mode="reflect" if len(intervals_s) > reach else "edge")
    around = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1), axis=1)
    return (intervals_s > 0.3) & (intervals_s < 1.5) & (np.abs(intervals_s - around) <= 0.25 * around)


def _tachogram(at_s: FloatArray, values: FloatArray) -> FloatArray:
    grid_s = np.arange(at_s[0], at_s[-1], 1 / _TACHOGRAM_HZ)
    return np.interp(grid_s, at_s, values)


def _power(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    x = filters.remove_line(values) * np.hanning(len(values))
    size = filters.fast_length(max(4 * len(x), 1024))
    return np.fft.rfftfreq(size, 1 / _TACHOGRAM_HZ), np.abs(np.fft.rfft(x, size)) ** 2


def _lf_hf(beat_times_s: FloatArray, intervals_s: FloatArray, normal: np.ndarray) -> float | None:
    hz, power = _power(_tachogram(beat_times_s[1:][normal], intervals_s[normal]))
    low = float(power[(hz >= LF_HZ[0]) & (hz < LF_HZ[1])].sum())
    high = float(power[(hz >= HF_HZ[0]) & (hz < HF_HZ[1])].sum())
    return low / high if high > 0 else None


def _clear_line(at_s: FloatArray, intervals_s: FloatArray, nyquist_hz: float) -> float | None:
    """The one line that holds most of the sway; a drift and the jitter of the beats are no line."""
    series = _tachogram(at_s, intervals_s)
    duration_s = len(series) / _TACHOGRAM_HZ
    hz, power = _power(series)
    # Breathing faster than half the heart rate cannot be seen in its beats.
    inside = (hz >= BREATHING_HZ[0]) & (hz <= min(BREATHING_HZ[1], 0.9 * nyquist_hz))
    if not inside.any() or series.std() < 1e-6 * abs(series.mean()):
        return None
    best = int(np.flatnonzero(inside)[np.argmax(power[inside])])
    if power[best] < max(power[best - 1], power[best + 1]):
        return None  # the flank of something outside the band
    sway = (hz >= LF_HZ[0]) & (hz <= nyquist_hz)
    line = sway & (np.abs(hz - hz[best]) <= max(0.03, 1.5 / duration_s))
    needed = CLEAR_BREATHING + CLEAR_BREATHING_S / duration_s
    return 60 * float(hz[best]) if power[line].sum() >= needed * power[sway].sum() else None
