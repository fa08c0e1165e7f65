"""Which part of a face crop is skin, and which part of the picture is background.

The region comes from where the landmarks are and from the colour of the cheeks, whatever that colour is; no
range of "skin colours" is built in. Both are soft weights, so a small change of them is a small change of
the mean colour.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..types import ByteArray, FloatArray
from .crop import Box

IntArray: TypeAlias = npt.NDArray[np.integer]

_CHROMA_SPREAD = (0.04, 0.10)  # limits of the distance in r, g fractions at which a cell counts for 60 %
_GRID_PX = 48  # background points along the longer side of the picture
_CLEARANCE = 1.6  # no background within this many box sizes around a face: hair, hands, the neck below


def skin_weights(picture: FloatArray, crop: Box, landmarks: FloatArray, face: Box) -> FloatArray:
    """Weights (S,S) f32, sum 1, of the skin in a crop `picture` (S,S,3) that shows the box `crop`."""
    size = picture.shape[0]
    centres = (np.arange(size) + 0.5) / size
    x = (crop[0] + centres * crop[2])[None, :]  # (1,S) in pixels of the frame
    y = (crop[1] + centres * crop[3])[:, None]  # (S,1)
    shape = _face_shape(x, y, landmarks, face)
    colour = picture.astype(np.float32)
    total = colour.sum(-1) + 1.0
    chroma = colour[..., :2] / total[..., None]  # (S,S,2)
    seed: FloatArray = shape * _cheeks(x, y, landmarks, face)
    seed = seed / seed.sum() if seed.sum() > 0 else shape / shape.sum()
    mean_chroma = np.tensordot(seed, chroma, 2)  # (2,)
    squared = ((chroma - mean_chroma) ** 2).sum(-1)  # (S,S)
    spread = float(np.clip(2 * np.sqrt((seed * squared).sum()), *_CHROMA_SPREAD))
    bright = total / float((seed * total).sum())
    lit = np.clip((bright - 0.3) / 0.2, 0, 1) * np.clip((2.1 - bright) / 0.2, 0, 1)  # not hair, not glare
    weights = shape * np.exp(-squared / (2 * spread**2)) * lit
    if weights.sum() < 0.05 * shape.sum():
        weights = shape  # colour does not help here (grey video, odd light): the face as a whole
    return (weights / weights.sum()).astype(np.float32)


def background_points(frame_shape: tuple[int, ...], faces: Iterable[Box]) -> tuple[IntArray, IntArray]:
    """The points of a coarse grid that are away from all faces: (rows, columns) in pixels."""
    height, width = frame_shape[:2]
    step = max(1, max(height, width) // _GRID_PX)
    y = np.arange(step // 2, height, step)[:, None] + 0.5
    x = np.arange(step // 2, width, step)[None, :] + 0.5
    away = np.ones((y.size, x.size), dtype=bool)
    for left, top, face_width, face_height in faces:
        near_x = abs(x - (left + face_width / 2)) < face_width / 2 * _CLEARANCE
        near_y = abs(y - (top + face_height / 2)) < face_height / 2 * _CLEARANCE
        below = (y > top + face_height / 2) & (abs(x - (left + face_width / 2)) < face_width)
        away &= ~((near_x & near_y) | below)  # neck and chest move with the breath and show skin
    row, column = np.nonzero(away)
    return row * step + step // 2, column * step + step // 2


def background_mean(rgb: ByteArray, points: tuple[IntArray, IntArray]) -> FloatArray:
    """The mean colour (3,) of the background points."""
    colours = rgb[points].astype(np.float32)  # (N,3)
    return np.ones(len(colours), np.float32) @ colours / len(colours)


def _face_shape(x: FloatArray, y: FloatArray, landmarks: FloatArray, face: Box) -> FloatArray:
    """An ellipse in the face box without eyes, brows and mouth, soft at its edges: (S,S)."""
    left, top, width, height = face
    centre_x, centre_y = left + width / 2, top + height / 2
    radius = np.hypot((x - centre_x) / (0.48 * width), (y - centre_y) / (0.50 * height))
    shape = _inside(radius)
    right_eye, left_eye, _, right_mouth, left_mouth = landmarks
    between = max(float(np.hypot(*(left_eye - right_eye))), 0.25 * width)
    for eye in (right_eye, left_eye):
        shape = shape * (
            1 - _inside(np.hypot((x - eye[0]) / (0.38 * between), (y - eye[1]) / (0.26 * between)))
        )
    mouth = (right_mouth + left_mouth) / 2
    return shape * (
        1 - _inside(np.hypot((x - mouth[0]) / (0.55 * between), (y - mouth[1]) / (0.26 * between)))
    )


def _cheeks(x: FloatArray, y: FloatArray, landmarks: FloatArray, face: Box) -> FloatArray:
    """The surest skin: between eyes and mouth corners, and the bridge of the nose."""
    right_eye, left_eye, nose, right_mouth, left_mouth = landmarks
    reach = 0.16 * face[2]
    places = (
        0.4 * right_eye + 0.6 * right_mouth,
        0.4 * left_eye + 0.6 * left_mouth,
        0.5 * (nose + (right_eye + left_eye) / 2),
    )
    total = np.zeros(np.broadcast_shapes(x.shape, y.shape))
    for place in places:
        total = np.maximum(total, _inside(np.hypot(x - place[0], y - place[1]) / reach))
    return total


def _inside(radius: FloatArray) -> FloatArray:
    """1 well inside radius 1, 0 well outside, linear between."""
    return np.clip((1.1 - radius) / 0.2, 0.0, 1.0)
