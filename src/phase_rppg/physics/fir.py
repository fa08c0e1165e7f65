"""The length of an FIR filter that approximates the oscillator: Proposition 2 with proven constants.

The proposition needs K and ρ with ‖Aᵐ‖ ≤ K ρᵐ for all m. The spectral radius r is not sufficient: when A
is critically damped, its eigenvectors coincide and ‖Aᵐ‖ first grows like m rᵐ. For a 2×2 matrix with
eigenvalues λ, μ (Newton's form of the m-th power)

    Aᵐ = μᵐ I + s_m (A − μI),   |s_m| = |Σ_{j<m} λʲ μ^{m−1−j}| ≤ r^{m−1} min(m, 2r / |λ − μ|)

so ‖Aᵐ‖ ≤ rᵐ (1 + min(m, G) N / r) with N = ‖A − μI‖ and G = 2r / |λ − μ|, infinite if λ = μ.
For any ρ ≥ r (ρ > r if G is infinite) K(ρ) = sup over m of (r/ρ)ᵐ (1 + min(m, G) N / r) has a closed form.
Every ρ gives a valid bound; a length or a bound is computed with the ρ that makes it smallest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray
from .oscillator import Oscillator, positive

MAX_TAPS = 5_000_000  # of a kernel that is computed to sum its tail
_EPS = float(np.finfo(np.float64).eps)
# Relative positions between the spectral radius and 1 at which ρ is tried.
_GRID = np.concatenate([[0.0], np.logspace(-4, -0.05, 60)])


@dataclass(frozen=True, slots=True)
class Decay:
    """Constants with ‖Aᵐ‖₂ ≤ K ρᵐ for every m ≥ 0."""

    K: float
    rho: float


@dataclass(frozen=True, slots=True)
class PowerBound:
    """The quantities that bound the powers of a 2×2 matrix, from which K(ρ) follows."""

    radius: float  # r, an upper bound of the spectral radius
    slope: float  # N / r
    growth_steps: float  # G: the number of steps with polynomial growth; may be infinite

    @classmethod
    def of(cls, A: FloatArray) -> PowerBound:
        """Compute them from the matrix; rounding errors only make the bound larger."""
        matrix = np.asarray(A, dtype=np.float64)
        if matrix.shape != (2, 2) or not np.isfinite(matrix).all():
            raise ArgumentError("A", f"shape {np.shape(A)}", "a finite real 2×2 matrix")
        (a, b), (c, d) = matrix.tolist()
        trace, det = a + d, a * d - b * c
        gap_squared = (a - d) ** 2 + 4 * b * c  # (λ − μ)²
        rounding = 16 * _EPS * (trace**2 + (a - d) ** 2 + 4 * abs(b * c) + 4 * abs(a * d))
        radius = (abs(trace) + math.sqrt(max(gap_squared + rounding, 0.0))) / 2
        if gap_squared < 0:  # a complex pair has |λ|² = det
            radius = max(math.sqrt(max(det, 0.0)), radius if gap_squared + rounding > 0 else 0.0)
        radius *= 1 + 4 * _EPS
        if not 0 < radius < 1:
            raise ArgumentError("A", f"spectral radius {radius:.12g}", "a stable matrix, 0 < radius < 1")
        mu = (trace - np.sqrt(complex(gap_squared))) / 2
        distance = float(np.linalg.norm(matrix - mu * np.eye(2), 2)) + math.sqrt(rounding)
        gap = math.sqrt(max(abs(gap_squared) - rounding, 0.0))
        return cls(radius, distance / radius, 2 * radius / gap if gap > 0 else math.inf)

    def K(self, rho: float) -> float:
        """Return the smallest K of the bound for this ρ; infinite if there is none."""
        if not self.radius <= rho < 1:
            raise ArgumentError("rho", rho, f"{self.radius:.12g} ≤ ρ < 1")
        log_q = math.log(self.radius / rho)
        if log_q == 0:
            return 1 + self.slope * self.growth_steps
        peak = min(max(-1 / log_q - 1 / self.slope, 0.0), self.growth_steps)  # of (1 + slope·m) qᵐ
        return (1 + self.slope * peak) * math.exp(log_q * peak)

    def decays(self) -> list[Decay]:
        """Return valid constants for a range of ρ between the spectral radius and 1."""
        rates = [self.radius + float(share) * (1 - self.radius) for share in _GRID]
        found = [Decay(self.K(rho), rho) for rho in rates if rho < 1]
        return [decay for decay in found if math.isfinite(decay.K)]


def decay(A: FloatArray, rho: float | None = None) -> Decay:
    """Return K and ρ with ‖Aᵐ‖ ≤ K ρᵐ for all m; without a given ρ, those with the smallest K / (1 − ρ)."""
    powers = PowerBound.of(A)
    if rho is not None:
        K = powers.K(rho)
        if not math.isfinite(K):
            raise ArgumentError(
                "rho", rho, f"more than the spectral radius of a defective A, {powers.radius}"
            )
        return Decay(K, rho)
    return min(powers.decays(), key=lambda pair: pair.K / (1 - pair.rho))


def truncation_bound(oscillator: Oscillator, length: int, force_bound: float) -> float:
    """Return the error bound of a filter with `length` taps: K·M·‖C‖‖B‖·ρᴿ/(1−ρ), for the best ρ."""
    pair = best_decay(oscillator, length)
    return _scale(oscillator, force_bound) * pair.K * pair.rho**length / (1 - pair.rho)


def best_decay(oscillator: Oscillator, length: int) -> Decay:
    """Return the valid K and ρ with the smallest truncation bound at `length` taps."""
    if length < 0:
        raise ArgumentError("length", length, "0 or more taps")
    pairs = PowerBound.of(oscillator.A).decays()
    return min(pairs, key=lambda pair: math.log(pair.K / (1 - pair.rho)) + length * math.log(pair.rho))


def fir_length(oscillator: Oscillator, eps: float, force_bound: float) -> int:
    """Return the number of taps R that keeps the truncation error below `eps` for forces up to `force_bound`.

    R ≥ log(K·M·‖C‖‖B‖ / (ε(1−ρ))) / log(1/ρ), the smallest over the valid (K, ρ).
    """
    positive("eps", eps)
    scale = _scale(oscillator, force_bound)
    need = min(
        math.log(scale * pair.K / (eps * (1 - pair.rho))) / -math.log(pair.rho)
        for pair in PowerBound.of(oscillator.A).decays()
    )
    length = max(math.ceil(need), 1)
    while truncation_bound(oscillator, length, force_bound) > eps:  # the logarithms may round down
        length += 1
    return length


def truncation_error(oscillator: Oscillator, length: int, force_bound: float) -> float:
    """Return the exact largest error, M · Σ_{m ≥ length} |g[m]|, to about 1e-9 of the whole sum."""
    return float(truncation_errors(oscillator, length, force_bound)[length])


def truncation_errors(oscillator: Oscillator, longest: int, force_bound: float) -> FloatArray:
    """Return the exact largest error for every length 0 … longest, (longest+1,)."""
    scale = _scale(oscillator, force_bound)
    enough = max(fir_length(oscillator, 1e-9 * scale, force_bound), longest + 1)
    if enough > MAX_TAPS:
        raise ArgumentError("oscillator", f"an impulse response of {enough} samples", f"at most {MAX_TAPS}")
    size = np.abs(oscillator.kernel(enough)) * force_bound
    tails: FloatArray = np.cumsum(size[::-1])[::-1]
    return tails[: longest + 1]


def _scale(oscillator: Oscillator, force_bound: float) -> float:
    """Return M ‖C‖ ‖B‖."""
    norms = float(np.linalg.norm(oscillator.C) * np.linalg.norm(oscillator.B))
    return positive("force_bound", force_bound) * norms
