"""The median equals that of NumPy, for odd and even counts and along any axis."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal.median import median


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (300,), (5, 4), (6, 3)])
def test_median_equals_that_of_numpy(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    for axis in range(len(shape)):
        assert np.array_equal(median(values, axis), np.median(values, axis))


def test_no_values_have_no_median() -> None:
    assert np.isnan(median(np.zeros(0)))
