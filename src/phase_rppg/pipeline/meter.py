"""What one face shows in one frame: the colour of its skin, and how far it has moved.

A crop and its skin weights change only when the detector looked. At such a change colours and place go on
without a step (see `seam`): a step at every detection would be a false rhythm.
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
        self._weights = skin_weights(self.picture, self._crop.box, track.landmarks, track.box)  # (S,S)
        self._place: FloatArray = np.zeros(2)  # of the face at the reference picture, in face widths
        self._refer()

    @property
    def box(self) -> Box:
        """The square that is cut out."""
        return self._crop.box

    @property
    def skin(self) -> FloatArray:
        """The weights (S,S) of the skin within that square, sum 1; never changed in place."""
        return self._weights

    def look(self, track: Track, rgb: ByteArray) -> None:
        """Take over what the detector found in this frame."""
        moved = track.box != self._face
        self._looks += 1
        if not moved and self._looks % _MASK_EVERY:
            return
        picture = self._crop.mean(rgb)
        old = self._colour(picture)
        if moved:
            self._place = self._place + self._shift_px(picture) / self._face[2]
            self._face = track.box
            self._crop = AreaCrop(square(track.box), self.size, self._shape)
            picture = self.picture = self._crop.mean(rgb)
            self._refer()
        fresh = skin_weights(picture, self._crop.box, track.landmarks, track.box)
        self._weights = fresh if moved else _MASK_MEMORY * self._weights + (1 - _MASK_MEMORY) * fresh
        self._seam.join(old, self._colour(picture))

    def jump(self, track: Track, rgb: ByteArray) -> None:
        """Start anew at the place where the face was found again."""
        self.__init__(track, rgb, self.size)  # type: ignore[misc]

    def measure(self, rgb: ByteArray, t_s: float) -> FloatArray:
        """One row of COLUMNS for this frame."""
        picture = self.picture = self._crop.mean(rgb)
        if self._frames % _CLIP_EVERY == 0:
            self._clipped = float(((picture.max(-1) >= _FULL) * self._weights).sum())
        self._frames += 1
        shift = self._shift_px(picture) / self._face[2]
        self.shift = math.hypot(*shift)
        x, y = self._place + shift
        red, green, blue = self._seam.scale(self._colour(picture), t_s)
        return np.array([red, green, blue, x, y, self._face[2], self._clipped])

    def _colour(self, picture: FloatArray) -> FloatArray:
        return self._weights.reshape(-1) @ picture.reshape(-1, 3)  # (3,)

    def _refer(self) -> None:
        """Make the present picture the one against which motion is measured (Lucas and Kanade, one step)."""
        luma = _luma(self.picture)
        down, right = np.gradient(luma)
        basis = np.stack([-right, -down, luma, np.ones_like(luma)], -1).reshape(-1, 4)  # shift, gain, level
        reach = _face_window(self.size)
        gram = basis.T @ (basis * reach[:, None])
        gram[np.diag_indices(4)] += 1e-3 * np.trace(gram) / 4 * np.array([1e-3, 1e-3, 1e-6, 1e-6]) + 1e-6
        solve = np.linalg.solve(gram, (basis * reach[:, None]).T)[:2]  # (2,S·S)
        self._solve = solve.astype(np.float32)
        self._reference = luma.reshape(-1)

    def _shift_px(self, picture: FloatArray) -> FloatArray:
        """The face's shift (x, y) in pixels since the reference picture; true for small shifts."""
        cell_px = self._crop.box[2] / self.size
        cells = self._solve @ (_luma(picture).reshape(-1) - self._reference)
        return np.clip(cells, -3, 3) * cell_px


def _luma(picture: FloatArray) -> FloatArray:
    """The mean of the three colours: (S,S,3) → (S,S); as a product, because sums over three are slow."""
    return picture @ np.full(3, 1 / 3, np.float32)


def _face_window(size: int) -> FloatArray:
    """(S·S,) weights of an ellipse that a face fills in its crop."""
    at = (np.arange(size) + 0.5) / size - 0.5
    inside = np.hypot(at[None, :] / 0.30, at[:, None] / 0.42) <= 1
    return inside.reshape(-1).astype(np.float64)
