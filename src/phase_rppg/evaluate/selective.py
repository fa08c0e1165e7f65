"""What a confidence is worth: risk over coverage, and whether a stated probability comes true.

The risk–coverage curve keeps the readings we trust most and asks how wrong those are. Readings of equal
confidence cannot be told apart, so within a tie the curve is its mean over all orders: the curve depends
on the readings, never on how they were sorted.
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
    """Mean loss of the most trusted readings, for every number of them that can be kept."""

    coverage: FloatArray  # (n,) share of all windows that get a reading, rising
    risk: FloatArray  # (n,) mean loss of those readings
    threshold: FloatArray  # (n,) lowest confidence among them
    aurc: float  # mean of the risk over the kept numbers: area under the curve
    best_aurc: float  # of a confidence that orders the readings by their true loss

    @property
    def excess_aurc(self) -> float:
        """How much of the area is the confidence's own fault; 0 is perfect order."""
        return self.aurc - self.best_aurc

    def coverage_at(self, risk: float) -> float:
        """The largest coverage whose risk is at most this; 0 if there is none."""
        kept = np.flatnonzero(self.risk <= risk)
        return float(self.coverage[kept[-1]]) if len(kept) else 0.0

    def risk_at(self, coverage: float) -> float | None:
        """The risk when at least this share of windows must get a reading; None if so many have none."""
        kept = np.flatnonzero(self.coverage >= coverage - 1e-12)
        return float(self.risk[kept[0]]) if len(kept) else None


@dataclass(frozen=True, slots=True)
class Bin:
    """Readings of similar stated probability, and how often they were right."""

    low: float
    high: float
    count: int
    stated: float  # mean stated probability
    observed: float  # share that was right
    observed_low: float  # Wilson interval of that share
    observed_high: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Whether a stated probability comes true."""

    count: int
    bins: tuple[Bin, ...]  # only those that hold readings
    ece: float  # expected calibration error: mean |stated − observed| over the bins, by count
    brier: float  # mean (stated − right)²


def risk_coverage(
    loss: FloatArray | Sequence[float],
    confidence: FloatArray | Sequence[float],
    *,
    windows: int | None = None,
) -> RiskCoverage:
    """The curve for a loss per reading (n,), such as |error| or "over 5 bpm off", and its confidence (n,).

    `windows` counts all windows that were judged, when some of them got no reading at any confidence; then
    the coverage ends below 1.
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


def calibration(
    stated: FloatArray | Sequence[float],
    right: FloatArray | Sequence[bool],
    *,
    bins: int = 10,
    level: float = 0.95,
) -> Calibration:
    """Compare stated probabilities (n,) with what came true (n,), in equally wide bins."""
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
        low, high = wilson(hits, count, level)
        found.append(
            Bin(k / bins, (k + 1) / bins, count, float(probability[inside].mean()), hits / count, low, high)
        )
    return Calibration(
        count=len(probability),
        bins=tuple(found),
        ece=sum(b.count * abs(b.stated - b.observed) for b in found) / len(probability),
        brier=float(np.mean((probability - outcome) ** 2)),
    )


def wilson(hits: int, count: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share; sensible for few readings and at 0 and 1."""
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
    """Each value replaced by the mean over its run of equal keys."""
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
