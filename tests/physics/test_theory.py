"""The generalisation bounds hold on numbers, and a Monte-Carlo complexity stays below its bound."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.physics import Oscillator, theory
from phase_rppg.physics.fir import decay

from .strategies import oscillators

OSCILLATOR = Oscillator(4.0, 7.5, 1 / 30)


@given(oscillators())
@settings(deadline=None, max_examples=40)
def test_the_kernel_is_never_heavier_than_its_bound(oscillator: Oscillator) -> None:
    assert np.abs(oscillator.kernel(5000)).sum() <= theory.kernel_l1_bound(oscillator) * (1 + 1e-9)


@given(st.integers(1, 40), st.integers(1, 60), st.floats(0.1, 5), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_the_monte_carlo_complexity_stays_under_the_bound(
    length: int, samples: int, size: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    windows = rng.choice([-size, size], (samples, length))  # the worst case: every entry at the limit
    mean, error = theory.rademacher_estimate(windows, 2.0, 200, rng)
    assert mean - 4 * error <= theory.rademacher_bound(2.0, size, length, samples)


def test_the_monte_carlo_complexity_agrees_with_all_signs_counted() -> None:
    rng = np.random.default_rng(3)
    windows = rng.standard_normal((8, 5))
    exact = np.mean(
        [np.abs(np.array(signs) @ windows).max() / 8 for signs in itertools.product([-1, 1], repeat=8)]
    )
    mean, error = theory.rademacher_estimate(windows, 1.0, 4000, rng)
    assert abs(mean - exact) < 4 * error


def test_the_complexity_bound_worked_by_hand() -> None:
    # L = 2, M = 3, R = 8, n = 100: 6 √(2 ln 16 / 100)
    assert theory.rademacher_bound(2.0, 3.0, 8, 100) == pytest.approx(6 * math.sqrt(0.02 * math.log(16)))


def test_the_source_bound_is_the_sum_of_the_terms_of_the_paper() -> None:
    bound = theory.source_risk(
        OSCILLATOR, empirical=0.1, length=60, samples=10_000, force_bound=2.0, delta=0.1
    )
    pair, l1 = decay(OSCILLATOR.A), theory.kernel_l1_bound(OSCILLATOR)
    assert bound.complexity == pytest.approx(2 * l1 * 2.0 * math.sqrt(2 * math.log(120) / 10_000))
    assert bound.confidence == pytest.approx(3 * math.sqrt(math.log(20) / 20_000))
    assert bound.truncation == pytest.approx(l1 * 2.0 * pair.rho**60)
    assert bound.discrepancy == 0
    assert bound.total == pytest.approx(0.1 + bound.complexity + bound.confidence + bound.truncation)


def test_more_samples_lower_the_bound_and_another_domain_raises_it() -> None:
    few, many = (
        theory.source_risk(OSCILLATOR, empirical=0.1, length=100, samples=n, force_bound=1.0)
        for n in (100, 10_000)
    )
    assert many.total < few.total
    l1 = theory.kernel_l1_bound(OSCILLATOR)
    far = theory.target_risk(many, l1_bound=l1, wasserstein=0.3, lipschitz=2.0)
    assert far.total == pytest.approx(many.total + 2 * l1 * 0.3)
    assert theory.target_risk(many, l1_bound=l1, wasserstein=0.0).total == pytest.approx(many.total)


@given(st.integers(2, 10**6), st.floats(0.1, 0.99))
@settings(deadline=None, max_examples=40)
def test_the_chosen_length_makes_truncation_negligible(samples: int, rho: float) -> None:
    assert rho ** theory.choose_length(samples, rho) <= samples**-2 * (1 + 1e-9)


def test_senseless_numbers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="samples"):
        theory.rademacher_bound(1.0, 1.0, 8, 0)
    with pytest.raises(ArgumentError, match="length"):
        theory.rademacher_bound(1.0, 1.0, 0, 8)
    with pytest.raises(ArgumentError, match="delta"):
        theory.source_risk(OSCILLATOR, empirical=0.1, length=8, samples=9, force_bound=1.0, delta=1.0)
    with pytest.raises(ArgumentError, match="empirical"):
        theory.source_risk(OSCILLATOR, empirical=1.5, length=8, samples=9, force_bound=1.0)
    with pytest.raises(ArgumentError, match="rho"):
        theory.choose_length(10, 1.0)
    with pytest.raises(ArgumentError, match="windows"):
        theory.rademacher_estimate(np.zeros(4), 1.0, 10, np.random.default_rng(0))
    with pytest.raises(ArgumentError, match="draws"):
        theory.rademacher_estimate(np.zeros((4, 2)), 1.0, 1, np.random.default_rng(0))
