"""Frontal face detection with the Haar cascade of OpenCV 4, for crops that equal those of rPPG-Toolbox.

    P. Viola, M. Jones: Rapid Object Detection using a Boosted Cascade of Simple Features (CVPR 2001)
    R. Lienhart, J. Maydt: An Extended Set of Haar-like Features for Rapid Object Detection (ICIP 2002)

`detect` returns the boxes of `cv2.CascadeClassifier.detectMultiScale` with its default arguments, which
OpenCV 5 no longer contains. Measuring a pulse uses YuNet (`detector.py`), which is faster and finds more
faces. The cascade is in `cascade/`, with its licence.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..errors import WeightsError
from ..types import BoolArray, ByteArray, FloatArray
from .crop import Box

CASCADE = Path(__file__).parent / "cascade" / "haar_frontal_face.npz"
WINDOW_PX = 24  # side of the window that the cascade was trained on
SCALE_STEP = 1.1
MIN_NEIGHBOURS = 3  # a face needs more accepted windows than this, as in OpenCV
GROUP_EPS = 0.2  # largest difference of the edges of windows of the same face, over their mean side
FINE_SCALE = 2.0  # from this scale on, every row and column is tested; below it, every second one
MIN_SPREAD = 10 * (WINDOW_PX - 2) ** 2  # of the grey levels; flat windows are not tested
_TINY = np.float32(1e-5)  # subtracted from the thresholds of the stages
_IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """A sum of decision stumps that a window must reach."""

    threshold: np.float32
    thresholds: FloatArray  # (N,) f32 of the stumps
    leaves: FloatArray  # (N,2) f32: value below the threshold, otherwise
    rectangles: _IntArray  # (N,3,4) x, y, width, height in the window
    weights: FloatArray  # (N,3) f32


def detect(rgb: ByteArray) -> list[Box]:
    """Return the faces of a picture, in no particular order.

    rPPG-Toolbox passes RGB pictures to a function that expects BGR, so red and blue change places in `_grey`.
    """
    grey = _grey(rgb)  # on purpose, see above
    windows: list[npt.NDArray[np.int32]] = []
    factor = 1.0
    while (side := round(WINDOW_PX * factor)) <= min(grey.shape):
        scale = np.float32(factor)
        size = tuple(int(np.rint(np.float32(n) / scale)) for n in grey.shape)
        corners = _accepted(_resized(grey, size), 1 if scale >= FINE_SCALE else 2)  # (N,2) x, y
        corners = np.rint(corners.astype(np.float32) * scale).astype(np.int32)
        windows.append(np.column_stack([corners, np.full((len(corners), 2), side, np.int32)]))
        factor *= SCALE_STEP
    return _grouped(np.concatenate(windows)) if windows else []


@lru_cache(maxsize=1)
def _stages() -> list[_Stage]:
    try:
        with np.load(CASCADE, allow_pickle=False) as file:
            data = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise WeightsError(CASCADE, f"cannot be read ({error}); reinstall the package") from None
    ends = np.cumsum(data["stage_sizes"])
    return [
        _Stage(
            np.float32(threshold) - _TINY,
            data["thresholds"][start:end],
            data["leaves"][start:end],
            data["rectangles"][start:end].astype(np.int64),
            data["weights"][start:end].astype(np.float32),
        )
        for threshold, start, end in zip(data["stage_thresholds"], [0, *ends[:-1]], ends, strict=True)
    ]


def _grey(bgr: ByteArray) -> ByteArray:
    """Return the luma (H,W) with the fixed-point weights of OpenCV."""
    blue, green, red = (bgr[..., channel].astype(np.uint32) for channel in range(3))
    return ((blue * 3735 + green * 19235 + red * 9798 + (1 << 14)) >> 15).astype(np.uint8)


def _resized(grey: ByteArray, shape: tuple[int, ...]) -> ByteArray:
    """Return the picture with linear interpolation in fixed point, as OpenCV's INTER_LINEAR_EXACT."""
    if grey.shape == shape:
        return grey
    rows, columns = (_taps(source, target) for source, target in zip(grey.shape, shape, strict=True))
    across = grey.astype(np.uint32)
    across = across[:, columns[0]] * (256 - columns[2]) + across[:, columns[1]] * columns[2]
    down = across[rows[0]] * (256 - rows[2])[:, None] + across[rows[1]] * rows[2][:, None]
    return ((down + (1 << 15)) >> 16).astype(np.uint8)


def _taps(source: int, target: int) -> tuple[_IntArray, _IntArray, npt.NDArray[np.uint32]]:
    """Return both source pixels of every target pixel, and the weight of the second one in 1/256."""
    place = (np.arange(target) + 0.5) / (target / source) - 0.5
    first = np.floor(place).astype(np.int64)
    share = np.rint((place - first) * 256).astype(np.uint32)
    share[(first < 0) | (first >= source - 1)] = 0
    first = np.clip(first, 0, source - 1)
    return first, np.minimum(first + 1, source - 1), share


