"""What one face shows in one frame: the colour of its skin, and how far it has moved.

The skin's weights follow the face in every frame, and are found anew when the detector looked. At such a
change colours and place go on without a step (see `seam`): a step at every detection would be a false rhythm.
"""

from __future__ import annotations

import math

import numpy as np

from ..face.crop import CROP_PX, AreaCrop, Box, square
from ..face.registration import FaceRegistration
from ..face.skin_mask import skin_weights
from ..face.tracker import Track
from ..types import ByteArray, FloatArray
from .colour_continuity import ColourContinuity

COLUMNS = ("red", "green", "blue", "x", "y", "face_px", "clipped")

_MASK_EVERY = 4  # looks between two corrections of the skin weights of a face that keeps still
_MASK_MEMORY = 0.5  # how much of the old weights stays at each correction
_FULL = 248.0  # a cell this bright in any channel is clipped
_CLIP_EVERY = 8  # frames between two counts of clipped cells


class SkinSampler:
    """Measures one track in every frame; holds a follower and weights."""

    def __init__(self, track: Track, rgb: ByteArray, size: int = CROP_PX) -> None:
        self.size = size
        self._seam = ColourContinuity(track.seen_s)
        self._clipped = 0.0
        self._frames = self._looks = 0
        self._face: Box = track.box
        self._follower = FaceRegistration(square(track.box), size, rgb, track.seen_s)
        # (S,S), where the face was in the reference picture
        self._weights = skin_weights(self._follower.picture, self._follower.box, track.landmarks, track.box)
        self._place: FloatArray = np.zeros(2)  # of the face at the reference picture, in face widths

    @property
    def shift(self) -> float:
        """How far the face has moved since the crop was placed, in face widths."""
        return math.hypot(*self._widths())

    def look(self, track: Track, rgb: ByteArray) -> None:
        """Take over what the detector found in this frame."""
        moved = track.box != self._face
        self._looks += 1
        if not moved and self._looks % _MASK_EVERY:
            return
        follower = self._follower
        follower.see(rgb, track.seen_s)
        old = self._colour()
        if moved:
            self._place = self._place + self._widths()
            self._face = track.box
            follower.place(square(track.box), rgb)
        fresh = skin_weights(follower.picture, follower.box, track.landmarks, track.box)
        fresh = displaced(fresh, -follower.shift)
        self._weights = fresh if moved else _MASK_MEMORY * self._weights + (1 - _MASK_MEMORY) * fresh
        self._seam.join(old, self._colour())

    def jump(self, track: Track, rgb: ByteArray) -> None:
        """Start anew at the place where the face was found again."""
        self.__init__(track, rgb, self.size)  # type: ignore[misc]

    def measure(self, rgb: ByteArray, t_s: float) -> FloatArray:
        """One row of COLUMNS for this frame."""
        self._follower.see(rgb, t_s)
        weights = displaced(self._weights, self._follower.shift)
        picture = self._follower.picture
        if self._frames % _CLIP_EVERY == 0:
            self._clipped = float(((picture.max(-1) >= _FULL) * weights).sum())
        self._frames += 1
        x, y = self._place + self._widths()
        red, green, blue = self._seam.scale(_colour(picture, weights), t_s)
        return np.array([red, green, blue, x, y, self._face[2], self._clipped])

    @property
    def box(self) -> Box:
        """The square that goes with the face."""
        return self._follower.along

    @property
    def skin(self) -> FloatArray:
        """The weights (S,S) of the skin within that square, sum 1."""
        return displaced(self._weights, self._follower.off_centre)

    def cut(self, rgb: ByteArray) -> FloatArray:
        """What that square shows of the frame that was measured last, (S,S,3) f32."""
        return AreaCrop(self.box, self.size, rgb.shape).mean(rgb)

    def _colour(self) -> FloatArray:
        return _colour(self._follower.picture, displaced(self._weights, self._follower.shift))

    def _widths(self) -> FloatArray:
        """How far the face has moved since the crop was placed, in face widths (right, down)."""
        return self._follower.moved * (self._follower.cell_px / self._face[2])


def displaced(weights: FloatArray, cells: FloatArray) -> FloatArray:
    """Weights (S,S) of sum 1, moved by some cells (right, down).

    Between cells by quadratic splines, which widen them alike for every shift, none included: a mask that
    were sharp only where it meets the cells would see another colour whenever the face moves a little.
    """
    side, edge = len(weights), math.ceil(float(np.abs(cells).max())) + 1
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
