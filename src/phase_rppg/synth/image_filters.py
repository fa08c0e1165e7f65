"""Gaussian and box filters for images, with the results of `scipy.ndimage` to the last bit.

`phase demo` renders a face, and a light installation has no SciPy (140 MB). The order of the additions
is that of SciPy's C code, so that a seed gives the same video with either of them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..types import FloatArray


def gaussian_filter1d(
    image: FloatArray, sigma_px: float, axis: int, mode: Literal["nearest", "wrap"], truncate: float
) -> FloatArray:
    """Blur along one axis; the kernel ends at `truncate` standard deviations."""
    radius = int(truncate * float(sigma_px) + 0.5)
    offsets = np.arange(-radius, radius + 1)
    kernel = np.exp(-0.5 / (sigma_px * sigma_px) * offsets**2)
    kernel /= kernel.sum()
    padded = _pad(image, axis, radius, mode)
    count = image.shape[axis]
    total = _part(padded, axis, radius, count) * kernel[radius]
    for k in range(radius):  # the kernel is symmetric: from the far pairs to the near ones
        pair = _part(padded, axis, k, count) + _part(padded, axis, 2 * radius - k, count)
        pair *= kernel[k]
        total += pair
    return total.astype(image.dtype)


def box_filter3(image: FloatArray) -> FloatArray:
    """Return the mean over 3×3 pixels of the last two axes; edges are repeated."""
    for axis in (-2, -1):
        padded = _pad(image, axis, 1, "nearest")
        count = image.shape[axis]
        steps = np.empty(image.shape)
        first = 0.0 + sum(_part(padded, axis, k, 1) for k in range(3))
        _part(steps, axis, 0, 1)[...] = first
        rising, falling = _part(padded, axis, 3, count - 1), _part(padded, axis, 0, count - 1)
        _part(steps, axis, 1, count - 1)[...] = rising - falling
        image = (np.cumsum(steps, axis=axis) / 3).astype(image.dtype)  # a running mean, as in SciPy
    return image


def _pad(image: FloatArray, axis: int, width: int, mode: Literal["nearest", "wrap"]) -> FloatArray:
    widths = [(0, 0)] * image.ndim
    widths[axis] = (width, width)
    padded: FloatArray = np.pad(image.astype(float), widths, mode="edge" if mode == "nearest" else "wrap")
    return padded


def _part(image: FloatArray, axis: int, start: int, count: int) -> FloatArray:
    """Return a view of `count` pixels along one axis."""
    index = [slice(None)] * image.ndim
    index[axis] = slice(start, start + count)
    return image[tuple(index)]
