"""Square crops of a face: their margin around the detector box, and resizing by area averaging.

Each pixel of the video is weighted by its area of overlap with the output pixel. This averages as much
sensor noise as possible, and constant colours stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from ..errors import ArgumentError
from ..picture import Picture, YuvPicture
from ..types import ByteArray, FloatArray

Box: TypeAlias = tuple[float, float, float, float]  # x, y, width, height in pixels

CROP_SCALE = 1.25  # margin: side of the crop over the longer side of the detector box
CROP_PX = 36  # side of the crop from which skin colour and motion are measured
_BAND_CELLS = 12  # fastest in a benchmark: smaller bands cost calls, larger ones multiply zeros
_PLANE_BANDS = 9  # the same for planes, where all bands are one call
_MAX_PLANE_SIDES = 4  # a box that is larger than this many pictures is cropped from RGB
_Band: TypeAlias = tuple[slice, slice, FloatArray]  # cells, the pixels they cover, weights (cells,pixels)
_Axis: TypeAlias = tuple[slice, list[_Band]]  # the pixels that a crop covers, and its bands


def square(box: Box) -> Box:
    """Return the square crop of a face box, with its margin."""
    x, y, width, height = box
    side = CROP_SCALE * max(width, height)
    return x + (width - side) / 2, y + (height - side) / 2, side, side


def resize_area(picture: Picture, box: Box, size: int) -> ByteArray:
    """Return the part of the picture inside `box` as (size,size,3) u8, with repeated edge pixels outside."""
    return to_bytes(AreaCrop(box, size, picture.shape[:2]).mean(picture))


def to_bytes(picture: FloatArray) -> ByteArray:
    """Round 0–255 values to bytes."""
    return np.rint(picture).astype(np.uint8)


class AreaCrop:
    """A reusable crop of one box from pictures of one size, computed with small matrix products.

    The weights are computed when the first picture is cropped, because they depend on the kind of picture.
    """

    def __init__(self, box: Box, size: int, frame_shape: tuple[int, ...]) -> None:
        _check([box], size)
        self.box, self.size = box, size
        self._frame_shape = frame_shape
        self._interleaved: tuple[_Axis, _Axis] | None = None  # weights of rows and columns for RGB
        self._planar: _PlaneCrop | None = None

    @classmethod
    def many(cls, boxes: Sequence[Box], size: int, frame_shape: tuple[int, ...]) -> list[AreaCrop]:
        """Return the crops of many boxes of RGB pictures, faster than making them one by one."""
        crops = []
        for box, weights in zip(boxes, _weights(boxes, size, frame_shape), strict=True):
            crop = cls(box, size, frame_shape)
            crop._interleaved = weights
            crops.append(crop)
        return crops

    def mean(self, picture: Picture) -> FloatArray:
        """Return the crop as RGB (S,S,3) f32, not rounded; an array (T,H,W,3) gives (T,S,S,3)."""
        if not isinstance(picture, YuvPicture):
            return self._mean_rgb(picture)
        if max(self.box[2:]) > _MAX_PLANE_SIDES * max(self._frame_shape[:2]):
            return self._mean_rgb(picture.rgb)  # its memory does not depend on the size of the box
        if self._planar is None:
            self._planar = _PlaneCrop(self.box, self.size)
        return picture.convert(self._planar.mean(picture))

    def _mean_rgb(self, rgb: ByteArray) -> FloatArray:
        if self._interleaved is None:
            self._interleaved = _interleaved_weights(self.box, self.size, self._frame_shape)
        (row_span, row_bands), (column_span, column_bands) = self._interleaved
        part = rgb[..., row_span, column_span, :].astype(np.float32)
        *pictures, height, _, _ = part.shape
        part = part.reshape(*pictures, height, -1)  # (…,h,w,3) -> (…,h,w·3)
        rows = np.empty((*pictures, self.size, part.shape[-1]), np.float32)  # (…,S,w·3)
        for cells, pixels, weights in row_bands:
            np.matmul(weights, part[..., pixels, :], out=rows[..., cells, :])
        picture = np.empty((*pictures, self.size, self.size * 3), np.float32)  # (…,S,S·3)
        for cells, pixels, weights in column_bands:
            np.matmul(rows[..., pixels], weights, out=picture[..., cells])
        return picture.reshape(*pictures, self.size, self.size, 3)


class _PlaneCrop:
    """The weights of one crop for the planes of a picture, in bands of a few cells.

    Bands begin at multiples of one even distance. So all products of a plane are one call, and the weight of
    a chroma value is the sum of the weights of its two pixels.
    """

    def __init__(self, box: Box, size: int) -> None:
        x, y, width, height = box
        edges = _cell_edges(size)  # (bands,cells+1)
        bands, cells = len(edges), edges.shape[1] - 1
        least_px, most_px = (side * cells / size for side in (min(width, height), max(width, height)))
        step = int(least_px) // 2 * 2  # between two bands
        span = 2 * math.ceil((most_px + (bands - 1) * (most_px - step) + 2) / 2)  # of a band
        self.side_px = (bands - 1) * step + span
        self.top, self.left = math.floor(y) // 2 * 2, math.floor(x) // 2 * 2
        start = np.array([y - self.top, x - self.left])[:, None, None]
        at = start + np.array([height, width])[:, None, None] * edges  # (2,bands,cells+1)
        at -= step * np.arange(bands)[:, None]
        covered = at.astype(np.float32)[..., None] - np.arange(span, dtype=np.float32)
        np.maximum(covered, 0.0, out=covered)
        np.minimum(covered, 1.0, out=covered)
        weights = covered[:, :, 1:] - covered[:, :, :-1]  # (2,bands,cells,span): rows, columns
        weights[0] *= np.float32(size / height)
        weights[1] *= np.float32(size / width)
        self._size, self._step, self._span = size, step, span
        self._weights = (weights, weights[..., 0::2] + weights[..., 1::2])  # for luma and for chroma

    def mean(self, picture: YuvPicture) -> FloatArray:
        """Return the means (3,S,S) of luma and both chroma planes."""
        side, size, top, left = self.side_px, self._size, self.top, self.left
        luma = np.empty((side, 1, side), np.float32)
        chroma = np.empty((side // 2, 2, side // 2), np.float32)  # side by side: one product for both planes
        bottom, right = top + side, left + side
        height, width = picture.luma.shape
        if top >= 0 and left >= 0 and bottom <= height and right <= width:  # most crops: no edges to repeat
            luma[:, 0] = picture.luma[top:bottom, left:right]
            part = picture.chroma[:, top // 2 : bottom // 2, left // 2 : right // 2]
            np.copyto(chroma, part.swapaxes(0, 1))
        else:
            _copy_part(picture.luma, top, left, luma[:, 0])
            for index, plane in enumerate(picture.chroma):
                _copy_part(plane, top // 2, left // 2, chroma[:, index])
        means = np.empty((3, size, size), np.float32)
        means[:1] = self._plane_means(luma)
        means[1:] = self._plane_means(chroma)
        return means

    def _plane_means(self, planes: FloatArray) -> FloatArray:
        """Return the means (n,S,S) of n planes with subsampling n, (h,n,w)."""
        _, count, width = planes.shape
        rows_of, columns_of = self._weights[count - 1]
        bands, cells, span = rows_of.shape
        step, all_cells, item = self._step // count, bands * cells, planes.itemsize
        row_bytes = count * width * item
        above = np.ndarray(
            (bands, span, count * width), np.float32, planes, 0, (step * row_bytes, row_bytes, item)
        )
        rows = np.matmul(rows_of, above)  # (bands,cells,n·w), contiguous: (cells·n,w)
        beside = np.ndarray(
            (bands, all_cells * count, span), np.float32, rows, 0, (step * item, width * item, item)
        )
        means = np.empty((all_cells * count, bands, cells), np.float32)
        np.matmul(beside, columns_of.swapaxes(1, 2), out=means.swapaxes(0, 1))
        grid = means.reshape(all_cells, count, all_cells)[: self._size, :, : self._size]
        return grid.swapaxes(0, 1)


@lru_cache(maxsize=16)
def _cell_edges(size: int) -> FloatArray:
    """Return the edges (bands,cells+1) of the cells as fractions of the box; the last ones may be empty."""
    cells = -(-size // _PLANE_BANDS)
    bands = -(-size // cells)
    return np.minimum((cells * np.arange(bands)[:, None] + np.arange(cells + 1)) / size, 1.0)


def _copy_part(plane: ByteArray, top: int, left: int, part: FloatArray) -> None:
    """Copy the part of a plane from (top,left) on into `part`, with repeated edges outside the plane."""
    rows, columns = _inside(top, part.shape[0], plane.shape[0]), _inside(left, part.shape[1], plane.shape[1])
    (above, below, row), (before, after, column) = rows, columns
    part[above:below, before:after] = plane[row : row + below - above, column : column + after - before]
    if before or after < part.shape[1]:
        part[above:below, :before] = part[above:below, before : before + 1]
        part[above:below, after:] = part[above:below, after - 1 : after]
    if above or below < part.shape[0]:
        part[:above], part[below:] = part[above], part[below - 1]


def _inside(start: int, count: int, pixels: int) -> tuple[int, int, int]:
    """Return which of `count` positions from `start` on are inside the plane, and the pixel of the first one.

    If all are outside, it is the one that is nearest to the plane.
    """
    first, stop = max(-start, 0), min(pixels - start, count)
    if first < stop:
        return first, stop, start + first
    return (count - 1, count, 0) if start < 0 else (0, 1, pixels - 1)


def _check(boxes: Sequence[Box], size: int) -> None:
    if size < 1:
        raise ArgumentError("size", size, "at least 1")
    for box in boxes:
        if not all(map(math.isfinite, box)) or box[2] <= 0 or box[3] <= 0:
            raise ArgumentError("box", box, "finite x, y and positive width, height")


def _interleaved_weights(box: Box, size: int, frame_shape: tuple[int, ...]) -> tuple[_Axis, _Axis]:
    """Return the weights of the rows and of the columns, with three interleaved channels."""
    x, y, width, height = box
    columns, bands = _bands(x, width, size, frame_shape[1])
    spread = [
        (_channel_slice(cells), _channel_slice(pixels), _repeat_per_channel(weights))
        for cells, pixels, weights in bands
    ]
    return _bands(y, height, size, frame_shape[0]), (columns, spread)


def _bands(start: float, length: float, size: int, pixels: int) -> tuple[slice, list[_Band]]:
    """Return the pixels of one axis that `size` cells cover, and their weights in bands of a few cells.

    A cell covers few pixels, so that most of one matrix for all cells would be zero.
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
        if near == first:  # the edge pixels extend to infinity
            edges[0] = -np.inf
        if far == last:
            edges[-1] = np.inf
        left = np.maximum(cells[low:high, None], edges[None, :-1])
        right = np.minimum(cells[low + 1 : high + 1, None], edges[None, 1:])
        weights = (np.maximum(right - left, 0) * (size / length)).astype(np.float32)
        bands.append((slice(low, high), slice(near - first, far - first), weights))
    return slice(first, last), bands


