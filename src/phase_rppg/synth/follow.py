"""A crop that follows the face imperfectly, as a measuring pipeline does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..face.crop import CROP_PX, AreaCrop, Box
from ..face.registration import FaceRegistration
from ..types import ByteArray, FloatArray
from .figure import HEAD_DEPTH
from .render import Actor


@dataclass(frozen=True, slots=True)
class CropSpec:
    """How the face box is found and held."""

    scale: float = 1.25  # side of the square crop over the longer side of the face box
    update_hz: float = 4.0  # how often the detector looks
    jitter: float = 0.008  # standard deviation of its boxes, as a share of the box height
    dead_zone: float = 0.03  # the crop stays until the face has moved by this share of the box height
    smoothing: float = 0.5  # share of the new box in the held one when it moves
    offset: float = 0.02  # standard deviation of the box's lasting error
    lock: bool = False  # keep the first box for the whole clip
    along: bool = True  # go with the face in every frame between two looks


def true_boxes(actor: Actor) -> FloatArray:
    """(T,4) the box x, y, width, height in pixels that a perfect detector would give."""
    p, s = actor.poses, actor.px_per_h
    x0, y0, w, h = actor.figure.box_h
    zoom = np.exp(p.zoom)
    turn = 0.0 if actor.figure.flat else 0.6 * HEAD_DEPTH
    cx = actor.centre[0] + s * (
        p.x + p.camera_x + (x0 + w / 2) * zoom + turn * np.sin(p.yaw) - 0.4 * np.sin(p.roll)
    )
    cy = actor.centre[1] + s * (p.y + p.camera_y + (y0 + h / 2) * zoom + turn * np.sin(p.pitch))
    return np.stack([cx - s * w * zoom / 2, cy - s * h * zoom / 2, s * w * zoom, s * h * zoom], axis=1)


def followed(spec: CropSpec, boxes: FloatArray, t_s: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(T,3) centre x, y and side of the square that the detector's last look gives in each frame."""
    size = float(np.median(boxes[:, 3]))
    bias = rng.normal(0, spec.offset, 3) * size
    crops = np.empty((len(t_s), 3))
    held: FloatArray | None = None
    due_s = -np.inf
    for k, (x, y, w, h) in enumerate(boxes):
        if t_s[k] >= due_s and not (spec.lock and held is not None):
            noise = rng.normal(0, spec.jitter * size, 3)
            seen = np.array([x + w / 2, y + h / 2, spec.scale * max(w, h)]) + bias + noise
            if held is None:
                held = seen
            elif np.abs(seen - held).max() > spec.dead_zone * size:
                held = held + spec.smoothing * (seen - held)
            due_s = t_s[k] + 1 / spec.update_hz
        assert held is not None
        crops[k] = held
    return crops


def cut_out(
    spec: CropSpec, pictures: Iterable[ByteArray], where: FloatArray, t_s: FloatArray, size: int
) -> FloatArray:
    """(T,size,size,3) the face in each frame, 0–255, as the measuring pipeline cuts it."""
    crops = []
    follower: FaceRegistration | None = None
    crop: AreaCrop | None = None
    for rgb, centre_and_side, time_s in zip(pictures, where, t_s.tolist(), strict=True):
        box = box_of(centre_and_side)
        if spec.along:
            follower = follower or FaceRegistration(box, CROP_PX, rgb, time_s)
            box = follower.go(box, rgb, time_s)
        if crop is None or crop.box != box:
            crop = AreaCrop(box, size, rgb.shape)
        crops.append(crop.mean(rgb))
    return np.stack(crops)


def box_of(centre_and_side: FloatArray) -> Box:
    x, y, side = map(float, centre_and_side)
    return x - side / 2, y - side / 2, side, side


def on_clock(t_s: FloatArray, crops: FloatArray, clock_s: FloatArray) -> ByteArray:
    """Crops at the camera's times, brought to a uniform clock between neighbouring frames."""
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
