"""The oscillator has the matrices and the stability of the paper, and Proposition 1 holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.physics import Oscillator, Vessel, spectral_radius
from phase_rppg.physics.oscillator import convolve

from .strategies import critical_alpha, oscillators

seeds = st.integers(0, 2**32 - 1)


def test_the_vessel_gives_the_constants_of_the_damped_wave_equation() -> None:
    vessel = Vessel(density=1060.0, compliance=4e-8, area=2e-4, drag=4240.0)
    assert vessel.wave_speed_squared == pytest.approx(2e-4 / (1060 * 4e-8))
    assert vessel.damping == pytest.approx(4.0)


def test_the_matrices_are_those_of_the_paper_worked_by_hand() -> None:
    # α = 2, ω = 3, Δt = 0.5: 1 + αΔt = 2, ω²Δt² = 2.25, ω²Δt = 4.5
    oscillator = Oscillator(alpha=2.0, omega=3.0, dt_s=0.5)
    np.testing.assert_allclose(oscillator.A, [[1 - 2.25 / 2, 0.25], [-2.25, 0.5]])
    np.testing.assert_allclose(oscillator.B, [0.125, 0.25])
    np.testing.assert_allclose(oscillator.C, [1, 0])


@given(oscillators(), seeds)
@settings(deadline=None, max_examples=40)
def test_one_step_is_semi_implicit_euler(oscillator: Oscillator, seed: int) -> None:
    z, v, a = np.random.default_rng(seed).standard_normal(3)
    z_next, v_next = oscillator.A @ [z, v] + oscillator.B * a
    dt, alpha, omega = oscillator.dt_s, oscillator.alpha, oscillator.omega
    scale = 1 + abs(v) + dt * omega**2 * abs(z)
    assert abs(v + dt * (-alpha * v_next - omega**2 * z + a) - v_next) < 1e-11 * scale
    assert abs(z + dt * v_next - z_next) < 1e-11 * scale


@given(oscillators(), seeds)
@settings(deadline=None, max_examples=60)
def test_proposition_1_the_recurrence_is_a_causal_convolution(oscillator: Oscillator, seed: int) -> None:
    force = np.random.default_rng(seed).uniform(-1, 1, 200)
    kernel = oscillator.kernel(200)
    scale = max(1.0, float(np.abs(kernel).sum()))  # the largest answer such a force can have
    by_hand = np.array([kernel[: t + 1] @ force[t::-1] for t in range(200)])
    recurrence = oscillator.recurrence(force)
    assert np.abs(recurrence - by_hand).max() < 1e-12 * scale
    assert np.abs(recurrence - convolve(kernel, force)).max() < 1e-12 * scale


@given(oscillators(), seeds, st.integers(1, 199))
@settings(deadline=None, max_examples=20)
def test_the_future_never_changes_the_past(oscillator: Oscillator, seed: int, t: int) -> None:
    force = np.random.default_rng(seed).uniform(-1, 1, 200)
    other = force.copy()
    other[t:] += 1
    np.testing.assert_array_equal(oscillator.recurrence(force)[:t], oscillator.recurrence(other)[:t])


@given(oscillators())
@settings(deadline=None, max_examples=30)
def test_the_kernel_is_c_a_to_the_m_b(oscillator: Oscillator) -> None:
    powers = [oscillator.C @ np.linalg.matrix_power(oscillator.A, m) @ oscillator.B for m in range(40)]
    kernel = oscillator.kernel(40)
    np.testing.assert_allclose(kernel, powers, rtol=0, atol=1e-12 * np.abs(kernel).max())


@given(st.floats(0.01, 100), st.floats(0.01, 200), st.floats(1e-3, 1))
@settings(deadline=None, max_examples=200)
def test_it_is_accepted_exactly_when_the_spectral_radius_is_below_one(
    alpha: float, omega: float, dt_s: float
) -> None:
    gain = 1 / (1 + alpha * dt_s)
    A = np.array([[1 - omega**2 * dt_s**2 * gain, dt_s * gain], [-(omega**2) * dt_s * gain, gain]])
    radius = spectral_radius(A)
    if abs(radius - 1) < 1e-7:
        return  # too close to say with rounding
    if radius < 1:
        assert Oscillator(alpha, omega, dt_s).spectral_radius == pytest.approx(radius)
    else:
        with pytest.raises(ArgumentError, match="unstable"):
            Oscillator(alpha, omega, dt_s)


def test_the_refusal_of_a_long_step_names_the_longest_one_that_works() -> None:
    with pytest.raises(ArgumentError, match=r"dt_s < 0\.0307656 s"):
        Oscillator(2.0, 66.0, 1 / 30)
    Oscillator(2.0, 66.0, 0.0307)


def test_at_critical_damping_the_eigenvalues_merge() -> None:
    values = np.linalg.eigvals(Oscillator(critical_alpha(8.0, 1 / 30), 8.0, 1 / 30).A)
    assert abs(values[0] - values[1]) < 1e-6


@given(oscillators(), st.floats(0.01, 0.49))
@settings(deadline=None, max_examples=30)
def test_the_bode_gain_is_the_spectrum_of_the_kernel(oscillator: Oscillator, share: float) -> None:
    frequency_hz = share / oscillator.dt_s
    kernel = oscillator.kernel(60_000)
    direct = np.sum(kernel * np.exp(-2j * np.pi * share * np.arange(len(kernel))))
    answer = oscillator.response(np.array([frequency_hz]))[0]
    assert abs(answer - direct) < 1e-7 * np.abs(kernel).sum()


def test_a_steady_force_lifts_it_to_force_over_omega_squared() -> None:
    oscillator = Oscillator(4.0, 7.5, 1 / 30)
    assert oscillator.recurrence(np.full(2000, 3.0))[-1] == pytest.approx(3 / 7.5**2)
    assert abs(oscillator.response(np.zeros(1))[0]) == pytest.approx(1 / 7.5**2)


def test_it_converges_to_the_differential_equation() -> None:
    alpha, omega, t_s = 3.0, 9.0, 0.4
    damped = math.sqrt(omega**2 - alpha**2 / 4)
    exact = math.exp(-alpha * t_s / 2) * math.sin(damped * t_s) / damped  # answer to a unit impulse
    errors = []
    for fps in (500, 1000, 2000):
        kernel = Oscillator(alpha, omega, 1 / fps).kernel(round(t_s * fps))
        errors.append(abs(kernel[-1] * fps - exact))
    assert errors[0] > 1.8 * errors[1] > 3.2 * errors[2]


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["alpha", "omega", "dt_s"])
def test_values_that_are_no_oscillator_are_refused_by_name(name: str, bad: float) -> None:
    with pytest.raises(ArgumentError, match=f"{name}: got"):
        Oscillator(**{"alpha": 4.0, "omega": 7.0, "dt_s": 1 / 30, name: bad})


@pytest.mark.parametrize("name", ["density", "compliance", "area", "drag"])
def test_a_vessel_without_substance_is_refused(name: str) -> None:
    good = {"density": 1060.0, "compliance": 4e-8, "area": 2e-4, "drag": 4240.0}
    with pytest.raises(ArgumentError, match=name):
        Vessel(**{**good, name: 0.0})


@pytest.mark.parametrize(
    "force", [np.zeros((2, 3)), np.array([]), np.array([1.0, np.nan]), np.array(["a"]), np.array([1j])]
)
def test_a_force_that_is_no_signal_is_refused(force: np.ndarray) -> None:
    with pytest.raises(ArgumentError, match="force"):
        Oscillator(4.0, 7.0, 1 / 30).recurrence(force)


def test_a_kernel_has_at_least_one_tap_and_a_radius_needs_a_square() -> None:
    with pytest.raises(ArgumentError, match="length"):
        Oscillator(4.0, 7.0, 1 / 30).kernel(0)
    with pytest.raises(ArgumentError, match="square"):
        spectral_radius(np.zeros((2, 3)))
