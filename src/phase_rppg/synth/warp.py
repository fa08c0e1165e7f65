"""Move a head: where in the texture each pixel of a frame looks, and looking there fast.

The map is computed on a coarse grid for all frames at once and stretched over the frame by two small matrix
products; the look-up is bilinear, plane by plane, with `take`.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..types import FloatArray
from .fields import interpolation
from .figure import HALF_EXTENT, depth
from .motion import Poses

GRID_STEP_PX = 8


def texture_grid(
    poses: Poses, shape: tuple[int, int], centre: tuple[float, float], px_per_h: float, flat: bool
) -> FloatArray:
    """(T,2,gh,gw) texture coordinates (v, u) in head units on a coarse grid over a frame of `shape`.

    `centre` is where (x, y) the head rests in the frame; `px_per_h` how many frame pixels a box height has.
    """
    rows, columns = (max(2, side // GRID_STEP_PX + 1) for side in shape)

    def track(values: FloatArray) -> FloatArray:
        return values.astype(np.float32)[:, None, None]

    across = np.linspace(0, shape[1] - 1, columns, dtype=np.float32)[None, None, :]
    down = np.linspace(0, shape[0] - 1, rows, dtype=np.float32)[None, :, None]
    x: FloatArray = (across - np.float32(centre[0])) / np.float32(px_per_h) - track(poses.camera_x)
    y: FloatArray = (down - np.float32(centre[1])) / np.float32(px_per_h) - track(poses.camera_y)
    # The head turns about the neck, which stays behind.
    hx, hy = x - track(poses.x), y - track(poses.y)
    zoom = np.exp(-track(poses.zoom))
    cos, sin = np.cos(track(poses.roll)) * zoom, np.sin(track(poses.roll)) * zoom
    pivot = np.float32(0.4)
    u, v = cos * hx + sin * (hy - pivot), cos * (hy - pivot) - sin * hx + pivot
    if flat:
        return np.stack(
            np.broadcast_arrays(v / np.cos(track(poses.pitch)), u / np.cos(track(poses.yaw))), axis=1
        )
    z = depth(u, v)
    u = (u - z * np.sin(track(poses.yaw))) / np.cos(track(poses.yaw))
    v = (v - z * np.sin(track(poses.pitch))) / np.cos(track(poses.pitch))
    if poses.jaw.any():
        fall = _step((v - 0.2) / 0.1) * _step((0.85 - v) / 0.3) * np.exp(-((u / 0.33) ** 4))
        v = v - 0.05 * track(poses.jaw) * fall
    if poses.smile.any():
        corners = np.exp(-(((np.abs(u) - 0.14) / 0.1) ** 2) - ((v - 0.22) / 0.09) ** 2)
        u = u * (1 - 0.14 * track(poses.smile) * corners)
        v = v + 0.015 * track(poses.smile) * corners
    body = _step((y - 0.42) / 0.4)
    u = u + body * (x - 0.35 * track(poses.x) - u)
    v = v + body * (y - 0.25 * track(poses.y) - v)
    return np.stack(np.broadcast_arrays(v, u), axis=1).astype(np.float32)


class Sampler:
    """Bilinear look-up into planes of one texture for frames of one shape.

    `part` (top, bottom, left, right) says which part of the texture the planes hold; see `reach`.
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

    def look(self, planes: Iterable[FloatArray], grid: FloatArray) -> FloatArray:
        """(C,H,W) of the frame from C texture planes (Ht·Wt,) and one frame's grid (2,gh,gw)."""
        planes = list(planes)
        v, u = (self.down @ nodes @ self.across for nodes in self._nodes(grid))
        top, _, left, right = self.part
        width = right - left
        b, c, d = self.scratch
        row, column = np.floor(v, out=b), np.floor(u, out=c)
        v -= row
        u -= column
        # Whole numbers far below 2²⁴ are exact in f32, and cheaper than integers.
        row -= np.float32(top)
        row *= np.float32(width)
        row += column
        row -= np.float32(left)
        corner = row.astype(np.intp)
        picture = np.empty((len(planes), *self.shape), np.float32)
        for plane, out in zip(planes, picture, strict=True):
            plane.take(corner, out=out, mode="clip")
            plane[1:].take(corner, out=b, mode="clip")
            plane[width:].take(corner, out=c, mode="clip")
            plane[width + 1 :].take(corner, out=d, mode="clip")
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

    def reach(self, grids: Iterable[FloatArray], rim_px: int) -> tuple[int, int, int, int]:
        """Top, bottom, left and right of what some frames' grids (T,2,gh,gw) look at, and a rim around it."""
        rim_px += 1  # for rounding between the nodes
        spans = np.array([(grid.min((0, 2, 3)), grid.max((0, 2, 3))) for grid in grids])  # (blocks,2,2)
        (top, left), (bottom, right) = (
            self.scale * np.stack([spans[:, 0].min(0), spans[:, 1].max(0)]) + self.offset
        )
        height, width = self.texture_shape
        # Two pixels at least: a head that has left the picture looks at the edge of its texture.
        return (
            int(np.clip(top - rim_px, 0, height - 2)), int(np.clip(bottom + rim_px + 2, 2, height)),
            int(np.clip(left - rim_px, 0, width - 2)), int(np.clip(right + rim_px + 2, 2, width)),
        )  # fmt: skip

    def _nodes(self, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The grid in pixels of the texture, rows and columns, kept inside it.

        That the nodes are inside is enough: what lies between them is too.
        """
        height, width = self.texture_shape
        return (
            np.clip(self.scale * grid[0] + self.offset, 0, height - 1.001),
            np.clip(self.scale * grid[1] + self.offset, 0, width - 1.001),
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self.down.shape[0], self.across.shape[1]


def _step(x: FloatArray) -> FloatArray:
    y = np.clip(x, 0, 1)
    return y * y * (3 - 2 * y)
