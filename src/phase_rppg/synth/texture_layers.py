"""A figure: the texture layers of a head, photo, mannequin or wall, in head coordinates.

Head coordinates (u, v) point right and down. The origin is the centre of the box of the face
detector, and the unit is the height of that box. The layers have `px_per_h` pixels per unit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..types import FloatArray

HALF_EXTENT = 0.95  # the texture covers −0.95 … 0.95 in both directions
HEAD_HALF_WIDTH, HEAD_HALF_HEIGHT, HEAD_DEPTH = 0.44, 0.64, 0.42  # ellipsoid of the head


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """The layers of one figure, in linear light; planes are (H,W), colours (3,H,W)."""

    px_per_h: float
    albedo: FloatArray  # (3,H,W)
    alpha: FloatArray  # (H,W) opacity
    perfusion: FloatArray  # (H,W) relative amplitude of the pulse: mean 1 over the facial skin, 0 elsewhere
    delay_s: FloatArray  # (H,W) pulse transit time, mean 0 over the facial skin
    normals: FloatArray  # (3,H,W) unit vectors, z towards the camera
    gloss: FloatArray  # (H,W) strength of specular reflection
    blink: FloatArray  # (3,H,W) change of the albedo when the eyes close
    mouth: FloatArray  # (3,H,W) change of the albedo when the mouth opens
    skin: FloatArray  # (H,W) 0–1
    box_h: FloatArray  # (4,) x, y, width, height of the detector's box, in head coordinates
    flat: bool = False  # a photo or a wall, without relief
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        return self.alpha.shape[0], self.alpha.shape[1]

    def part(self, top: int, bottom: int, left: int, right: int) -> Figure:
        """Return a figure with these rows and columns of every layer."""
        here = np.s_[..., top:bottom, left:right]
        every: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        planes = {name: x[here] for name, x in every.items() if isinstance(x, np.ndarray) and x.ndim > 1}
        return replace(self, **{**every, **planes})


def grid(px_per_h: float) -> tuple[FloatArray, FloatArray]:
    """Return the head coordinates of the texture pixels: u (1,W) and v (H,1)."""
    side = texture_side(px_per_h)
    axis = ((np.arange(side) + 0.5) / px_per_h - side / (2 * px_per_h)).astype(np.float32)
    return axis[None, :], axis[:, None]


def texture_side(px_per_h: float) -> int:
    return round(2 * HALF_EXTENT * px_per_h)


def depth(u: FloatArray, v: FloatArray) -> FloatArray:
    """Return the height of the head surface towards the camera, in box heights."""
    inside = 1 - (u / HEAD_HALF_WIDTH) ** 2 - ((v + 0.05) / HEAD_HALF_HEIGHT) ** 2
    nose = 0.09 * np.exp(-((u / 0.05) ** 2) - ((v - 0.08) / 0.08) ** 2)
    surface: FloatArray = HEAD_DEPTH * np.sqrt(np.maximum(inside, 0)) + nose
    return surface


def normals_of(height: FloatArray, px_per_h: float) -> FloatArray:
    """Return the unit normals (3,H,W) of a height map in box heights."""
    dv, du = np.gradient(height, 1 / px_per_h)
    length = np.sqrt(du * du + dv * dv + 1)
    return np.stack([-du / length, -dv / length, 1 / length]).astype(np.float32)


def normalise_perfusion(weight: FloatArray, delay_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Scale the perfusion to mean 1 and shift the delay to mean 0, both over the facial skin."""
    u, v = grid(weight.shape[0] / (2 * HALF_EXTENT))
    face = weight * ((u / 0.36) ** 2 + (v / 0.5) ** 2 < 1)
    total = float(face.sum())
    if total <= 0:
        return weight, delay_s
    mean = float((face * weight).sum()) / total
    shift_s = float((face * delay_s).sum()) / total
    return (weight / mean).astype(np.float32), (delay_s - shift_s).astype(np.float32)