def _accepted(grey: ByteArray, step: int) -> _IntArray:
    """Return the upper left corners (N,2) of the windows that pass all stages."""
    rows, columns = (np.arange(0, side - WINDOW_PX + 1, step) for side in grey.shape)
    integral = _integral(grey.astype(np.int64))
    stride = integral.shape[1]
    at = (rows[:, None] * stride + columns).ravel()
    norm, tested = _normalisation(grey, integral, at)
    first, *others = _stages()
    passed = tested.copy()
    passed[tested] = _passes(first, integral.ravel(), stride, at[tested], norm[tested])
    passed &= ~_skipped((tested & ~passed).reshape(len(rows), -1)).ravel()
    at, norm = at[passed], norm[passed]
    for stage in others:
        kept = _passes(stage, integral.ravel(), stride, at, norm)
        at, norm = at[kept], norm[kept]
    return np.column_stack([at % stride, at // stride])


def _skipped(rejected: BoolArray) -> BoolArray:
    """Return the windows that are not tested because the first stage rejected their left neighbour."""
    skipped = np.zeros_like(rejected)
    for column in range(1, rejected.shape[1]):
        skipped[:, column] = rejected[:, column - 1] & ~skipped[:, column - 1]
    return skipped


def _integral(values: _IntArray) -> _IntArray:
    """Return the sums (H+1,W+1) over all pixels above and to the left."""
    sums = np.zeros((values.shape[0] + 1, values.shape[1] + 1), np.int64)
    sums[1:, 1:] = values.cumsum(0).cumsum(1)
    return sums


def _normalisation(grey: ByteArray, integral: _IntArray, at: _IntArray) -> tuple[FloatArray, BoolArray]:
    """Return 1 / (area · standard deviation) of the inner part of the windows, and which are not flat."""
    stride, inner, area = integral.shape[1], (1, 1, WINDOW_PX - 2, WINDOW_PX - 2), (WINDOW_PX - 2) ** 2
    squares = _integral(grey.astype(np.int64) ** 2)
    total = _sum(integral.ravel(), stride, at, inner)
    spread = np.sqrt(np.maximum(area * _sum(squares.ravel(), stride, at, inner) - total**2, 1).astype(float))
    norm = (1 / spread).astype(np.float32)
    return norm, area * norm.astype(float) < area / MIN_SPREAD


def _passes(stage: _Stage, integral: _IntArray, stride: int, at: _IntArray, norm: FloatArray) -> BoolArray:
    """Return which windows reach the threshold of a stage."""
    total = np.zeros(len(at))
    for threshold, leaves, rectangles, weights in zip(
        stage.thresholds, stage.leaves, stage.rectangles, stage.weights, strict=True
    ):
        value = np.zeros(len(at), np.float32)
        for rectangle, weight in zip(rectangles, weights, strict=True):
            if weight:
                value += weight * _sum(integral, stride, at, rectangle).astype(np.float32)
        total += np.where(value * norm < threshold, leaves[0], leaves[1])
    return total >= stage.threshold


def _sum(integral: _IntArray, stride: int, at: _IntArray, rectangle: npt.ArrayLike) -> _IntArray:
    """Return the sums over one rectangle of windows whose corners are at the indices `at`."""
    x, y, width, height = (int(n) for n in np.asarray(rectangle))
    above = at + (y * stride + x)
    below = above + height * stride
    return integral[above] - integral[above + width] - integral[below] + integral[below + width]


def _grouped(windows: npt.NDArray[np.int32]) -> list[Box]:
    """Return the mean box of every group of similar windows, without small groups and boxes inside others."""
    groups = _groups(windows)
    counts = np.array([len(group) for group in groups])
    boxes = np.array([np.rint(windows[group].sum(0) * (np.float32(1) / len(group))) for group in groups])
    kept = np.flatnonzero(counts > MIN_NEIGHBOURS)
    return [
        (float(x), float(y), float(width), float(height))
        for index in kept
        for x, y, width, height in [boxes[index]]
        if not any(
            _is_inside(boxes[index], boxes[other]) and counts[other] > counts[index]
            for other in kept
            if other != index
        )
    ]


def _groups(windows: npt.NDArray[np.int32]) -> list[_IntArray]:
    """Return the indices of the windows that are linked by similar windows."""
    left = np.arange(len(windows))
    groups = []
    while len(left):
        group, new = left[:0], left[:1]
        left = left[1:]
        while len(new):
            group = np.append(group, new)
            near = np.zeros(len(left), bool)
            for one in windows[new]:
                near |= _similar(windows[left], one)
            new, left = left[near], left[~near]
        groups.append(group)
    return groups


def _similar(windows: npt.NDArray[np.int32], one: npt.NDArray[np.int32]) -> BoolArray:
    limit = GROUP_EPS * (np.minimum(windows[:, 2], one[2]) + np.minimum(windows[:, 3], one[3])) / 2
    ends, end = windows[:, :2] + windows[:, 2:], one[:2] + one[2:]
    apart = np.concatenate([np.abs(windows[:, :2] - one[:2]), np.abs(ends - end)], axis=1)
    return (apart <= limit[:, None]).all(1)


def _is_inside(box: FloatArray, other: FloatArray) -> bool:
    """Return whether a box is inside another one that is enlarged by its tolerance."""
    margin = (other[2:] * GROUP_EPS).round()
    return bool(
        (box[:2] >= other[:2] - margin).all() and (box[:2] + box[2:] <= other[:2] + other[2:] + margin).all()
    )
