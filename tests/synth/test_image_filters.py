"""The image filters of the generator give what SciPy gives, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from phase_rppg.synth import image_filters

SHAPES = [(3, 40, 31), (3, 2, 3), (17, 23)]


def picture(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("mode", "truncate"), [("nearest", 3), ("wrap", 2.5)])
@pytest.mark.parametrize("sigma_px", [0.06, 0.5, 1.37, 4.0])
def test_the_gaussian_is_that_of_scipy(
    sigma_px: float, mode: str, truncate: float, shape: tuple[int, ...], dtype: type
) -> None:
    image = picture(shape, dtype)
    for axis in (-1, -2):
        ours = image_filters.gaussian_filter1d(image, sigma_px, axis, mode, truncate)  # type: ignore[arg-type]
        theirs = ndimage.gaussian_filter1d(image, sigma_px, axis=axis, mode=mode, truncate=truncate)
        assert ours.dtype == theirs.dtype == dtype
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_box_is_that_of_scipy(shape: tuple[int, ...], dtype: type) -> None:
    image = picture(shape, dtype)
    ours = image_filters.box_filter3(image)
    theirs = ndimage.uniform_filter(image, (*(1,) * (len(shape) - 2), 3, 3), mode="nearest")
    assert ours.dtype == theirs.dtype == dtype
    np.testing.assert_array_equal(ours, theirs)
