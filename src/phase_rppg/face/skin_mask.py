"""The skin mask of a face crop, and the background points of a picture.

The mask depends on the landmarks and on the colour of the cheeks. It assumes no range of skin colours, so it
works for every skin tone. Its weights are continuous, so that a small shift of the landmarks causes a small
change of the mean colour.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..picture import Picture, YuvPicture
from ..types import ByteArray, FloatArray
from .crop import CROP_SCALE, Box

IntArray: TypeAlias = npt.NDArray[np.integer]

_CHROMA_SPREAD = (0.04, 0.10)  # limits of the standard deviation of the colour weight, in r, g fractions
# Geometry of a frontal face, for clips that carry no landmarks. These are means over 133 detections in 29
# films of the synthetic worlds (`benchmarks/readings.py --work DIR` writes them), in one frame every 2 s of
# the first 8 s, made symmetric. Aspect and coordinates have a standard deviation of at most 0.03 over films.
TYPICAL_ASPECT = 0.77  # width over height of the detector's box
TYPICAL_LANDMARKS: FloatArray = np.array(  # (5,2) eyes, nose tip, mouth corners, as fractions of the box
    [[0.26, 0.36], [0.74, 0.36], [0.50, 0.56], [0.30, 0.72], [0.70, 0.72]]
)
_GRID_PX = 48  # number of background points along the longer side of the picture
_CLEARANCE = 1.6  # background points stay outside a face box enlarged by this factor (hair, hands)


def skin_weights(picture: FloatArray, crop: Box, landmarks: FloatArray, face: Box) -> FloatArray:
    """Return the weights (S,S) f32, sum 1, of the skin in `picture` (S,S,3), which shows the box `crop`."""
    size = picture.shape[0]
    centres = (np.arange(size) + 0.5) / size
    x = (crop[0] + centres * crop[2])[None, :]  # (1,S) in pixels of the frame
    y = (crop[1] + centres * crop[3])[:, None]  # (S,1)
    shape = _face_shape(x, y, landmarks, face)
    if not shape.any():  # the face is narrower than a cell of the crop
        shape = np.ones_like(shape)
    colour = picture.astype(np.float32)
    total = colour.sum(-1) + 1.0
    chroma = colour[..., :2] / total[..., None]  # (S,S,2)
    seed: FloatArray = shape * _cheeks(x, y, landmarks, face)
    seed = seed / seed.sum() if seed.sum() > 0 else shape / shape.sum()
    mean_chroma = np.tensordot(seed, chroma, 2)  # (2,)
    squared = ((chroma - mean_chroma) ** 2).sum(-1)  # (S,S)
    spread = float(np.clip(2 * np.sqrt((seed * squared).sum()), *_CHROMA_SPREAD))
    bright = total / float((seed * total).sum())
    lit = np.clip((bright - 0.3) / 0.2, 0, 1) * np.clip(
        (2.1 - bright) / 0.2, 0, 1
    )  # excludes hair and specular highlights
    weights = shape * np.exp(-squared / (2 * spread**2)) * lit
    if weights.sum() < 0.05 * shape.sum():
        weights = shape  # colour is not informative (grey video, coloured light): use the whole face
    return (weights / weights.sum()).astype(np.float32)


def clip_skin_weights(pixels: ByteArray) -> FloatArray:
    """Return the weights (S,S), sum 1, of the skin in a clip (T,S,S,3) that carries no landmarks.

    This is `skin_weights` of the mean picture, for a face of typical proportions at the position that
    `crop.square` gives it.
    """
    height = 1 / CROP_SCALE
    width = TYPICAL_ASPECT * height
    face = ((1 - width) / 2, (1 - height) / 2, width, height)
    landmarks = np.array(face[:2]) + TYPICAL_LANDMARKS * np.array(face[2:])
    return skin_weights(pixels.mean(0), (0.0, 0.0, 1.0, 1.0), landmarks, face)


def background_points(frame_shape: tuple[int, ...], faces: Iterable[Box]) -> tuple[IntArray, IntArray]:
    """Return the points of a coarse grid that are away from all faces: (rows, columns) in pixels."""
    height, width = frame_shape[:2]
    step = max(1, max(height, width) // _GRID_PX)
    y = np.arange(step // 2, height, step)[:, None] + 0.5
    x = np.arange(step // 2, width, step)[None, :] + 0.5
    away = np.ones((y.size, x.size), dtype=bool)
    for left, top, face_width, face_height in faces:
        near_x = abs(x - (left + face_width / 2)) < face_width / 2 * _CLEARANCE
        near_y = abs(y - (top + face_height / 2)) < face_height / 2 * _CLEARANCE
        below = (y > top + face_height / 2) & (abs(x - (left + face_width / 2)) < face_width)
        away &= ~((near_x & near_y) | below)  # neck and chest show skin and move with breathing
    row, column = np.nonzero(away)
    return row * step + step // 2, column * step + step // 2


def background_mean(picture: Picture, points: tuple[IntArray, IntArray]) -> FloatArray:
    """Return the mean colour (3,) of the background points."""
    if isinstance(picture, YuvPicture):
        return planes_mean(picture, picture.offsets(*points))
    colours = picture[points].astype(np.float32)  # (N,3)
    return np.ones(len(colours), np.float32) @ colours / len(colours)


def planes_mean(picture: YuvPicture, offsets: IntArray) -> FloatArray:
    """Return the mean colour (3,) of the pixels with these offsets (3,N)."""
    sums = np.add.reduce(picture.memory.take(offsets), axis=1, dtype=np.uint32)  # (3,)
    return picture.convert((sums / offsets.shape[1]).astype(np.float32))


def _face_shape(x: FloatArray, y: FloatArray, landmarks: FloatArray, face: Box) -> FloatArray:
    """Return an ellipse (S,S) in the face box without eyes, brows and mouth, with soft edges."""
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
    """Return weights (S,S) of cheeks and nose bridge, where skin is most certain."""
    right_eye, left_eye, nose, right_mouth, left_mouth = landmarks
    radius = 0.16 * face[2]
    centres = (
        0.4 * right_eye + 0.6 * right_mouth,
        0.4 * left_eye + 0.6 * left_mouth,
        0.5 * (nose + (right_eye + left_eye) / 2),
    )
    total = np.zeros(np.broadcast_shapes(x.shape, y.shape))
    for centre in centres:
        total = np.maximum(total, _inside(np.hypot(x - centre[0], y - centre[1]) / radius))
    return total


def _inside(radius: FloatArray) -> FloatArray:
    """Return 1 below radius 0.9, 0 above radius 1.1, linear between."""
    return np.clip((1.1 - radius) / 0.2, 0.0, 1.0)
