"""Error metrics of readings, with their standard errors.

Standard errors follow the convention of the field (n readings, e the errors, std over all n):

    SE(MAE) = std|e| / √n     SE(RMSE) = √(std(e²) / √n)     SE(MAPE) = 100 · std|e/truth| / √n
    SE(r) = √((1 − r²) / (n − 2))     SE(share) = √(p(1 − p) / n)

A metric that is undefined is None, never NaN. An example is the correlation of two readings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..errors import ArgumentError
from ..signal import filters, quality, rate
from ..signal.constants import BAND_HZ, TOOLBOX_DETREND
from ..types import FloatArray, Waveform
from . import conventions

WITHIN_BPM = 5.0
_PEAK_HALF_WIDTH_HZ = 0.1
Convention: TypeAlias = Literal["ours", "toolbox", "release"]


@dataclass(frozen=True, slots=True)
class Score:
    """The value of a metric and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class Summary:
    """All metrics of a set of readings."""

    count: int
    mae: Score  # bpm
    rmse: Score  # bpm
    mape: Score  # percent
    pearson: Score | None
    within: Score  # share of readings within 5 bpm
    snr_db: Score | None = None
    macc: Score | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of a predicted waveform with its reference."""

    bpm: float
    truth_bpm: float
    snr_db: float
    macc: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a metric."""

    low: float
    high: float
    level: float


