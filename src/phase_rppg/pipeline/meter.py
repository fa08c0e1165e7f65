"""What one face shows in one frame: the colour of its skin, and how far it has moved.

A crop changes only when the detector looked; in between, the skin's weights follow the face within it. At
such a change colours and place go on without a step (see `seam`): a step at every detection would be a false
rhythm.
"""

from __future__ import annotations

import math

import numpy as np

from ..face.crop import AreaCrop, Box, square
from ..face.skin import skin_weights
from ..face.track import Track
from ..types import ByteArray, FloatArray
from .seam import Seam

COLUMNS = ("red", "green", "blue", "x", "y", "face_px", "clipped")
CROP_PX = 36  # side of the picture from which the skin colour is taken

_MASK_EVERY = 4  # looks between two corrections of the skin weights of a face that keeps still
_MASK_MEMORY = 0.5  # how much of the old weights stays at each correction
_FULL = 248.0  # a cell this bright in any channel is clipped
_CLIP_EVERY = 8  # frames between two counts of clipped cells
_REACH = 3  # cells that a face may have moved since the crop was placed; farther is not followed


class Meter:
    """Measures one track in every frame; holds a crop, weights and a reference picture."""

    def __init__(self, track: Track, rgb: ByteArray, size: int = CROP_PX) -> None:
        self.size = size
        self._seam = Seam(track.seen_s)
        self.shift = 0.0  # how far the face has moved since the crop was placed, in face widths
        self._clipped = 0.0
        self._frames = self._looks = 0
        self._shape = rgb.shape
        self._face: Box = track.box
        self._crop = AreaCrop(square(track.box), size, rgb.shape)
        self.picture = self._crop.mean(rgb)  # (S,S,3) f32 of the last frame
        # (S,S), where the face was in the reference picture
        self._weights = skin_weights(self.picture, self._crop.box, track.landmarks, track.box)
        self._now = self._weights  # the same where the face is in the last frame
        self._place: FloatArray = np.zeros(2)  # of the face at the reference picture, in face widths
        self._refer()

    @property
    def box(self) -> Box:
        """The square that is cut out."""
        return self._crop.box

    @property
    def skin(self) -> FloatArray:
        """The weights (S,S) of the skin within that square, sum 1; never changed in place."""
        return self._now

    def look(self, track: Track, rgb: ByteArray) -> None:
        """Take over what the detector found in this frame."""
        moved = track.box != self._face
        self._looks += 1
        if not moved and self._looks % _MASK_EVERY:
            return
        picture = self._crop.mean(rgb)
        shift = self._shift(picture)
        old = _colour(picture, displaced(self._weights, shift))
        if moved:
            self._place = self._place + self._widths(shift)
            self._face = track.box
            self._crop = AreaCrop(square(track.box), self.size, self._shape)
            picture = self.picture = self._crop.mean(rgb)
            self._refer()
            shift = np.zeros(2)
        fresh = displaced(skin_weights(picture, self._crop.box, track.landmarks, track.box), -shift)
        self._weights = fresh if moved else _MASK_MEMORY * self._weights + (1 - _MASK_MEMORY) * fresh
        self._seam.join(old, _colour(picture, displaced(self._weights, shift)))

    def jump(self, track: Track, rgb: ByteArray) -> None:
        """Start anew at the place where the face was found again."""
        self.__init__(track, rgb, self.size)  # type: ignore[misc]

    def measure(self, rgb: ByteArray, t_s: float) -> FloatArray:
        """One row of COLUMNS for this frame."""
        picture = self.picture = self._crop.mean(rgb)
        shift = self._shift(picture)
        self._now = displaced(self._weights, shift)
        if self._frames % _CLIP_EVERY == 0:
            self._clipped = float(((picture.max(-1) >= _FULL) * self._now).sum())
        self._frames += 1
        self.shift = math.hypot(*self._widths(shift))
        x, y = self._place + self._widths(shift)
        red, green, blue = self._seam.scale(_colour(picture, self._now), t_s)
        return np.array([red, green, blue, x, y, self._face[2], self._clipped])

    def _refer(self) -> None:
        """Make the present picture the one against which motion is measured (Lucas and Kanade, one step)."""
        luma = _blurred(_luma(self.picture)[None])[0]
        down, right = np.gradient(luma)
        basis = np.stack([-right, -down, luma, np.ones_like(luma)], -1).reshape(-1, 4)  # shift, gain, level
        reach = _face_window(self.size)
        gram = basis.T @ (basis * reach[:, None])
        gram[np.diag_indices(4)] += 1e-3 * np.trace(gram) / 4 * np.array([1e-3, 1e-3, 1e-6, 1e-6]) + 1e-6
        solve = np.linalg.solve(gram, (basis * reach[:, None]).T)[:2]  # (2,S·S)
        self._solve = _blurred(solve.reshape(2, *luma.shape)).reshape(2, -1).astype(np.float32)  # of blurred
        self._reference = _luma(self.picture).reshape(-1)

    def _shift(self, picture: FloatArray) -> FloatArray:
        """How far the face has moved (right, down) since the reference picture, in cells."""
        cells = self._solve @ (_luma(picture).reshape(-1) - self._reference)
        return np.clip(cells, -_REACH, _REACH).astype(float)

    def _widths(self, cells: FloatArray) -> FloatArray:
        """A shift in face widths."""
        return cells * (self._crop.box[2] / self.size / self._face[2])


def displaced(weights: FloatArray, cells: FloatArray) -> FloatArray:
    """Weights (S,S) of sum 1, moved by some cells (right, down) of at most `_REACH`.

    Between cells by quadratic splines, which widen them alike for every shift, none included: a mask that
    were sharp only where it meets the cells would see another colour whenever the face moves a little.
    """
    side, edge = len(weights), _REACH + 1
    padded = np.zeros((side + 2 * edge, side + 2 * edge))
    padded[edge:-edge, edge:-edge] = weights
    (left, across), (top, down) = (_spline(edge - cells[axis]) for axis in (0, 1))
    rows = np.zeros((side, side + 2 * edge))
    for k, share in enumerate(down):
        rows += share * padded[top + k : top + k + side]
    moved = np.zeros((side, side))
    for k, share in enumerate(across):
        moved += share * rows[:, left + k : left + k + side]
    return moved / max(float(moved.sum()), 1e-9)


def _spline(at: float) -> tuple[int, tuple[float, float, float]]:
    """The first of the three cells that a value between cells is made of, and their shares."""
    nearest = round(at)
    f = at - nearest
    return nearest - 1, ((0.5 - f) ** 2 / 2, 0.75 - f**2, (0.5 + f) ** 2 / 2)


def _colour(picture: FloatArray, weights: FloatArray) -> FloatArray:
    return weights.reshape(-1) @ picture.reshape(-1, 3)  # (3,)


def _blurred(pictures: FloatArray) -> FloatArray:
    """Means over neighbouring cells of (N,S,S), the edges repeated: gradients of those reach farther."""
    for axis in (1, 2) * round(pictures.shape[-1] / 32):
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
