"""Fit damped oscillators to the leading impulse responses of a learned filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray
from . import fir
from .fit_oscillator import MIN_SAMPLES, Identification, identify_forced
from .oscillator import Oscillator, positive, signal_1d

EPS = 0.05  # share of Σ|h| outside the effective length
LATE_S = 0.1  # lag from which on the kernel counts as memory
MAX_DELAY_S = 0.6  # of the oscillator
_REFINED = 2  # number of delays with a full fit


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """One impulse response of the filter, and the oscillator with the best fit."""

    share: float  # 0–1 of the filter's energy
    kernel: FloatArray  # (L,) impulse response, lag 0 first, largest value positive
    features: FloatArray  # (C,) weights of the inputs that drive it, norm 1
    fit: Identification  # of an impulse at `delay_frames`
    delay_frames: int  # before the oscillator starts

    @property
    def explained(self) -> float:
        """R² of the damped oscillator relative to zero."""
        return self.fit.explained

    @property
    def hz(self) -> float:
        """The natural frequency ω / 2π."""
        return self.fit.omega / (2 * np.pi)

    @property
    def memory(self) -> float:
        """0–1: the share of the energy of the kernel at lags of LATE_S and more.

        A filter that uses only the newest frames has none, and any strongly damped oscillator explains it.
        """
        return float(np.sum(self.kernel[self._late :] ** 2) / np.sum(self.kernel**2))

    @property
    def explained_memory(self) -> float:
        """R² of the same oscillator at lags of LATE_S and more."""
        late = self.kernel[self._late :]
        missed = float(np.sum((late - self.fit.fitted[self._late :]) ** 2))
        return 1 - missed / max(float(np.sum(late**2)), 1e-300)

    @property
    def _late(self) -> int:
        return round(LATE_S / self.fit.oscillator.dt_s)

    @property
    def effective_frames(self) -> int:
        """The number of lags that hold all but EPS of Σ|h|."""
        return effective_frames(self.kernel)

    @property
    def needed_frames(self) -> int:
        """The same number for the fitted oscillator, including the delay."""
        errors = fir.truncation_errors(self.fit.oscillator, self.bound_frames, self._force_bound)
        return self.delay_frames + max(int(np.argmax(errors <= EPS)), 1)

    @property
    def bound_frames(self) -> int:
        """The sufficient length of Proposition 2, including the delay."""
        return self.delay_frames + fir.fir_length(self.fit.oscillator, EPS, self._force_bound)

    @property
    def _force_bound(self) -> float:
        """The force for which the largest response is 1, so that EPS is a share of it."""
        return 1 / fir.truncation_error(self.fit.oscillator, 0, 1.0)


def components(jacobian: FloatArray, fps: float, count: int = 3) -> list[Component]:
    """Return the leading impulse responses of a filter (C,L), features by lags, with their oscillators.

    They are singular vectors: jacobian[c,m] = Σ_k features_k[c] · kernel_k[m].
    """
    table = np.asarray(jacobian, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < MIN_SAMPLES or not np.isfinite(table).all() or not table.any():
        accepted = f"finite, not all zero, (C,L) with L ≥ {MIN_SAMPLES}"
        raise ArgumentError("jacobian", f"shape {table.shape}", accepted)
    left, size, right = np.linalg.svd(table, full_matrices=False)
    energy = size**2 / np.sum(size**2)
    found = []
    for k in range(min(count, int(np.sum(energy > 1e-9)))):
        sign = np.sign(right[k, np.argmax(np.abs(right[k]))])
        kernel, features = sign * size[k] * right[k], sign * left[:, k]
        fit, delay_frames = nearest_oscillator(kernel, fps)
        found.append(Component(float(energy[k]), kernel, features, fit, delay_frames))
    return found


def nearest_oscillator(kernel: FloatArray, fps: float) -> tuple[Identification, int]:
    """Fit a damped oscillator to an impulse response (L,); return it and its delay in frames.

    It is zero before the delay. The position and velocity at the delay are free parameters.
    """
    taps = signal_1d("kernel", kernel, MIN_SAMPLES)
    latest = min(round(MAX_DELAY_S * positive("fps", fps)), len(taps) - MIN_SAMPLES)
    delays = list(range(max(latest, 0) + 1))
    likely = sorted(delays, key=lambda delay: _coarse_residual(taps, fps, delay))[:_REFINED]
    fits = []
    for delay in likely:
        impulses = np.zeros((2, len(taps)))
        impulses[0, delay] = impulses[1, delay + 1] = 1.0
        fits.append((identify_forced(taps, impulses, fps, offset=False), delay))
    return max(fits, key=lambda pair: pair[0].explained)


def _coarse_residual(taps: FloatArray, fps: float, delay: int) -> float:
    """Return the residual energy of the best oscillator of a coarse grid, with a delay of `delay` frames."""
    tail = taps[delay:]
    explained = 0.0
    for hz in np.geomspace(0.4, 0.27 * fps, 14):
        for ratio in (0.05, 0.2, 0.5, 1.1):
            g = Oscillator(4 * np.pi * ratio * hz, 2 * np.pi * hz, 1 / fps).kernel(len(tail))
            responses = np.stack([g, np.concatenate([[0.0], g[:-1]])], axis=1)  # (n,2)
            basis = np.linalg.qr(responses)[0]
            explained = max(explained, float(np.sum((basis.T @ tail) ** 2)))
    return float(np.sum(taps**2)) - explained


def effective_frames(kernel: FloatArray, eps: float = EPS) -> int:
    """Return the number of lags that hold all but a share `eps` of Σ|h|."""
    weight = np.abs(signal_1d("kernel", kernel))
    held = np.cumsum(weight) / np.sum(weight)
    return int(np.argmax(held >= 1 - eps)) + 1
