"""Bland–Altman analysis, compared with hand-computed values and simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from phase_rppg.errors import ArgumentError
from phase_rppg.evaluate import agreement


def test_hand_computed_example() -> None:
    # Differences 1, −1, 3, 1: bias 1, sd √(8/3)
    truth = np.array([60.0, 70.0, 80.0, 90.0])
    numbers = agreement.bland_altman(truth + np.array([1, -1, 3, 1]), truth)
    sd = math.sqrt(8 / 3)
    assert numbers.bias == pytest.approx(1)
    assert numbers.sd == pytest.approx(sd)
    assert numbers.upper == pytest.approx(1 + 1.959964 * sd)
    assert numbers.lower == pytest.approx(1 - 1.959964 * sd)
    t = 3.182446  # Student's t, 3 degrees of freedom, 97.5 %
    assert numbers.bias_interval.high == pytest.approx(1 + t * sd / 2, rel=1e-6)
    margin = t * sd * math.sqrt(1 / 4 + 1.959964**2 / 6)
    assert numbers.upper_interval.low == pytest.approx(numbers.upper - margin, rel=1e-5)
    assert numbers.lower_interval.high == pytest.approx(numbers.lower + margin, rel=1e-5)


def test_the_bias_interval_is_scipys_t_interval() -> None:
    rng = np.random.default_rng(0)
    truth = rng.uniform(50, 120, 40)
    estimate = truth + rng.normal(1, 3, 40)
    numbers = agreement.bland_altman(estimate, truth, level=0.9)
    low, high = stats.t.interval(0.9, 39, loc=numbers.bias, scale=stats.sem(estimate - truth))
    assert (numbers.bias_interval.low, numbers.bias_interval.high) == pytest.approx((low, high))


def test_the_intervals_have_their_nominal_coverage() -> None:
    rng = np.random.default_rng(1)
    bias_hits = limit_hits = 0
    for _ in range(400):
        truth = rng.uniform(50, 120, 60)
        numbers = agreement.bland_altman(truth + rng.normal(0.5, 2, 60), truth)
        bias_hits += numbers.bias_interval.low <= 0.5 <= numbers.bias_interval.high
        limit_hits += numbers.upper_interval.low <= 0.5 + 1.96 * 2 <= numbers.upper_interval.high
    assert 0.91 < bias_hits / 400 < 0.985
    assert 0.91 < limit_hits / 400 < 0.985


def test_one_pair_and_invalid_levels_are_refused() -> None:
    with pytest.raises(ArgumentError, match="n ≥ 2"):
        agreement.bland_altman([70.0], [71.0])
    with pytest.raises(ArgumentError, match="level"):
        agreement.bland_altman([70.0, 71.0], [71.0, 72.0], level=95)
