"""Laws of the filters: equal to the dense formula, linear, zero-phase, gain of the textbook."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.signal import filters

pytestmark = pytest.mark.smoke


@settings(deadline=None, max_examples=20)
@given(count=st.integers(3, 60), strength=st.floats(1, 300), seed=st.integers(0, 99))
def test_detrend_is_the_formula_of_the_paper(count: int, strength: float, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(count, 2))
    d = np.diff(np.eye(count), 2, axis=0)
    dense = x - np.linalg.solve(np.eye(count) + strength**2 * d.T @ d, x)
    np.testing.assert_allclose(filters.detrend(x, strength), dense, atol=1e-6)


def test_detrend_removes_straight_lines_and_keeps_a_pulse() -> None:
    t = np.arange(300) / 30
    pulse = np.sin(2 * np.pi * 1.2 * t)
    assert np.abs(filters.detrend(3 * t - 7)).max() < 1e-6
    assert np.corrcoef(filters.detrend(pulse + 20 * t), pulse)[0, 1] > 0.98


def test_bandpass_has_the_gain_of_filtfilt_inside() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    ours = filters.bandpass(x, 30, 0.7, 3.0, order=2)
    theirs = filters.butterworth(x, 30, 0.7, 3.0, order=2)
    middle = slice(300, -300)
    assert np.abs(ours[middle] - theirs[middle]).max() < 0.01 * np.abs(theirs[middle]).max()


@pytest.mark.parametrize("hz", [0.8, 1.5, 2.8])
def test_bandpass_has_zero_phase(hz: float) -> None:
    t = np.arange(600) / 30
    x = np.cos(2 * np.pi * hz * t)
    y = filters.bandpass(x + 5 * t, 30, 0.66, 3.34, order=4)
    assert np.corrcoef(x[100:-100], y[100:-100])[0, 1] > 0.999


def test_bandpass_filters_each_column() -> None:
    x = np.random.default_rng(1).normal(size=(200, 3))
    both = filters.bandpass(x, 30)
    np.testing.assert_allclose(both[:, 1], filters.bandpass(x[:, 1], 30), atol=1e-12)


def test_a_band_beyond_half_the_frame_rate_is_refused() -> None:
    with pytest.raises(ArgumentError, match="half the frame rate"):
        filters.bandpass(np.zeros(100), 6, 0.7, 3.3)


@given(count=st.integers(1, 5000))
@settings(deadline=None, max_examples=50)
def test_fast_length_is_long_enough_and_not_wasteful(count: int) -> None:
    assert count <= filters.fast_length(count) < max(1.34 * count, count + 2)
