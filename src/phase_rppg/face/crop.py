"""Square pictures of a face, by exact area averaging.

Every pixel of the video counts with the area by which it overlaps the small pixel, so sensor noise is
averaged as far as it can be and no colour is invented.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from ..errors import ArgumentError
from ..types import ByteArray, FloatArray

Box: TypeAlias = tuple[float, float, float, float]  # x, y, width, height in pixels

CROP_SCALE = 1.25  # side of the crop over the longer side of the detector's box
CROP_PX = 36  # side of the picture from which skin and motion of a face are taken
_BAND_CELLS = 12  # measured: smaller bands waste calls, larger ones multiply by zeros
_Band: TypeAlias = tuple[slice, slice, FloatArray]  # cells, the pixels they see, weights (cells,pixels)


def square(box: Box) -> Box:
    """The square around a face box that networks and methods look at."""
    x, y, width, height = box
    side = CROP_SCALE * max(width, height)
    return x + (width - side) / 2, y + (height - side) / 2, side, side


def resize_area(rgb: ByteArray, box: Box, size: int) -> ByteArray:
    """The part of the picture inside `box` as (size,size,3) u8; outside the picture its edge is repeated."""
    return to_bytes(AreaCrop(box, size, rgb.shape[:2]).mean(rgb))


def to_bytes(picture: FloatArray) -> ByteArray:
    """Round 0–255 values to bytes."""
    return np.rint(picture).astype(np.uint8)


class AreaCrop:
    """A prepared crop: the same box out of many pictures of the same size, as small matrix products."""

    def __init__(self, box: Box, size: int, frame_shape: tuple[int, ...]) -> None:
        if size < 1:
            raise ArgumentError("size", size, "at least 1")
        if not all(map(math.isfinite, box)) or box[2] <= 0 or box[3] <= 0:
            raise ArgumentError("box", box, "finite x, y and positive width, height")
        self.box, self.size = box, size
        x, y, width, height = box
        self._rows, self._row_bands = _bands(y, height, size, frame_shape[0])
        self._columns, bands = _bands(x, width, size, frame_shape[1])
        self._column_bands = [
            (_times_3(cells), _times_3(pixels), _of_each_colour(weights)) for cells, pixels, weights in bands
        ]

    def mean(self, rgb: ByteArray) -> FloatArray:
        """The crop as (S,S,3) f32, not rounded; of several pictures (T,H,W,3) as (T,S,S,3)."""
        part = rgb[..., self._rows, self._columns, :].astype(np.float32)
        *pictures, height, _, _ = part.shape
        part = part.reshape(*pictures, height, -1)  # (…,h,w,3) -> (…,h,w·3)
        rows = np.empty((*pictures, self.size, part.shape[-1]), np.float32)  # (…,S,w·3)
        for cells, pixels, weights in self._row_bands:
            np.matmul(weights, part[..., pixels, :], out=rows[..., cells, :])
        picture = np.empty((*pictures, self.size, self.size * 3), np.float32)  # (…,S,S·3)
        for cells, pixels, weights in self._column_bands:
            np.matmul(rows[..., pixels], weights, out=picture[..., cells])
        return picture.reshape(*pictures, self.size, self.size, 3)


def _bands(start: float, length: float, size: int, pixels: int) -> tuple[slice, list[_Band]]:
    """Which pixels of one axis `size` cells cover, and the weights of each, a few cells at a time.

    A cell sees few pixels, so almost all of the whole matrix would be zero.
    """
    first = min(max(math.floor(start), 0), pixels - 1)
    last = max(min(math.ceil(start + length), pixels), first + 1)
    cells = start + length * np.arange(size + 1) / size  # (size+1,)
    bands = []
    for low in range(0, size, _BAND_CELLS):
        high = min(low + _BAND_CELLS, size)
        near = min(max(math.floor(cells[low]), first), last - 1)
        far = max(min(math.ceil(cells[high]), last), near + 1)
        edges = np.arange(near, far + 1, dtype=np.float64)  # (n+1,)
        if near == first:  # the outermost pixels go on for ever
            edges[0] = -np.inf
        if far == last:
            edges[-1] = np.inf
        left = np.maximum(cells[low:high, None], edges[None, :-1])
        right = np.minimum(cells[low + 1 : high + 1, None], edges[None, 1:])
        weights = (np.maximum(right - left, 0) * (size / length)).astype(np.float32)
        bands.append((slice(low, high), slice(near - first, far - first), weights))
    return slice(first, last), bands


def _times_3(span: slice) -> slice:
    """The same span of an axis on which three colours follow one another."""
    return slice(3 * span.start, 3 * span.stop)


def _of_each_colour(weights: FloatArray) -> FloatArray:
    """Weights (cells,pixels) for an axis on which three colours follow one another: (3·pixels,3·cells)."""
    cells, pixels = weights.shape
    spread = np.zeros((pixels, 3, cells, 3), np.float32)
    for colour in range(3):
        spread[:, colour, :, colour] = weights.T
    return spread.reshape(3 * pixels, 3 * cells)
