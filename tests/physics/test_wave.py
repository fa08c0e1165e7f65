"""The reduction of the wave equation to an oscillator is exact for one mode, with an error for others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.physics import Vessel
from phase_rppg.physics.wave import VesselLine, reduce_driven, reduce_released, solve

LINE = VesselLine(alpha=4.0, speed=5.0, length=2.0)


def mode(n: int, cells: int = 120) -> np.ndarray:
    profile = np.sin(n * np.pi * np.arange(cells + 1) / cells)
    profile[-1] = 0.0
    return profile


def exact(line: VesselLine, n: int, t_s: np.ndarray, spot: float) -> np.ndarray:
    """A released mode is a damped oscillator with ω_n = nπc/L."""
    damped = math.sqrt(line.mode_omega(n) ** 2 - line.alpha**2 / 4)
    swing = np.cos(damped * t_s) + line.alpha / (2 * damped) * np.sin(damped * t_s)
    return np.sin(n * np.pi * spot) * np.exp(-line.alpha * t_s / 2) * swing


@given(st.floats(0.5, 8), st.integers(1, 3), st.sampled_from([0.25, 0.4, 0.5]))
@settings(deadline=None, max_examples=15)
def test_finite_differences_agree_with_the_exact_mode(alpha: float, n: int, spot: float) -> None:
    line = VesselLine(alpha, 5.0, 2.0)
    t_s, pressure = solve(line, 1.0, initial=mode(n, 240), cells=240, spot=spot)
    np.testing.assert_allclose(pressure, exact(line, n, t_s, spot), atol=5e-3)


def test_the_solution_converges_with_the_square_of_the_step() -> None:
    errors = []
    for cells in (40, 80, 160):
        t_s, pressure = solve(LINE, 1.0, initial=mode(1, cells), cells=cells)
        errors.append(np.abs(pressure - exact(LINE, 1, t_s, 0.5)).max())
    assert errors[0] > 3.5 * errors[1] > 12 * errors[2]


def test_a_push_travels_at_the_wave_speed() -> None:
    line = VesselLine(alpha=0.5, speed=5.0, length=20.0)
    push = np.zeros(960)
    push[:24] = 1 - np.cos(2 * np.pi * np.arange(24) / 24)
    t_s, pressure = solve(line, 3.0, inlet=push, spot=0.5, cells=2000)
    assert (np.abs(pressure[t_s < 1.99]) < 1e-9).all()
    assert t_s[pressure.argmax()] == pytest.approx(10 / 5 + 0.05, abs=0.02)


def test_for_one_mode_the_reduction_is_the_oscillator_of_the_paper() -> None:
    reduction = reduce_released(LINE, mode(1), 2.0)
    assert reduction.error < 1e-3
    assert reduction.fit.alpha == pytest.approx(LINE.alpha, rel=0.02)
    assert reduction.fit.omega == pytest.approx(LINE.mode_omega(), rel=0.01)


def test_higher_modes_are_the_error_of_the_reduction() -> None:
    errors = [reduce_released(LINE, mode(1) + share * mode(3), 2.0).error for share in (0.0, 0.1, 0.3)]
    assert errors[0] < errors[1] < errors[2] < 0.4


def test_a_driven_spot_is_an_oscillator_as_long_as_the_push_is_slow() -> None:
    t_s = np.arange(600) / 240
    errors = []
    for width_s in (0.8, 0.4, 0.2):
        push = np.where(t_s < width_s, 1 - np.cos(2 * np.pi * t_s / width_s), 0.0)
        reduction = reduce_driven(LINE, push)
        errors.append(reduction.error)
        assert reduction.fit.omega == pytest.approx(LINE.mode_omega(), rel=0.1)
    assert errors[0] < 0.15
    assert errors[0] < errors[1] < errors[2]


def test_a_line_of_vessel_has_its_wave_speed_and_damping() -> None:
    line = VesselLine.of(Vessel(density=1060.0, compliance=4e-8, area=2e-4, drag=4240.0), length=0.4)
    assert line.speed**2 == pytest.approx(2e-4 / (1060 * 4e-8))
    assert line.alpha == pytest.approx(4.0)


def test_impossible_lines_are_refused() -> None:
    with pytest.raises(ArgumentError, match="speed"):
        VesselLine(4.0, 0.0, 2.0)
    with pytest.raises(ArgumentError, match="spot"):
        solve(LINE, 1.0, initial=mode(1), spot=1.0)
    with pytest.raises(ArgumentError, match="cells"):
        solve(LINE, 1.0, cells=2)
    with pytest.raises(ArgumentError, match="initial"):
        solve(LINE, 1.0, initial=mode(1, 60), cells=120)
    with pytest.raises(ArgumentError, match="initial"):
        solve(LINE, 1.0, initial=np.ones(121))
    with pytest.raises(ArgumentError, match="inlet"):
        solve(LINE, 1.0, initial=np.linspace(1, 0, 121))
