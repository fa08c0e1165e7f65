"""Selective prediction: the risk–coverage curve, and the reliability of stated probabilities.

The risk–coverage curve gives the mean loss of the most confident readings. Readings with equal confidence
have no order, so the curve within a tie is the mean over all orders. It does not depend on the sorting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Mean loss of the k most confident readings, for every k."""

    coverage: FloatArray  # (n,) share of all windows that get a reading, increasing
    risk: FloatArray  # (n,) mean loss of those readings
    threshold: FloatArray  # (n,) lowest confidence among them
    aurc: float  # area under the curve: mean of the risk
    best_aurc: float  # of an ideal confidence, which orders the readings by their loss


@dataclass(frozen=True, slots=True)
class Bin:
    """Readings with similar stated probabilities, and the share of them that was correct."""

    low: float
    high: float
    count: int
    stated: float  # mean stated probability
    observed: float  # share that was correct
    observed_low: float  # Wilson interval of that share
    observed_high: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """Stated probabilities compared with observed frequencies."""

    count: int
    bins: tuple[Bin, ...]  # without empty bins
    ece: float  # expected calibration error: mean |stated − observed| over the bins, weighted by count
    brier: float  # mean (stated − correct)²


def risk_coverage(
    loss: FloatArray | Sequence[float],
    confidence: FloatArray | Sequence[float],
    *,
    windows: int | None = None,
) -> RiskCoverage:
    """Return the curve for the loss (n,), such as |error|, and the confidence (n,) of each reading.

    `windows` is the number of all windows. If some of them have no reading, the coverage ends below 1.
    """
    cost, trust = _pair("loss", loss, "confidence", confidence)
    total = len(cost) if windows is None else windows
    if total < len(cost):
        raise ArgumentError("windows", windows, f"at least the {len(cost)} that have a reading")
    kept = np.arange(1, len(cost) + 1)
    order = np.argsort(-trust, kind="stable")
    risk = np.cumsum(_tie_means(cost[order], trust[order])) / kept
    best = np.cumsum(np.sort(cost)) / kept
    return RiskCoverage(kept / total, risk, trust[order], float(risk.mean()), float(best.mean()))


def reliability(
    stated: FloatArray | Sequence[float],
    right: FloatArray | Sequence[bool],
    *,
    bins: int = 10,
) -> Reliability:
    """Compare stated probabilities (n,) with outcomes (n,) in bins of equal width."""
    probability, outcome = _pair("stated", stated, "right", right)
    if not ((probability >= 0) & (probability <= 1)).all():
        raise ArgumentError(
            "stated", f"{probability.min():g} … {probability.max():g}", "probabilities, 0 to 1"
        )
    if not np.isin(outcome, (0.0, 1.0)).all():
        raise ArgumentError("right", "values other than true and false", "true or false per reading")
    if bins < 1:
        raise ArgumentError("bins", bins, "at least 1")
    which = np.minimum((probability * bins).astype(int), bins - 1)
    found = []
    for k in np.unique(which):
        inside = which == k
        count, hits = int(inside.sum()), int(outcome[inside].sum())
        low, high = wilson(hits, count)
        found.append(
            Bin(k / bins, (k + 1) / bins, count, float(probability[inside].mean()), hits / count, low, high)
        )
    return Reliability(
        count=len(probability),
        bins=tuple(found),
        ece=sum(b.count * abs(b.stated - b.observed) for b in found) / len(probability),
        brier=float(np.mean((probability - outcome) ** 2)),
    )


def wilson(hits: int, count: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's confidence interval of a share; it is valid for few readings and at 0 and 1."""
    from scipy.stats import norm

    if count < 1 or not 0 <= hits <= count:
        raise ArgumentError("hits, count", f"{hits} of {count}", "0 ≤ hits ≤ count, count ≥ 1")
    if not 0 < level < 1:
        raise ArgumentError("level", level, "0 < level < 1")
    z = float(norm.ppf((1 + level) / 2))
    share, scale = hits / count, 1 + z**2 / count
    centre = (share + z**2 / (2 * count)) / scale
    margin = z / scale * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return max(centre - margin, 0.0), min(centre + margin, 1.0)


def _tie_means(values: FloatArray, keys: FloatArray) -> FloatArray:
    """Replace each value by the mean over its run of equal keys."""
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    lengths = np.diff(np.append(starts, len(keys)))
    return np.repeat(np.add.reduceat(values, starts) / lengths, lengths)


def _pair(
    name: str, values: FloatArray | Sequence[float], other: str, others: FloatArray | Sequence[float]
) -> tuple[FloatArray, FloatArray]:
    left, right = np.asarray(values, dtype=np.float64), np.asarray(others, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape or len(left) == 0:
        raise ArgumentError(
            f"{name}, {other}", f"shapes {left.shape} and {right.shape}", "two of (n,), n ≥ 1"
        )
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise ArgumentError(f"{name}, {other}", "nan or infinity", "finite values")
    return left, right
