"""How far readings are from the truth: the field's measures, with their standard errors.

Standard errors follow the convention of the field (n readings, e the errors, std over all n):

    SE(MAE) = std|e| / √n     SE(RMSE) = √(std(e²) / √n)     SE(MAPE) = 100 · std|e/truth| / √n
    SE(r) = √((1 − r²) / (n − 2))     SE(share) = √(p(1 − p) / n)

What is not defined (a correlation of two readings, or of a constant) is None, never nan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ..errors import ArgumentError, UnknownNameError
from ..signal import filters, quality, rate
from ..signal.constants import BAND_HZ, TOOLBOX_BAND_HZ, TOOLBOX_DETREND
from ..types import FloatArray, Waveform

WITHIN_BPM = 5.0
_LINE_HALF_WIDTH_HZ = 0.1
Convention: TypeAlias = Literal["ours", "toolbox"]
CONVENTIONS: tuple[Convention, ...] = ("ours", "toolbox")


@dataclass(frozen=True, slots=True)
class Score:
    """A measure and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything a table row needs."""

    count: int
    mae: Score  # bpm
    rmse: Score  # bpm
    mape: Score  # per cent
    pearson: Score | None
    within: Score  # share of readings within 5 bpm
    snr_db: Score | None = None
    macc: Score | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One predicted wave beside its reference."""

    bpm: float
    truth_bpm: float
    snr_db: float
    macc: float


@dataclass(frozen=True, slots=True)
class Interval:
    """A range that holds the measure with the stated probability."""

    low: float
    high: float
    level: float


