"""Fit a damped oscillator to a waveform, and measure how much of the waveform it explains.

    values ≈ offset + Σ_j gain_j · (g_{α,ω} ∗ force_j)

For given α and ω, the offset and the gains follow from linear least squares. Only α and ω are searched: first
on a grid, then by Gauss–Newton (variable projection). α and ω are those of the discrete oscillator at
this frame rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray
from .oscillator import Oscillator, convolve, positive, signal_1d

MIN_SAMPLES = 8
HISTORY_S = 4.0  # before the first sample, because earlier beats still have an effect
_DAMPING_RATIOS = (0.05, 0.15, 0.4, 0.8, 1.2, 2.5)


@dataclass(frozen=True, slots=True, eq=False)
class Identification:
    """The oscillator with the best fit."""

    oscillator: Oscillator
    gains: FloatArray  # (J,) one per force
    offset: float
    fitted: FloatArray  # (T,)
    explained: float  # R²: 1 is perfect, 0 is no better than the mean
    delay_s: float = 0.0  # delay of the force, if it was fitted

    @property
    def alpha(self) -> float:
        return self.oscillator.alpha

    @property
    def omega(self) -> float:
        return self.oscillator.omega


def identify_forced(
    values: FloatArray, forces: FloatArray, fps: float, *, offset: bool = True
) -> Identification:
    """Fit an oscillator to the waveform (T,) that known forces (J,T) or (T,) cause.

    Without an offset, the waveform is zero at rest, and R² is relative to zero.
    """
    wave = signal_1d("values", values, MIN_SAMPLES)
    drive = np.atleast_2d(np.asarray(forces, dtype=np.float64))
    if drive.ndim != 2 or drive.shape[1] != len(wave) or not np.isfinite(drive).all() or not drive.any():
        raise ArgumentError(
            "forces", f"shape {drive.shape}", f"finite, not all zero, ({len(wave)},) or (J,T)"
        )
    return _fit(wave, fps, lambda _: drive, delays_s=(0.0,), offset=offset)


def identify_free(values: FloatArray, fps: float) -> Identification:
    """Fit an oscillator without a force: an impulse response or a decay.

    Position and velocity at the first sample are free parameters: impulses on the first two samples set them.
    """
    wave = signal_1d("values", values, MIN_SAMPLES)
    impulses = np.zeros((2, len(wave)))
    impulses[0, 0] = impulses[1, 1] = 1.0
    return identify_forced(wave, impulses, fps)


def identify_pulse(values: FloatArray, fps: float, beat_times_s: FloatArray) -> Identification:
    """Fit an oscillator to a pulse wave (T,) with one impulse per beat.

    Beat times are relative to the first sample. They may mark feet or peaks, because the delay of the impulse
    is fitted as well (within half a median beat). Earlier beats are assumed at the median interval.
    """
    wave = signal_1d("values", values, MIN_SAMPLES)
    beats_s = signal_1d("beat_times_s", beat_times_s, 2)
    positive("fps", fps, "frames per second")
    interval_s = float(np.median(np.diff(beats_s)))
    if np.diff(beats_s).min() <= 0 or beats_s[-1] < 0 or beats_s[0] > len(wave) / fps:
        raise ArgumentError(
            "beat_times_s", f"{beats_s[0]:g} … {beats_s[-1]:g} s", "increasing times within the waveform"
        )
    earlier_s = beats_s[0] - interval_s * np.arange(math.ceil(HISTORY_S / interval_s), 0, -1)
    later_s = beats_s[-1] + interval_s  # with a negative delay, the next beat can belong to the waveform
    impulses_s = np.concatenate([earlier_s, beats_s, [later_s]]) + HISTORY_S
    samples = len(wave) + round(HISTORY_S * fps)
    delays_s = np.linspace(-interval_s / 2, interval_s / 2, 13)
    return _fit(wave, fps, lambda delay_s: _impulse_train(impulses_s + delay_s, samples, fps)[None], delays_s)


def _fit(
    wave: FloatArray,
    fps: float,
    forces: Callable[[float], FloatArray],
    delays_s: Sequence[float] | FloatArray,
    offset: bool = True,
) -> Identification:
    """Fit α, ω and, if several delays are given, the delay; `forces(delay)` is (J, history + T)."""
    dt_s = 1 / positive("fps", fps, "frames per second")
    spread = float(np.sum((wave - wave.mean()) ** 2 if offset else wave**2))
    if spread <= 1e-24 * max(float(np.sum(wave**2)), 1e-280):
        raise ArgumentError("values", "a constant", "a waveform that is not constant")

    def project(x: FloatArray) -> tuple[Oscillator, FloatArray, FloatArray]:
        """Return the oscillator of x = (log α, log ω[, delay]), its coefficients (offset first) and fit."""
        oscillator = Oscillator(float(np.exp(x[0])), float(np.exp(x[1])), dt_s)
        drive = forces(float(x[2]) if len(x) > 2 else delays_s[0])
        kernel = (
            oscillator.kernel(drive.shape[1]) * oscillator.omega**2
        )  # static gain 1, for the conditioning
        responses = [convolve(kernel, row)[-len(wave) :] for row in drive]
        columns = np.stack([np.full(len(wave), float(offset)), *responses], axis=1)  # (T,1+J)
        scale = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
        coefficients = np.linalg.lstsq(columns / scale, wave, rcond=None)[0] / scale
        return oscillator, coefficients, columns @ coefficients

    slowest, fastest = (
        0.5 / (len(wave) * dt_s),
        1.9 / dt_s,
    )  # rad/s: less than one period in the waveform; close to instability
    low, high = [slowest / 50, slowest], [20 / dt_s, fastest]
    grid = [
        np.array([np.log(np.clip(2 * ratio * omega, 1.01 * low[0], 0.99 * high[0])), np.log(omega)])
        for omega in np.geomspace(slowest * 1.01, fastest * 0.99, 16)
        for ratio in _DAMPING_RATIOS
    ]
    bounds = (np.log(low), np.log(high))
    if len(delays_s) > 1:
        grid = [np.append(point, delay_s) for point in grid for delay_s in delays_s[1:-1]]
        bounds = (np.append(bounds[0], delays_s[0]), np.append(bounds[1], delays_s[-1]))
    x = _search(lambda point: wave - project(point)[2], grid, bounds)
    oscillator, coefficients, fitted = project(x)
    return Identification(
        oscillator=oscillator,
        gains=coefficients[1:] * oscillator.omega**2,
        offset=float(coefficients[0]),
        fitted=fitted,
        explained=float(1 - np.sum((wave - fitted) ** 2) / spread),
        delay_s=float(x[2]) if len(x) > 2 else 0.0,
    )


def _search(
    residual: Callable[[FloatArray], FloatArray],
    grid: list[FloatArray],
    bounds: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return the point with the smallest residual: the best three grid points are refined."""
    from scipy.optimize import least_squares

    starts = sorted(grid, key=lambda point: float(np.sum(residual(point) ** 2)))[:3]
    fits = [least_squares(residual, start, bounds=bounds, xtol=1e-12, ftol=1e-12) for start in starts]
    best: FloatArray = min(fits, key=lambda fit: float(fit.cost)).x
    return best


def _impulse_train(times_s: FloatArray, count: int, fps: float) -> FloatArray:
    """Return unit impulses (T,), each divided between its two neighbouring samples."""
    position = times_s * fps
    below = np.floor(position).astype(np.int64)
    share = position - below
    index, weight = np.concatenate([below, below + 1]), np.concatenate([1 - share, share])
    inside = (index >= 0) & (index < count)
    return np.bincount(index[inside], weight[inside], minlength=count).astype(np.float64)
