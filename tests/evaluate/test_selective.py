"""Risk–coverage curves and reliability of confidences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from phase_rppg.errors import ArgumentError
from phase_rppg.evaluate import selective

seeds = st.integers(0, 2**32 - 1)


def test_hand_computed_curve() -> None:
    curve = selective.risk_coverage([4.0, 0.0, 2.0, 2.0], [0.1, 0.9, 0.5, 0.7])
    np.testing.assert_allclose(curve.coverage, [0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(curve.risk, [0, 1, 4 / 3, 2])
    np.testing.assert_allclose(curve.threshold, [0.9, 0.7, 0.5, 0.1])
    assert curve.aurc == pytest.approx((0 + 1 + 4 / 3 + 2) / 4)
    assert curve.best_aurc == pytest.approx(curve.aurc)  # this confidence already sorts by loss


@given(seeds, st.integers(1, 6))
@settings(deadline=None, max_examples=25)
def test_ties_are_averaged_over_every_order(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    loss, confidence = rng.uniform(0, 10, count), rng.integers(0, 2, count) / 2
    curves = []
    for order in itertools.permutations(range(count)):
        if list(confidence[list(order)]) == sorted(confidence, reverse=True):
            curves.append(np.cumsum(loss[list(order)]) / np.arange(1, count + 1))
    np.testing.assert_allclose(selective.risk_coverage(loss, confidence).risk, np.mean(curves, axis=0))


@given(seeds, st.integers(2, 60))
@settings(deadline=None, max_examples=40)
def test_the_curve_ends_at_the_mean_and_the_ideal_order_is_best(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    loss, confidence = rng.exponential(3, count), rng.integers(0, 5, count).astype(float)
    curve = selective.risk_coverage(loss, confidence)
    assert curve.risk[-1] == pytest.approx(loss.mean())
    assert curve.aurc >= curve.best_aurc - 1e-12
    ideal = selective.risk_coverage(loss, -loss)
    assert ideal.aurc == pytest.approx(ideal.best_aurc, abs=1e-12)
    order = rng.permutation(count)
    assert selective.risk_coverage(loss[order], confidence[order]).aurc == pytest.approx(curve.aurc)
    # Only the order counts, not the numbers.
    np.testing.assert_allclose(selective.risk_coverage(loss, np.exp(confidence)).risk, curve.risk)


def test_a_constant_confidence_gives_the_mean_risk() -> None:
    loss = np.array([1.0, 5.0, 3.0])
    np.testing.assert_allclose(selective.risk_coverage(loss, np.ones(3)).risk, 3.0)


def test_windows_without_a_reading_lower_the_coverage() -> None:
    curve = selective.risk_coverage([1.0, 2.0], [0.9, 0.8], windows=4)
    np.testing.assert_allclose(curve.coverage, [0.25, 0.5])
    np.testing.assert_allclose(curve.risk, [1.0, 1.5])


def test_hand_computed_reliability() -> None:
    # Bin 0.0–0.5: 0.2, 0.4 → stated 0.3, observed 0.5. Bin 0.5–1: 0.5, 0.9, 1.0 → stated 0.8, observed 2/3.
    table = selective.reliability([0.2, 0.4, 0.5, 0.9, 1.0], [False, True, False, True, True], bins=2)
    assert [b.count for b in table.bins] == [2, 3]
    assert [b.stated for b in table.bins] == pytest.approx([0.3, 0.8])
    assert [b.observed for b in table.bins] == pytest.approx([0.5, 2 / 3])
    assert table.ece == pytest.approx((2 * 0.2 + 3 * (0.8 - 2 / 3)) / 5)
    assert table.brier == pytest.approx((0.04 + 0.36 + 0.25 + 0.01 + 0) / 5)


@given(seeds)
@settings(deadline=None, max_examples=15)
def test_true_probabilities_have_a_small_calibration_error(seed: int) -> None:
    rng = np.random.default_rng(seed)
    stated = rng.uniform(0, 1, 5000)
    right = rng.uniform(size=5000) < stated
    honest = selective.reliability(stated, right)
    assert honest.ece < 0.05
    assert honest.brier == pytest.approx(1 / 6, abs=0.02)  # ∫ p(1 − p)
    assert selective.reliability(1 - stated, right).ece > 0.3
    assert sum(b.count for b in honest.bins) == 5000


@given(st.integers(1, 80), st.data())
@settings(deadline=None, max_examples=40)
def test_wilsons_interval_is_scipys(count: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, count))
    expected = stats.binomtest(hits, count).proportion_ci(0.95, method="wilson")
    assert selective.wilson(hits, count) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_invalid_inputs_are_refused() -> None:
    with pytest.raises(ArgumentError, match="loss, confidence"):
        selective.risk_coverage([], [])
    with pytest.raises(ArgumentError, match="loss, confidence"):
        selective.risk_coverage([1.0], [math.nan])
    with pytest.raises(ArgumentError, match="windows"):
        selective.risk_coverage([1.0, 2.0], [1.0, 2.0], windows=1)
    with pytest.raises(ArgumentError, match="stated"):
        selective.reliability([1.2], [True])
    with pytest.raises(ArgumentError, match="right"):
        selective.reliability([0.2], [0.5])
    with pytest.raises(ArgumentError, match="bins"):
        selective.reliability([0.2], [True], bins=0)
    with pytest.raises(ArgumentError, match="hits"):
        selective.wilson(3, 2)
