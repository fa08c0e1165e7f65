"""Warp the texture of a head to its pose: map frame pixels to texture coordinates, and interpolate there.

The map is computed on a coarse grid for all frames at once. Two small matrix products interpolate it over the
frame. The texture is interpolated bilinearly, plane by plane, with `take`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..types import FloatArray
from .motion import Poses
from .random_fields import interpolation
from .texture_layers import HALF_EXTENT, depth

GRID_STEP_PX = 8


def texture_grid(
    poses: Poses, shape: tuple[int, int], centre: tuple[float, float], px_per_h: float, flat: bool
) -> FloatArray:
    """Return texture coordinates (v, u) in head units on a coarse grid over a frame, (T,2,gh,gw).

    `centre` is the resting position (x, y) of the head; a box height has `px_per_h` pixels of the frame.
    """
    rows, columns = (max(2, side // GRID_STEP_PX + 1) for side in shape)

    def per_frame(values: FloatArray) -> FloatArray:
        return values.astype(np.float32)[:, None, None]

    across = np.linspace(0, shape[1] - 1, columns, dtype=np.float32)[None, None, :]
    down = np.linspace(0, shape[0] - 1, rows, dtype=np.float32)[None, :, None]
    x: FloatArray = (across - np.float32(centre[0])) / np.float32(px_per_h) - per_frame(poses.camera_x)
    y: FloatArray = (down - np.float32(centre[1])) / np.float32(px_per_h) - per_frame(poses.camera_y)
    if poses.skew_x.any() or poses.skew_y.any():  # each row is read at another time
        below = (down - np.float32(centre[1])) / np.float32(px_per_h)
        x, y = x - per_frame(poses.skew_x) * below, y - per_frame(poses.skew_y) * below
    # The head turns about the neck, which does not move.
    hx, hy = x - per_frame(poses.x), y - per_frame(poses.y)
    zoom = np.exp(-per_frame(poses.zoom))
    cos, sin = np.cos(per_frame(poses.roll)) * zoom, np.sin(per_frame(poses.roll)) * zoom
    pivot = np.float32(0.4)
    u, v = cos * hx + sin * (hy - pivot), cos * (hy - pivot) - sin * hx + pivot
    if flat:
        return np.stack(
            np.broadcast_arrays(v / np.cos(per_frame(poses.pitch)), u / np.cos(per_frame(poses.yaw))), axis=1
        )
    z = depth(u, v)
    u = (u - z * np.sin(per_frame(poses.yaw))) / np.cos(per_frame(poses.yaw))
    v = (v - z * np.sin(per_frame(poses.pitch))) / np.cos(per_frame(poses.pitch))
    if poses.jaw.any():
        falloff = _smoothstep((v - 0.2) / 0.1) * _smoothstep((0.85 - v) / 0.3) * np.exp(-((u / 0.33) ** 4))
        v = v - 0.05 * per_frame(poses.jaw) * falloff
    if poses.smile.any():
        corners = np.exp(-(((np.abs(u) - 0.14) / 0.1) ** 2) - ((v - 0.22) / 0.09) ** 2)
        u = u * (1 - 0.14 * per_frame(poses.smile) * corners)
        v = v + 0.015 * per_frame(poses.smile) * corners
    if poses.brow.any():
        v = v + 0.025 * per_frame(poses.brow) * np.exp(-(((v + 0.2) / 0.09) ** 2) - (u / 0.3) ** 4)
    body = _smoothstep((y - 0.42) / 0.4)
    u = u + body * (x - 0.35 * per_frame(poses.x) - u)
    v = v + body * (y - 0.25 * per_frame(poses.y) - v)
    return np.stack(np.broadcast_arrays(v, u), axis=1).astype(np.float32)


class Sampler:
    """Bilinear interpolation in the planes of one texture, for frames of one shape.

    `part` (top, bottom, left, right) is the part of the texture that the planes hold; see `bounds`.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        texture_shape: tuple[int, int],
        texture_px_per_h: float,
        part: tuple[int, int, int, int] | None = None,
    ) -> None:
        self.texture_shape = texture_shape
        self.part = part or (0, texture_shape[0], 0, texture_shape[1])
        self.scale = np.float32(texture_px_per_h)
        self.offset = np.float32(HALF_EXTENT * texture_px_per_h - 0.5)
        rows, columns = (max(2, side // GRID_STEP_PX + 1) for side in shape)
        self.down, self.across = interpolation(shape[0], rows), interpolation(shape[1], columns).T
        self.scratch = np.empty((3, *shape), np.float32)

    def sample(self, planes: Iterable[FloatArray], grid: FloatArray) -> FloatArray:
        """Interpolate C texture planes (Ht·Wt,) at the grid (2,gh,gw) of one frame, and return (C,H,W)."""
        planes = list(planes)
        v, u = (self.down @ nodes @ self.across for nodes in self._nodes(grid))
        top, _, left, right = self.part
        width = right - left
        b, c, d = self.scratch
        row, column = np.floor(v, out=b), np.floor(u, out=c)
        v -= row
        u -= column
        # Integers below 2²⁴ are exact in float32, and float32 is faster than integer arithmetic here.
        row -= np.float32(top)
        row *= np.float32(width)
        row += column
        row -= np.float32(left)
        corner = row.astype(np.intp)
        picture = np.empty((len(planes), *self.shape), np.float32)
        for plane, out in zip(planes, picture, strict=True):
            # No index is outside, so the mode does not matter; "wrap" is faster than "clip".
            plane.take(corner, out=out, mode="wrap")
            plane[1:].take(corner, out=b, mode="wrap")
            plane[width:].take(corner, out=c, mode="wrap")
            plane[width + 1 :].take(corner, out=d, mode="wrap")
            b -= out
            b *= u
            out += b
            d -= c
            d *= u
            c += d
            c -= out
            c *= v
            out += c
        return picture

    def bounds(self, grids: Iterable[FloatArray], rim_px: int) -> tuple[int, int, int, int]:
        """Return top, bottom, left and right of the texture that some grids (T,2,gh,gw) use, with a rim."""
        rim_px += 1  # for rounding between the nodes
        spans = np.array([(grid.min((0, 2, 3)), grid.max((0, 2, 3))) for grid in grids])  # (blocks,2,2)
        (top, left), (bottom, right) = (
            self.scale * np.stack([spans[:, 0].min(0), spans[:, 1].max(0)]) + self.offset
        )
        height, width = self.texture_shape
        # At least two pixels: the grid of a head outside the picture is clipped to the edge of its texture.
        return (
            int(np.clip(top - rim_px, 0, height - 2)), int(np.clip(bottom + rim_px + 2, 2, height)),
            int(np.clip(left - rim_px, 0, width - 2)), int(np.clip(right + rim_px + 2, 2, width)),
        )  # fmt: skip

    def _nodes(self, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the grid in texture pixels, rows and columns, clipped to the texture.

        Values between clipped nodes are inside the texture as well.
        """
        height, width = self.texture_shape
        return (
            np.clip(self.scale * grid[0] + self.offset, 0, height - 1.001),
            np.clip(self.scale * grid[1] + self.offset, 0, width - 1.001),
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.down.shape[0], self.across.shape[1]


def _smoothstep(x: FloatArray) -> FloatArray:
    y = np.clip(x, 0, 1)
    return y * y * (3 - 2 * y)
