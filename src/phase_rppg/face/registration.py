"""A crop that goes with its face in every frame.

The detector looks a few times a second and its boxes jitter. How far the face has moved since the last look
is measured in every frame, one step of Lucas and Kanade (1981) from where it is expected, and a square goes
along with it. Networks see that square: what moves in it is the face's own play, not its place.
"""

from __future__ import annotations

import math

import numpy as np

from ..types import ByteArray, FloatArray
from .crop import AreaCrop, Box

SETTLE_S = 1.5  # a new box of the detector is taken over in this time: its jitter becomes a slow drift
_NEAR = 1.0  # cells: a face that is expected this near to its place in the crop needs no other crop
_FAR = 3  # times the reach of one step: a face that seems to be farther from its box than this is lost
_SHORTEST_S = 1 / 45  # a pace over less time than this is mostly noise of motion and timestamps
_LONGEST_S = 1 / 15  # nobody keeps his pace for longer
_BLUR_CELLS = 32  # a picture of so many cells is blurred once before its gradients are taken


class FaceRegistration:
    """The crop of one face: a reference picture, how far the face moved since, and a square that goes along.

    `see` every frame, and `place` the crop anew when the detector found the face elsewhere.
    """

    picture: FloatArray  # (S,S,3) f32 of the frame that was seen last
    shift: FloatArray  # of the face in `picture` against the reference: right and down, in cells
    _ahead: FloatArray  # how far the crop went along since the box was placed, in cells
    _solve: FloatArray  # (2,S·S) shift from luma
    _reference: FloatArray  # (S·S,) luma

    def __init__(self, box: Box, size: int, rgb: ByteArray, t_s: float) -> None:
        self.size = size
        self._path: FloatArray = np.zeros(2)  # of the face up to the reference picture, in pixels
        self._goal = self._rest = _centre_and_side(box)  # the square of a face that had not moved
        self._pace: FloatArray = np.zeros(2)  # of the face, in pixels per second
        self._seen_s = t_s
        self._refer(box, rgb)

    @property
    def box(self) -> Box:
        """The square that `picture` shows."""
        return self._crop.box

    @property
    def cell_px(self) -> float:
        """Width of a cell of the pictures in pixels of the video."""
        return self._crop.box[2] / self.size

    @property
    def moved(self) -> FloatArray:
        """How far the face has moved since the crop was placed: right and down, in cells."""
        return self._ahead + self.shift

    @property
    def off_centre(self) -> FloatArray:
        """How far the middle of the detector's box lies from that of the square that goes along, in cells."""
        return (self._goal - self._rest)[:2] / self.cell_px

    def see(self, rgb: ByteArray, t_s: float) -> None:
        """Look at the next frame where the face is expected, and find out where it is."""
        past_s, self._seen_s = t_s - self._seen_s, t_s
        if past_s <= 0:
            return  # this frame was seen
        self._rest = self._rest - math.expm1(-past_s / SETTLE_S) * (self._goal - self._rest)
        before = self.moved
        farthest = reach(self.size)
        ahead = self._pace * min(past_s, _LONGEST_S) / self.cell_px
        expected = before + np.clip(ahead, -farthest, farthest)
        if np.abs(expected - self._ahead).max() > _NEAR:
            self._ahead = expected
            x, y, side, _ = self._placed
            right, down = self._ahead * self.cell_px
            self._crop = AreaCrop((x + float(right), y + float(down), side, side), self.size, rgb.shape)
        self.picture = self._crop.mean(rgb)
        cells = self._solve @ (_luma(self.picture).reshape(-1) - self._reference)
        self.shift = np.clip(cells, -farthest, farthest).astype(float)
        self.shift = np.clip(self.moved, -_FAR * farthest, _FAR * farthest) - self._ahead
        self._pace = (self.moved - before) * self.cell_px / max(past_s, _SHORTEST_S)

    def place(self, box: Box, rgb: ByteArray) -> None:
        """Take the detector's new box in this frame, which was seen before."""
        self._path = self._path + self.moved * self.cell_px
        self._goal = _centre_and_side(box) - np.append(self._path, 0.0)
        self._refer(box, rgb)

    def go(self, box: Box, rgb: ByteArray, t_s: float) -> Box:
        """See the next frame, in which the detector's box is this one; gives the square that goes along."""
        self.see(rgb, t_s)
        if box != self._placed:
            self.place(box, rgb)
        return self.along

    @property
    def along(self) -> Box:
        """The square that goes with the face, in the frame that was seen last."""
        x, y = self._rest[:2] + self._path + self.moved * self.cell_px
        side = float(self._rest[2])
        return float(x) - side / 2, float(y) - side / 2, side, side

    def _refer(self, box: Box, rgb: ByteArray) -> None:
        """Make the picture of this box the one against which motion is measured."""
        self._placed = box
        self._crop = AreaCrop(box, self.size, rgb.shape)
        self.picture = self._crop.mean(rgb)
        self.shift, self._ahead = np.zeros(2), np.zeros(2)
        luma = _blurred(_luma(self.picture)[None])[0]
        down, right = np.gradient(luma)
        basis = np.stack([-right, -down, luma, np.ones_like(luma)], -1).reshape(-1, 4)  # shift, gain, level
        inside = _face_window(self.size)
        gram = basis.T @ (basis * inside[:, None])
        gram[np.diag_indices(4)] += 1e-3 * np.trace(gram) / 4 * np.array([1e-3, 1e-3, 1e-6, 1e-6]) + 1e-6
        solve = np.linalg.solve(gram, (basis * inside[:, None]).T)[:2]  # (2,S·S)
        self._solve = _blurred(solve.reshape(2, *luma.shape)).reshape(2, -1).astype(np.float32)  # of blurred
        self._reference = _luma(self.picture).reshape(-1)


def reach(size: int) -> int:
    """How many cells beside its expected place a face may be; farther is not followed in one frame."""
    return max(1, round(size / 12))


def _centre_and_side(box: Box) -> FloatArray:
    x, y, side, _ = box
    return np.array([x + side / 2, y + side / 2, side])


def _blurred(pictures: FloatArray) -> FloatArray:
    """Means over neighbouring cells of (N,S,S), the edges repeated: gradients of those reach farther."""
    for axis in (1, 2) * round(pictures.shape[-1] / _BLUR_CELLS):
        width = [(0, 0)] * 3
        width[axis] = (1, 1)
        p = np.moveaxis(np.pad(pictures, width, mode="edge"), axis, 0)
        pictures = np.moveaxis((p[:-2] + p[1:-1] + p[2:]) / 3, 0, axis)
    return pictures


def _luma(picture: FloatArray) -> FloatArray:
    """The mean of the three colours: (S,S,3) → (S,S); as a product, because sums over three are slow."""
    return picture @ np.full(3, 1 / 3, np.float32)


def _face_window(size: int) -> FloatArray:
    """(S·S,) weights of an ellipse that a face fills in its crop."""
    at = (np.arange(size) + 0.5) / size - 0.5
    inside = np.hypot(at[None, :] / 0.30, at[:, None] / 0.42) <= 1
    return inside.reshape(-1).astype(np.float64)