def paired(
    estimate: FloatArray | Sequence[float], truth: FloatArray | Sequence[float], least: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Return both as float64 (n,); lists of different lengths and values that are not finite are errors."""
    left, right = np.asarray(estimate, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape or len(left) < least:
        raise ArgumentError(
            "estimate, truth", f"shapes {left.shape} and {right.shape}", f"two of shape (n,), n ≥ {least}"
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise ArgumentError(
            "estimate, truth", "nan or infinity", "finite values; leave out windows without a reading"
        )
    return left, right


def mae(estimate: FloatArray, truth: FloatArray) -> Score:
    """Return the mean absolute error."""
    left, right = paired(estimate, truth)
    return _mean(np.abs(left - right))


def rmse(estimate: FloatArray, truth: FloatArray) -> Score:
    """Return the root mean squared error."""
    left, right = paired(estimate, truth)
    squared = (left - right) ** 2
    return Score(math.sqrt(squared.mean()), math.sqrt(squared.std() / math.sqrt(len(squared))))


def mape(estimate: FloatArray, truth: FloatArray) -> Score:
    """Return the mean absolute error as a percentage of the truth."""
    left, right = paired(estimate, truth)
    if not right.all():
        raise ArgumentError("truth", "a rate of 0", "rates other than 0")
    return _mean(100 * np.abs((left - right) / right))


def pearson(estimate: FloatArray, truth: FloatArray) -> Score | None:
    """Return Pearson's correlation; None for fewer than three readings or a constant input."""
    left, right = paired(estimate, truth)
    a, b = _centred(left), _centred(right)
    if len(left) < 3 or a is None or b is None:
        return None
    r = float(np.clip(a @ b, -1, 1))
    return Score(r, math.sqrt((1 - r**2) / (len(left) - 2)))


def within(estimate: FloatArray, truth: FloatArray, bpm: float = WITHIN_BPM) -> Score:
    """Return the share of readings with an error of at most `bpm`."""
    left, right = paired(estimate, truth)
    return _mean((np.abs(left - right) <= bpm).astype(np.float64))


def macc(prediction: FloatArray, reference: FloatArray, *, last_lag: bool = True) -> float:
    """Return the maximum |correlation| of two waveforms (T,) over all circular lags; 0 if one is constant.

    rPPG-Toolbox delays the reference by 0 … T − 2 frames: without `last_lag`, T − 1 is left out.
    """
    left, right = paired(prediction, reference, least=2)
    a, b = _centred(left), _centred(right)
    if a is None or b is None:
        return 0.0
    lags = np.fft.irfft(np.fft.rfft(a) * np.conj(np.fft.rfft(b)), len(a))
    used = lags if last_lag else lags[:-1]
    return min(float(np.abs(used).max()), 1.0)


def toolbox_snr_db(
    values: FloatArray, fps: float, truth_bpm: float, convention: conventions.Convention = conventions.TOOLBOX
) -> float:
    """Return the SNR as rPPG-Toolbox computes it: power within 0.1 Hz of f₀ and 2f₀ over the rest.

    f₀ is the reference rate, and the spectrum is a periodogram without a window; the mean is not subtracted.
    The result is limited to ±60 dB, so that a pure tone has a finite SNR. A convention with `squared_snr`
    sums squared power.
    """
    x = np.asarray(values, dtype=np.float64)
    hz = np.fft.rfftfreq(_next_power_of_two(len(x)), 1 / fps)
    power = np.abs(np.fft.rfft(x, _next_power_of_two(len(x)))) ** 2
    if convention.squared_snr:
        power = (power / (power.max() or 1.0)) ** 2
    peak_hz = truth_bpm / 60
    peak = (np.abs(hz - peak_hz) <= _PEAK_HALF_WIDTH_HZ) | (np.abs(hz - 2 * peak_hz) <= _PEAK_HALF_WIDTH_HZ)
    low_hz, high_hz = convention.band_hz
    rest = (hz >= low_hz) & (hz <= high_hz) & ~peak
    signal, noise = float(power[peak].sum()), float(power[rest].sum())
    floor = 1e-6 * (signal + noise) + 1e-300
    return 10 * math.log10(max(signal, floor) / max(noise, floor))


def compare(prediction: Waveform, reference: Waveform, convention: Convention = "ours") -> Comparison | None:
    """Return rate, SNR and MACC of one window; None if either waveform has no spectral peak.

    The convention `ours` interpolates the spectral peak. `toolbox` follows rPPG-Toolbox: smoothness-priors
    detrending, a first-order Butterworth filter and the largest bin of a periodogram. Its prediction may end
    before the reference, as CHROM does. `release` is `toolbox` with the band and the SNR of the released
    PHASE-Net.
    """
    rules = conventions.get(convention)
    missing = len(reference.values) - len(prediction.values)
    if missing < 0 or (missing and rules.interpolates) or prediction.fps != reference.fps:
        raise ArgumentError(
            "prediction, reference",
            f"{len(prediction.values)} samples at {prediction.fps:g} fps and {len(reference.values)} at "
            f"{reference.fps:g}",
            "two waveforms of equal length and frame rate",
        )
    return (
        _interpolated(prediction, reference) if rules.interpolates else _binned(prediction, reference, rules)
    )


def _interpolated(prediction: Waveform, reference: Waveform) -> Comparison | None:
    found, true = rate.spectral_peak(prediction), rate.spectral_peak(reference)
    if found is None or true is None:
        return None
    left, right = (filters.bandpass(wave.values, wave.fps, *BAND_HZ) for wave in (prediction, reference))
    return Comparison(found.bpm, true.bpm, quality.snr_db(prediction, true.bpm), macc(left, right))


def _binned(prediction: Waveform, reference: Waveform, rules: conventions.Convention) -> Comparison | None:
    if _centred(prediction.values) is None or _centred(reference.values) is None:
        return None
    ours, theirs = (_toolbox_filtered(wave, rules) for wave in (prediction, reference))
    truth_bpm = rate.toolbox_bpm(reference, band_hz=rules.band_hz)
    return Comparison(
        rate.toolbox_bpm(prediction, band_hz=rules.band_hz),
        truth_bpm,
        toolbox_snr_db(ours, prediction.fps, truth_bpm, rules),
        macc(ours, theirs[: len(ours)], last_lag=rules.last_lag),
    )


def summarise(
    estimate: FloatArray | Sequence[float],
    truth: FloatArray | Sequence[float],
    *,
    snr_db: FloatArray | Sequence[float] | None = None,
    macc: FloatArray | Sequence[float] | None = None,
) -> Summary:
    """Return all metrics of readings (n,); `snr_db` and `macc` are optional values per reading."""
    left, right = paired(estimate, truth)
    return Summary(
        count=len(left),
        mae=mae(left, right),
        rmse=rmse(left, right),
        mape=mape(left, right),
        pearson=pearson(left, right),
        within=within(left, right),
        snr_db=None if snr_db is None else _mean(paired(snr_db, right)[0]),
        macc=None if macc is None else _mean(paired(macc, right)[0]),
    )


def summarise_comparisons(comparisons: Sequence[Comparison]) -> Summary:
    """Return all metrics of a list of comparisons."""
    return summarise(
        [c.bpm for c in comparisons],
        [c.truth_bpm for c in comparisons],
        snr_db=[c.snr_db for c in comparisons],
        macc=[c.macc for c in comparisons],
    )


def bootstrap(
    statistic: Callable[..., float | None],
    subjects: Sequence[str],
    *columns: FloatArray | Sequence[float],
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """Return the bootstrap interval of `statistic(*columns)`, resampling subjects with all their readings.

    Draws with an undefined statistic are ignored. The result is None if most draws are undefined or if there
    is only one subject.
    """
    if not 0 < level < 1:
        raise ArgumentError("level", level, "0 < level < 1")
    if draws < 10:
        raise ArgumentError("draws", draws, "at least 10")
    arrays = [np.asarray(column, dtype=np.float64) for column in columns]
    if not arrays or any(array.shape[:1] != (len(subjects),) for array in arrays):
        raise ArgumentError(
            "columns", [array.shape for array in arrays], f"one value per reading, ({len(subjects)},) each"
        )
    names, owner = np.unique(np.asarray(subjects, dtype=str), return_inverse=True)
    if len(names) < 2:
        return None
    rows = [np.flatnonzero(owner == k) for k in range(len(names))]
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        drawn = np.concatenate([rows[k] for k in rng.integers(0, len(names), len(names))])
        value = statistic(*(array[drawn] for array in arrays))
        if value is not None:
            found.append(value)
    if len(found) < draws / 2:
        return None
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level)


def _mean(values: FloatArray) -> Score:
    return Score(float(values.mean()), float(values.std() / math.sqrt(len(values))))


def _centred(values: FloatArray) -> FloatArray | None:
    """Subtract the mean and scale to unit norm; None if the values are constant up to rounding."""
    centred = values - values.mean()
    size = float(np.linalg.norm(centred))
    return None if size <= 1e-12 * float(np.linalg.norm(values)) else centred / size


def _toolbox_filtered(wave: Waveform, rules: conventions.Convention) -> FloatArray:
    smooth = filters.detrend(wave.values, TOOLBOX_DETREND)
    return filters.butterworth(smooth, wave.fps, *rules.band_hz, order=1)


def _next_power_of_two(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()
