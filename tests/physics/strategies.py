"""Oscillators of every kind: underdamped, overdamped, near critical damping, at the limit of stability."""

from __future__ import annotations

import math

from hypothesis import assume
from hypothesis import strategies as st

from phase_rppg.physics import Oscillator


def critical_alpha(omega: float, dt_s: float) -> float:
    """The α at which the two eigenvalues of A coincide: α² − 2ω²(2 + αΔt) + ω⁴Δt² = 0."""
    return omega**2 * dt_s + 2 * omega


@st.composite
def oscillators(draw: st.DrawFn) -> Oscillator:
    dt_s = draw(st.floats(1 / 240, 1 / 15))
    omega = draw(st.floats(0.02, 1.9)) / dt_s
    kind = draw(st.sampled_from(["ringing", "creeping", "critical", "nearly critical", "edge"]))
    if kind == "ringing":
        alpha = draw(st.floats(0.05, 1.0)) * omega
    elif kind == "creeping":
        alpha = draw(st.floats(2.0, 8.0)) * omega
    elif kind == "edge":
        alpha = draw(st.floats(0.1, 1.0)) * omega
        limit = (alpha + math.sqrt(alpha**2 + 4 * omega**2)) / omega**2
        dt_s = limit * draw(st.floats(0.95, 0.999))
    else:
        alpha = critical_alpha(omega, dt_s)
        if kind == "nearly critical":
            alpha *= 1 + draw(st.sampled_from([-1, 1])) * 10 ** draw(st.floats(-15, -2))
    oscillator = Oscillator(alpha, omega, dt_s)
    assume(oscillator.spectral_radius < 0.9995)  # keeps the needed lengths, and so the tests, short
    return oscillator
