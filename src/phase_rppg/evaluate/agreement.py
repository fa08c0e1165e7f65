"""Bland–Altman analysis of the agreement between readings and reference.

J. M. Bland and D. G. Altman, "Statistical methods for assessing agreement between two methods of clinical
measurement", Lancet 1986. The analysis gives the bias, the limits that contain 95 % of the differences, and
their confidence intervals. Differences are estimate minus truth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray
from .metrics import Interval, paired

_SHARE = 0.95  # of the differences that the limits of agreement contain


@dataclass(frozen=True, slots=True)
class BlandAltman:
    """Bias and limits of agreement, in the unit of the readings."""

    count: int
    bias: float
    sd: float  # of the differences, n − 1
    lower: float  # bias − 1.96 sd
    upper: float  # bias + 1.96 sd
    bias_interval: Interval
    lower_interval: Interval
    upper_interval: Interval


def bland_altman(estimate: FloatArray, truth: FloatArray, *, level: float = 0.95) -> BlandAltman:
    """Return bias and limits of agreement of paired readings, with confidence intervals by Student's t.

    The standard error of a limit is s √(1/n + z²/2(n−1)); √(3s²/n) in the article is an approximation of it.
    """
    from scipy import stats

    left, right = paired(estimate, truth, least=2)
    if not 0 < level < 1:
        raise ArgumentError("level", level, "0 < level < 1")
    differences = left - right
    count = len(differences)
    bias, sd = float(differences.mean()), float(differences.std(ddof=1))
    reach = float(stats.norm.ppf((1 + _SHARE) / 2))
    t = float(stats.t.ppf((1 + level) / 2, count - 1))
    bias_margin = t * sd / math.sqrt(count)
    limit_margin = t * sd * math.sqrt(1 / count + reach**2 / (2 * (count - 1)))

    def around(centre: float, margin: float) -> Interval:
        return Interval(centre - margin, centre + margin, level)

    lower, upper = bias - reach * sd, bias + reach * sd
    return BlandAltman(
        count=count,
        bias=bias,
        sd=sd,
        lower=lower,
        upper=upper,
        bias_interval=around(bias, bias_margin),
        lower_interval=around(lower, limit_margin),
        upper_interval=around(upper, limit_margin),
    )


def means_and_differences(estimate: FloatArray, truth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean of each pair and the difference estimate minus truth, for a Bland–Altman plot."""
    left, right = paired(estimate, truth)
    return np.asarray((left + right) / 2), np.asarray(left - right)