def paired(
    estimate: FloatArray | Sequence[float], truth: FloatArray | Sequence[float], least: int = 1
) -> tuple[FloatArray, FloatArray]:
    """Both as float64 (n,); anything that is not a pair of equally long, finite lists is refused."""
    left, right = np.asarray(estimate, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape or len(left) < least:
        raise ArgumentError(
            "estimate, truth", f"shapes {left.shape} and {right.shape}", f"two of shape (n,), n ≥ {least}"
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise ArgumentError(
            "estimate, truth", "nan or infinity", "finite values; leave out what was not read"
        )
    return left, right


def mae(estimate: FloatArray, truth: FloatArray) -> Score:
    """Mean absolute error."""
    left, right = paired(estimate, truth)
    return _mean(np.abs(left - right))


def rmse(estimate: FloatArray, truth: FloatArray) -> Score:
    """Root mean squared error."""
    left, right = paired(estimate, truth)
    squared = (left - right) ** 2
    return Score(math.sqrt(squared.mean()), math.sqrt(squared.std() / math.sqrt(len(squared))))


def mape(estimate: FloatArray, truth: FloatArray) -> Score:
    """Mean absolute error as a percentage of the truth."""
    left, right = paired(estimate, truth)
    if not right.all():
        raise ArgumentError("truth", "a rate of 0", "rates other than 0")
    return _mean(100 * np.abs((left - right) / right))


def pearson(estimate: FloatArray, truth: FloatArray) -> Score | None:
    """Pearson's correlation; None below three readings or when one side is constant."""
    left, right = paired(estimate, truth)
    a, b = _centred(left), _centred(right)
    if len(left) < 3 or a is None or b is None:
        return None
    r = float(np.clip(a @ b, -1, 1))
    return Score(r, math.sqrt((1 - r**2) / (len(left) - 2)))


def within(estimate: FloatArray, truth: FloatArray, bpm: float = WITHIN_BPM) -> Score:
    """Share of readings at most `bpm` from the truth."""
    left, right = paired(estimate, truth)
    return _mean((np.abs(left - right) <= bpm).astype(np.float64))


def macc(prediction: FloatArray, reference: FloatArray) -> float:
    """Largest |correlation| of two waves (T,) over all circular lags; 0 when one of them is flat."""
    left, right = paired(prediction, reference, least=2)
    a, b = _centred(left), _centred(right)
    if a is None or b is None:
        return 0.0
    lags = np.fft.irfft(np.fft.rfft(a) * np.conj(np.fft.rfft(b)), len(a))
    return min(float(np.abs(lags).max()), 1.0)


def toolbox_snr_db(values: FloatArray, fps: float, truth_bpm: float) -> float:
    """SNR as the toolboxes compute it: plain periodogram, ±0.1 Hz around f₀ and 2f₀ over the rest of band.

    f₀ is the rate of the label. The answer is kept within ±60 dB, so that a pure tone is still a number.
    """
    x = np.asarray(values, dtype=np.float64)
    hz = np.fft.rfftfreq(_next_power_of_two(len(x)), 1 / fps)
    power = np.abs(np.fft.rfft(x - x.mean(), _next_power_of_two(len(x)))) ** 2
    line_hz = truth_bpm / 60
    line = (np.abs(hz - line_hz) <= _LINE_HALF_WIDTH_HZ) | (np.abs(hz - 2 * line_hz) <= _LINE_HALF_WIDTH_HZ)
    low_hz, high_hz = TOOLBOX_BAND_HZ
    rest = (hz >= low_hz) & (hz <= high_hz) & ~line
    signal, noise = float(power[line].sum()), float(power[rest].sum())
    floor = 1e-6 * (signal + noise) + 1e-300
    return 10 * math.log10(max(signal, floor) / max(noise, floor))


def compare(prediction: Waveform, reference: Waveform, convention: Convention = "ours") -> Comparison | None:
    """Rate, SNR and waveform agreement of one window; None when either wave holds no pulse at all.

    `ours` interpolates the peak; `toolbox` follows the field: smoothness-priors detrending, first-order
    Butterworth, the largest bin of a periodogram.
    """
    if len(prediction.values) != len(reference.values) or prediction.fps != reference.fps:
        raise ArgumentError(
            "prediction, reference",
            f"{len(prediction.values)} samples at {prediction.fps:g} fps and {len(reference.values)} at "
            f"{reference.fps:g}",
            "two waves on one clock",
        )
    if convention not in CONVENTIONS:
        raise UnknownNameError("convention", convention, CONVENTIONS)
    found, true = rate.spectral_peak(prediction), rate.spectral_peak(reference)
    if found is None or true is None:
        return None
    if convention == "ours":
        return Comparison(
            found.bpm,
            true.bpm,
            quality.snr_db(prediction, true.bpm),
            macc(
                filters.bandpass(prediction.values, prediction.fps, *BAND_HZ),
                filters.bandpass(reference.values, reference.fps, *BAND_HZ),
            ),
        )
    ours, theirs = (_toolbox_filtered(wave) for wave in (prediction, reference))
    truth_bpm = rate.toolbox_bpm(reference)
    return Comparison(
        rate.toolbox_bpm(prediction),
        truth_bpm,
        toolbox_snr_db(ours, prediction.fps, truth_bpm),
        macc(ours, theirs),
    )


def summarise(
    estimate: FloatArray | Sequence[float],
    truth: FloatArray | Sequence[float],
    *,
    snr_db: FloatArray | Sequence[float] | None = None,
    macc: FloatArray | Sequence[float] | None = None,
) -> Summary:
    """All measures of a list of readings (n,); SNR and MACC, one per reading, if they are known."""
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
    """All measures of a list of compared windows."""
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
    """Interval of `statistic(*columns)` when whole subjects are drawn anew, each with all its readings.

    Draws for which the statistic is not defined are left out; None when most of them are, or when there is
    only one subject.
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
    """Without its mean and of length 1; None when nothing but rounding is left."""
    centred = values - values.mean()
    size = float(np.linalg.norm(centred))
    return None if size <= 1e-12 * float(np.linalg.norm(values)) else centred / size


def _toolbox_filtered(wave: Waveform) -> FloatArray:
    smooth = filters.detrend(wave.values, TOOLBOX_DETREND)
    return filters.butterworth(smooth, wave.fps, *TOOLBOX_BAND_HZ, order=1)


def _next_power_of_two(count: int) -> int:
    return 1 << max(count - 1, 0).bit_length()
