"""The generalisation bounds of the paper as functions.

Names and equations follow its appendix "Generalization Theory of PHASE-Net". The O(ρᴿ) of the paper is
written out as L_ℓ Γ ρᴿ with Γ = U M / (1 − ρ), so that every term can be computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray
from .fir import Decay, decay
from .oscillator import Oscillator, positive


@dataclass(frozen=True, slots=True)
class RiskBound:
    """An upper bound on the risk, term by term."""

    empirical: float  # the risk on the training samples
    complexity: float  # 2 L_ℓ ℜ_n
    confidence: float  # 3 √(log(2/δ) / 2n)
    truncation: float  # L_ℓ Γ ρᴿ
    discrepancy: float = 0.0  # L_ℓ ‖w‖₁ W₁(source, target); 0 for the source domain

    @property
    def total(self) -> float:
        return self.empirical + self.complexity + self.confidence + self.truncation + self.discrepancy


def kernel_l1_bound(oscillator: Oscillator, constants: Decay | None = None) -> float:
    """Return the upper bound of ‖w‖₁: U / (1 − ρ) with U = ‖C‖ K ‖B‖ (Fact 2)."""
    pair = decay(oscillator.A) if constants is None else constants
    return float(np.linalg.norm(oscillator.C) * np.linalg.norm(oscillator.B)) * pair.K / (1 - pair.rho)


def rademacher_bound(l1_bound: float, force_bound: float, length: int, samples: int) -> float:
    """Return the bound of the paper on the Rademacher complexity: L M √(2 log(2R) / n)."""
    _count("length", length)
    _count("samples", samples)
    size = positive("l1_bound", l1_bound) * positive("force_bound", force_bound)
    return size * math.sqrt(2 * math.log(2 * length) / samples)


def rademacher_estimate(
    windows: FloatArray, l1_bound: float, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Estimate the empirical Rademacher complexity of {w : ‖w‖₁ ≤ L} on windows (n,R) by Monte Carlo.

    By duality it is (L/n) E‖Σ σᵢ φᵢ‖_∞. Return the mean over `draws` and its standard error.
    """
    phi = np.asarray(windows, dtype=np.float64)
    if phi.ndim != 2 or phi.size == 0 or not np.isfinite(phi).all():
        raise ArgumentError("windows", f"shape {phi.shape}", "finite values of shape (n,R)")
    if draws < 2:
        raise ArgumentError("draws", draws, "at least 2")
    samples = len(phi)
    signs = rng.integers(0, 2, size=(draws, samples)) * 2.0 - 1
    suprema = positive("l1_bound", l1_bound) / samples * np.abs(signs @ phi).max(axis=1)  # (draws,)
    return float(suprema.mean()), float(suprema.std(ddof=1) / math.sqrt(draws))


def source_risk(
    oscillator: Oscillator,
    *,
    empirical: float,
    length: int,
    samples: int,
    force_bound: float,
    lipschitz: float = 1.0,
    delta: float = 0.05,
) -> RiskBound:
    """Bound the risk in the source domain with probability at least 1 − δ.

    `lipschitz` is the Lipschitz constant of the loss, whose values are in 0 … 1.
    """
    if not 0 < delta < 1:
        raise ArgumentError("delta", delta, "0 < δ < 1")
    if not 0 <= empirical <= 1:
        raise ArgumentError("empirical", empirical, "a mean loss from 0 to 1")
    positive("lipschitz", lipschitz)
    pair = decay(oscillator.A)
    l1 = kernel_l1_bound(oscillator, pair)
    return RiskBound(
        empirical=empirical,
        complexity=2 * lipschitz * rademacher_bound(l1, force_bound, length, samples),
        confidence=3 * math.sqrt(math.log(2 / delta) / (2 * samples)),
        truncation=lipschitz * l1 * force_bound * pair.rho**length,
    )


def target_risk(
    source: RiskBound, *, l1_bound: float, wasserstein: float, lipschitz: float = 1.0
) -> RiskBound:
    """Bound the risk in a domain at Wasserstein distance W₁: the source bound plus L_ℓ ‖w‖₁ W₁."""
    if not (math.isfinite(wasserstein) and wasserstein >= 0):
        raise ArgumentError("wasserstein", wasserstein, "a distance ≥ 0")
    distance = positive("lipschitz", lipschitz) * positive("l1_bound", l1_bound) * wasserstein
    return RiskBound(source.empirical, source.complexity, source.confidence, source.truncation, distance)


def choose_length(samples: int, rho: float) -> int:
    """Return the R at which truncation is negligible against the statistical error: 2 log n / log(1/ρ)."""
    _count("samples", samples)
    if not 0 < rho < 1:
        raise ArgumentError("rho", rho, "0 < ρ < 1")
    return max(math.ceil(2 * math.log(samples) / -math.log(rho)), 1)


def _count(name: str, value: int) -> None:
    if value < 1:
        raise ArgumentError(name, value, "at least 1")
