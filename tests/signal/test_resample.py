"""Resampling keeps straight lines, marks gaps as invalid, and returns no NaN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.signal import resample


@settings(deadline=None, max_examples=40)
@given(
    steps=st.lists(st.floats(0.01, 0.2), min_size=1, max_size=60),
    fps=st.floats(5, 60),
    start=st.floats(-100, 100),
)
def test_a_straight_line_is_kept_on_any_clock(steps: list[float], fps: float, start: float) -> None:
    t_s = start + np.concatenate([[0], np.cumsum(steps)])
    values, start_s, valid = resample.to_uniform(t_s, np.stack([2 * t_s + 1, -t_s], 1), fps)
    grid_s = start_s + np.arange(len(values)) / fps
    assert valid.all()
    assert start_s == t_s[0]
    assert grid_s[-1] <= t_s[-1] + 1e-6
    assert grid_s[-1] + 1 / fps > t_s[-1] - 1e-6
    np.testing.assert_allclose(values[:, 0], 2 * grid_s + 1, atol=1e-4)


def test_uniform_samples_are_unchanged() -> None:
    t_s = np.arange(300) / 30
    x = np.random.default_rng(0).normal(size=300)
    values, _, valid = resample.to_uniform(t_s, x, 30)
    np.testing.assert_allclose(values, x, atol=1e-4)
    assert valid.all()


def test_a_long_gap_is_invalid_and_a_short_one_is_not() -> None:
    t_s = np.concatenate([np.arange(0, 2, 0.1), np.arange(2.3, 4, 0.1), np.arange(6, 8, 0.1)])
    values, start_s, valid = resample.to_uniform(t_s, np.ones(len(t_s)), 30, max_gap_s=0.5)
    grid_s = start_s + np.arange(len(values)) / 30
    assert valid[grid_s < 3.8].all()
    assert not valid[(grid_s > 4.0) & (grid_s < 5.95)].any()
    assert np.isfinite(values).all()


def test_invalid_and_non_finite_samples_are_interpolated() -> None:
    t_s = np.arange(30) / 10
    x = t_s.copy()
    x[10] = np.nan
    x[11] = 1e9
    values, _, valid = resample.to_uniform(t_s, x, 10, valid=np.arange(30) != 11)
    np.testing.assert_allclose(values, t_s, atol=1e-6)
    assert valid.all()


def test_invalid_input_gives_invalid_output() -> None:
    values, _, valid = resample.to_uniform(np.arange(5) / 5, np.ones(5), 10, valid=np.zeros(5, bool))
    assert not valid.any()
    assert np.isfinite(values).all()


@pytest.mark.parametrize("t_s", [[0, 1, 1], [0, 2, 1], [0, np.nan, 1], []])
def test_timestamps_that_do_not_increase_are_refused(t_s: list[float]) -> None:
    with pytest.raises(ArgumentError):
        resample.to_uniform(np.array(t_s), np.zeros(len(t_s)), 30)