def _channel_slice(span: slice) -> slice:
    """Return the same span on an axis with three interleaved channels."""
    return slice(3 * span.start, 3 * span.stop)


def _repeat_per_channel(weights: FloatArray) -> FloatArray:
    """Expand weights (cells,pixels) to an axis with three interleaved channels: (3·pixels,3·cells)."""
    cells, pixels = weights.shape
    spread = np.zeros((pixels, 3, cells, 3), np.float32)
    for colour in range(3):
        spread[:, colour, :, colour] = weights.T
    return spread.reshape(3 * pixels, 3 * cells)


def _weights(boxes: Sequence[Box], size: int, frame_shape: tuple[int, ...]) -> list[tuple[_Axis, _Axis]]:
    """Return the weights of the rows and of the columns of each box."""
    _check(boxes, size)
    x, y, width, height = np.array(boxes, dtype=np.float64).reshape(-1, 4).T
    rows = _many_bands(y, height, size, frame_shape[0], channels=1)
    return list(zip(rows, _many_bands(x, width, size, frame_shape[1], channels=3), strict=True))


def _many_bands(start: FloatArray, length: FloatArray, size: int, pixels: int, channels: int) -> list[_Axis]:
    """Return the pixels of one axis that `size` cells cover, and their weights in bands of a few cells.

    `start` and `length` are (N,), and N results are returned. A cell covers few pixels, so that most of one
    matrix for all cells would be zero. With three channels, the axis is interleaved, and the weights are
    (3·pixels,3·cells).
    """
    first = np.clip(np.floor(start), 0, pixels - 1)
    last = np.maximum(np.minimum(np.ceil(start + length), pixels), first + 1)
    cells = start[:, None] + length[:, None] * np.arange(size + 1) / size  # (N,size+1)
    low = np.arange(-(-size // _BAND_CELLS)) * _BAND_CELLS  # (B,)
    high = np.minimum(low + _BAND_CELLS, size)
    near = np.clip(np.floor(cells[:, low]), first[:, None], last[:, None] - 1)  # (N,B)
    far = np.maximum(np.minimum(np.ceil(cells[:, high]), last[:, None]), near + 1)
    edges = near[:, :, None] + np.arange(int((far - near).max()) + 1)  # (N,B,n+1)
    edges[..., 0][near == first[:, None]] = -np.inf  # the edge pixels extend to infinity
    at_end = np.nonzero(far == last[:, None])
    edges[(*at_end, (far - near)[at_end].astype(np.intp))] = np.inf
    cell = np.minimum(low[:, None] + np.arange(_BAND_CELLS), size - 1)  # (B,cells)
    left = np.maximum(cells[:, cell, None], edges[:, :, None, :-1])
    weights = np.minimum(cells[:, cell + 1, None], edges[:, :, None, 1:])
    weights -= left
    np.maximum(weights, 0, out=weights)
    weights *= (size / length)[:, None, None, None]  # (N,B,cells,n)
    spread = weights.astype(np.float32)
    if channels == 3:
        spread = np.zeros((len(start), len(low), weights.shape[3], 3, _BAND_CELLS, 3), np.float32)
        for colour in range(3):
            spread[:, :, :, colour, :, colour] = weights.swapaxes(2, 3)
    ends = np.stack([near, far], axis=2).astype(np.intp) - first[:, None, None].astype(np.intp)
    spans, axes = (low.tolist(), high.tolist()), []
    for matrices, pairs, pixel, stop in zip(spread, ends.tolist(), first, last, strict=True):
        bands: list[_Band] = []
        for matrix, (begin, end), cell_0, cell_1 in zip(matrices, pairs, *spans, strict=True):
            if channels == 1:
                part = matrix[: cell_1 - cell_0, : end - begin]
            else:
                part = matrix[: end - begin, :, : cell_1 - cell_0].reshape(3 * (end - begin), -1)
            bands.append(
                (slice(channels * cell_0, channels * cell_1), slice(channels * begin, channels * end), part)
            )
        axes.append((slice(int(pixel), int(stop)), bands))
    return axes
