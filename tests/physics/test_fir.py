"""Proposition 2 with constants that hold: no truncation error ever exceeds its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.physics import Oscillator, decay, fir_length, truncation_bound, truncation_error
from phase_rppg.physics.fir import PowerBound, truncation_errors

from .strategies import critical_alpha, oscillators


def norms_of_powers(A: np.ndarray, count: int) -> np.ndarray:
    norms, power = [], np.eye(2)
    for _ in range(count):
        norms.append(np.linalg.norm(power, 2))
        power = power @ A
    return np.array(norms)


@given(oscillators(), st.one_of(st.none(), st.floats(0.001, 0.9)))
@settings(deadline=None, max_examples=100)
def test_k_rho_to_the_m_covers_every_power(oscillator: Oscillator, share: float | None) -> None:
    radius = PowerBound.of(oscillator.A).radius
    constants = decay(oscillator.A, None if share is None else radius + share * (1 - radius))
    assert radius <= constants.rho < 1
    assert constants.K >= 1
    bound = constants.K * constants.rho ** np.arange(400)
    assert (norms_of_powers(oscillator.A, 400) <= bound * (1 + 1e-9)).all()


@given(oscillators())
@settings(deadline=None, max_examples=40)
def test_the_radius_is_never_below_the_true_one(oscillator: Oscillator) -> None:
    assert PowerBound.of(oscillator.A).radius >= oscillator.spectral_radius * (1 - 2e-8)


def test_at_critical_damping_the_spectral_radius_alone_fails_but_our_constants_hold() -> None:
    A = Oscillator(critical_alpha(8.0, 1 / 30), 8.0, 1 / 30).A
    norms, m = norms_of_powers(A, 200), np.arange(200)
    radius = PowerBound.of(A).radius
    assert (norms / radius**m)[-1] > 100  # no modest K works with ρ = r: it grows like m
    constants = decay(A)
    assert constants.rho > radius
    assert (norms <= constants.K * constants.rho**m).all()
    with pytest.raises(ArgumentError, match="defective"):
        decay(A, rho=radius)


@given(oscillators(), st.integers(1, 300), st.floats(0.1, 50), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_proposition_2_truncation_never_exceeds_the_bound(
    oscillator: Oscillator, length: int, force_bound: float, seed: int
) -> None:
    kernel = oscillator.kernel(600)
    rng = np.random.default_rng(seed)
    worst = np.sign(kernel[::-1])  # the force that adds up every tap
    for force in (worst, rng.uniform(-1, 1, 600), rng.choice([-1.0, 1.0], 600)):
        whole = oscillator.recurrence(force * force_bound)
        cut = np.convolve(kernel[:length], force * force_bound)[:600]
        rounding = 1e-12 * force_bound * np.abs(kernel).sum()
        bound = truncation_bound(oscillator, length, force_bound)
        assert np.abs(whole - cut).max() <= bound + rounding


@given(oscillators(), st.floats(-6, -1), st.floats(0.1, 50))
@settings(deadline=None, max_examples=60)
def test_the_fir_length_meets_epsilon(oscillator: Oscillator, log_eps: float, force_bound: float) -> None:
    eps = 10**log_eps
    length = fir_length(oscillator, eps, force_bound)
    assert length >= 1
    assert truncation_bound(oscillator, length, force_bound) <= eps
    assert truncation_error(oscillator, length, force_bound) <= eps


@given(oscillators(), st.floats(0.1, 50))
@settings(deadline=None, max_examples=20)
def test_the_true_error_falls_and_stays_under_the_bound(oscillator: Oscillator, force_bound: float) -> None:
    errors = truncation_errors(oscillator, 50, force_bound)
    bounds = [truncation_bound(oscillator, length, force_bound) for length in range(51)]
    assert (np.diff(errors) <= 0).all()
    assert (np.diff(bounds) <= 0).all()
    assert (errors <= np.array(bounds) * (1 + 1e-9)).all()


def test_a_smaller_epsilon_and_a_weaker_damping_need_a_longer_filter() -> None:
    firm, soft = Oscillator(6.0, 7.5, 1 / 30), Oscillator(2.0, 7.5, 1 / 30)
    assert fir_length(firm, 1e-4, 1.0) > fir_length(firm, 1e-2, 1.0)
    assert fir_length(soft, 1e-4, 1.0) > fir_length(firm, 1e-4, 1.0)


def test_a_huge_epsilon_still_leaves_one_tap() -> None:
    assert fir_length(Oscillator(6.0, 7.5, 1 / 30), 1e9, 1.0) == 1


def test_the_truncation_error_of_a_geometric_kernel_is_the_geometric_tail() -> None:
    # Creeping so strongly that one mode is left: |g[m]| falls by λ per step, the tail is g[R] / (1 − λ).
    oscillator = Oscillator(600.0, 30.0, 1 / 30)
    slow = float(np.abs(np.linalg.eigvals(oscillator.A)).max())
    kernel = oscillator.kernel(41)
    assert truncation_error(oscillator, 40, 2.0) == pytest.approx(2 * kernel[40] / (1 - slow), rel=1e-6)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_epsilon_and_force_must_be_positive(bad: float) -> None:
    oscillator = Oscillator(4.0, 7.5, 1 / 30)
    with pytest.raises(ArgumentError, match="eps"):
        fir_length(oscillator, bad, 1.0)
    with pytest.raises(ArgumentError, match="force_bound"):
        truncation_bound(oscillator, 10, bad)


def test_hardly_any_damping_still_has_a_length_but_no_tail_to_sum() -> None:
    oscillator = Oscillator(1e-5, 7.5, 1 / 30)
    length = fir_length(oscillator, 1e-3, 1.0)
    assert length > 10_000_000
    assert truncation_bound(oscillator, length, 1.0) <= 1e-3
    with pytest.raises(ArgumentError, match="impulse response of"):
        truncation_error(oscillator, 10, 1.0)


def test_a_matrix_that_does_not_decay_is_refused() -> None:
    with pytest.raises(ArgumentError, match="spectral radius"):
        decay(np.eye(2))
    with pytest.raises(ArgumentError, match="2×2"):
        decay(np.eye(3))
    with pytest.raises(ArgumentError, match="rho"):
        decay(0.5 * np.eye(2), rho=0.1)
    with pytest.raises(ArgumentError, match="length"):
        truncation_bound(Oscillator(4.0, 7.5, 1 / 30), -1, 1.0)
