"""Simulate the face crop of the measuring pipeline, with the errors of a detector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..face.crop import CROP_PX, AreaCrop, Box
from ..face.registration import FaceRegistration
from ..types import ByteArray, FloatArray
from .render import Actor
from .texture_layers import HEAD_DEPTH

CROPS_AT_ONCE = 16  # the weights of so many crops are computed together


@dataclass(frozen=True, slots=True)
class CropSpec:
    """How the face box is detected, smoothed and moved."""

    scale: float = 1.25  # side of the square crop over the longer side of the face box
    update_hz: float = 4.0  # detections per second
    jitter: float = 0.008  # standard deviation of the detected boxes, as a share of the box height
    dead_zone: float = 0.03  # smaller moves, as a share of the box height, are ignored
    smoothing: float = 0.5  # weight of the new box when the crop moves
    offset: float = 0.02  # standard deviation of the constant error of the box
    lock: bool = False  # use the first box for the whole clip
    along: bool = True  # register the crop to the face in every frame between two detections


def true_boxes(actor: Actor) -> FloatArray:
    """Return the boxes of a perfect detector (T,4): x, y, width, height in pixels."""
    p, s = actor.poses, actor.px_per_h
    x0, y0, w, h = actor.figure.box_h
    zoom = np.exp(p.zoom)
    turn = 0.0 if actor.figure.flat else 0.6 * HEAD_DEPTH
    cx = actor.centre[0] + s * (
        p.x + p.camera_x + (x0 + w / 2) * zoom + turn * np.sin(p.yaw) - 0.4 * np.sin(p.roll)
    )
    cy = actor.centre[1] + s * (p.y + p.camera_y + (y0 + h / 2) * zoom + turn * np.sin(p.pitch))
    return np.stack([cx - s * w * zoom / 2, cy - s * h * zoom / 2, s * w * zoom, s * h * zoom], axis=1)


def detected_squares(
    spec: CropSpec, boxes: FloatArray, t_s: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the square of the last detection in each frame, (T,3): centre x, centre y, side."""
    size = float(np.median(boxes[:, 3]))
    bias = rng.normal(0, spec.offset, 3) * size
    crops = np.empty((len(t_s), 3))
    square: FloatArray | None = None
    due_s = -np.inf
    for k, (x, y, w, h) in enumerate(boxes):
        if t_s[k] >= due_s and not (spec.lock and square is not None):
            noise = rng.normal(0, spec.jitter * size, 3)
            seen = np.array([x + w / 2, y + h / 2, spec.scale * max(w, h)]) + bias + noise
            if square is None:
                square = seen
            elif np.abs(seen - square).max() > spec.dead_zone * size:
                square = square + spec.smoothing * (seen - square)
            due_s = t_s[k] + 1 / spec.update_hz
        assert square is not None
        crops[k] = square
    return crops


def crop_frames(
    spec: CropSpec, pictures: Iterable[ByteArray], where: FloatArray, t_s: FloatArray, size: int
) -> FloatArray:
    """Return the face in each frame, (T,size,size,3) in 0–255, cropped as the measuring pipeline crops it."""
    crops: list[FloatArray] = []
    waiting: list[tuple[ByteArray, Box]] = []
    registration: FaceRegistration | None = None
    for rgb, centre_and_side, time_s in zip(pictures, where, t_s.tolist(), strict=True):
        box = square_box(centre_and_side)
        if spec.along:
            registration = registration or FaceRegistration(box, CROP_PX, rgb, time_s)
            box = registration.follow(box, rgb, time_s)
        waiting.append((rgb, box))
        if len(waiting) == CROPS_AT_ONCE:
            crops += _crop_all(waiting, size)
            waiting.clear()
    return np.stack(crops + _crop_all(waiting, size))


def _crop_all(pictures: list[tuple[ByteArray, Box]], size: int) -> list[FloatArray]:
    if not pictures:
        return []
    ready = AreaCrop.many([box for _, box in pictures], size, pictures[0][0].shape)
    return [crop.mean(rgb) for crop, (rgb, _) in zip(ready, pictures, strict=True)]


def square_box(centre_and_side: FloatArray) -> Box:
    x, y, side = map(float, centre_and_side)
    return x - side / 2, y - side / 2, side, side


def resample_crops(t_s: FloatArray, crops: FloatArray, clock_s: FloatArray) -> ByteArray:
    """Interpolate crops linearly from the times of the camera to a uniform clock."""
    after = np.clip(np.searchsorted(t_s, clock_s, side="right"), 1, len(t_s) - 1)
    span = t_s[after] - t_s[after - 1]
    weight = np.clip((clock_s - t_s[after - 1]) / span, 0, 1).astype(np.float32)
    out = np.empty((len(clock_s), *crops.shape[1:]), np.uint8)
    for k, (index, w) in enumerate(zip(after, weight, strict=True)):
        if w < 1e-4 or w > 1 - 1e-4:
            picture = crops[index if w > 0.5 else index - 1]
        else:
            picture = crops[index - 1] + w * (crops[index] - crops[index - 1])
        out[k] = np.rint(picture)
    return out
