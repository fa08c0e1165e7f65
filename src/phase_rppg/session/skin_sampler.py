"""Sample the skin colour and the position of one face in every frame.

The skin mask follows the face in every frame and is computed again after a detection. Colour and position
stay continuous at such a change (see `colour_continuity`), because periodic steps resemble a pulse.
"""

from __future__ import annotations

import math

import numpy as np

from ..face.crop import CROP_PX, AreaCrop, Box, square
from ..face.registration import FaceRegistration
from ..face.skin_mask import skin_weights
from ..face.tracker import Track
from ..picture import Picture
from ..types import FloatArray
from .colour_continuity import ColourContinuity

COLUMNS = ("red", "green", "blue", "x", "y", "face_px", "clipped")

_MASK_INTERVAL = 4  # detections between two updates of the mask of a face that does not move
_MASK_SMOOTHING = 0.5  # weight of the old mask in an update
_CLIPPED_LEVEL = 248.0  # a cell that is this bright in any channel is overexposed
_CLIPPED_INTERVAL = 8  # frames between two counts of overexposed cells


class SkinSampler:
    """Samples one track in every frame; its state is the registration of the face and the skin mask."""

    def __init__(self, track: Track, frame: Picture, size: int = CROP_PX) -> None:
        self.size = size
        self._continuity = ColourContinuity(track.last_seen_s)
        self._clipped = 0.0
        self._frames = self._detections = 0
        self._face: Box = track.box
        self._registration = FaceRegistration(square(track.box), size, frame, track.last_seen_s)
        reference = self._registration
        self._mask = skin_weights(reference.picture, reference.box, track.landmarks, track.box)  # (S,S)
        # Displacement before the current reference picture, in face widths.
        self._position: FloatArray = np.zeros(2)

    @property
    def shift(self) -> float:
        """Distance that the face has moved since the current reference picture, in face widths."""
        return math.hypot(*self._motion())

    def shows_another_face(self, frame: Picture, t_s: float) -> bool:
        """Return whether this frame shows something else where the face was; the frame is sampled later."""
        self._registration.update(frame, t_s)
        return self._registration.shows_another_face

    def update_mask(self, track: Track, frame: Picture) -> None:
        """Update box and mask after a detection in this frame."""
        moved = track.box != self._face
        self._detections += 1
        if not moved and self._detections % _MASK_INTERVAL:
            return
        registration = self._registration
        registration.update(frame, track.last_seen_s)
        old = self._colour()
        if moved:
            self._position = self._position + self._motion()
            self._face = track.box
            registration.set_reference(square(track.box), frame)
        fresh = skin_weights(registration.picture, registration.box, track.landmarks, track.box)
        fresh = displaced(fresh, -registration.shift)
        self._mask = fresh if moved else _MASK_SMOOTHING * self._mask + (1 - _MASK_SMOOTHING) * fresh
        self._continuity.join(old, self._colour())

    def sample(self, frame: Picture, t_s: float) -> FloatArray:
        """Return the row (7,) of COLUMNS for this frame."""
        self._registration.update(frame, t_s)
        weights = displaced(self._mask, self._registration.shift)
        picture = self._registration.picture
        if self._frames % _CLIPPED_INTERVAL == 0:
            self._clipped = float(((picture.max(-1) >= _CLIPPED_LEVEL) * weights).sum())
        self._frames += 1
        row = np.empty(len(COLUMNS))
        row[:3] = self._continuity.scale(_colour(picture, weights), t_s)
        row[3:5] = self._position + self._motion()
        row[5:] = self._face[2], self._clipped
        return row

    @property
    def box(self) -> Box:
        """The square that follows the face."""
        return self._registration.following_box

    @property
    def mask(self) -> FloatArray:
        """The skin mask (S,S) within `box`; its sum is 1."""
        return displaced(self._mask, self._registration.detection_offset)

    def crop(self, frame: Picture) -> FloatArray:
        """Return the crop (S,S,3) f32 of `box`; call it with the frame that was sampled last."""
        return AreaCrop(self.box, self.size, frame.shape).mean(frame)

    def _colour(self) -> FloatArray:
        return _colour(self._registration.picture, displaced(self._mask, self._registration.shift))

    def _motion(self) -> FloatArray:
        """Motion (2,) of the face since the current reference picture, right and down, in face widths."""
        return self._registration.displacement * (self._registration.cell_px / self._face[2])


def displaced(weights: FloatArray, cells: FloatArray) -> FloatArray:
    """Return weights (S,S) moved by `cells` (right, down), with sum 1.

    A quadratic B-spline shifts the weights and blurs them equally for every shift, including zero. A blur
    that depends on the shift would change the mean colour whenever the face moves.
    """
    right, down = cells.tolist()
    side, edge = len(weights), math.ceil(max(abs(right), abs(down))) + 1
    wide = side + 2 * edge
    padded = np.zeros((wide + 1, wide))
    padded[edge : edge + side, edge : edge + side] = weights
    (left, across), (top, below) = _bspline_weights(edge - right), _bspline_weights(edge - down)
    # Three rows, then three columns, are three views of the same memory: two products do all of the work.
    item, count = padded.itemsize, side * wide
    neighbours = np.ndarray((3, count + wide), float, padded, top * wide * item, (wide * item, item))
    rows = below @ neighbours[:, : count + 2]  # (side·wide+2,)
    neighbours = np.ndarray((3, count), float, rows, 0, (item, item))
    moved = (across @ neighbours).reshape(side, wide)[:, left : left + side]
    return moved / max(float(moved.sum()), 1e-9)


def _bspline_weights(at: float) -> tuple[int, FloatArray]:
    """Return the first of three cells and their B-spline weights (3,) for a position between cells."""
    nearest = round(at)
    f = at - nearest
    return nearest - 1, np.array(((0.5 - f) ** 2 / 2, 0.75 - f**2, (0.5 + f) ** 2 / 2))


def _colour(picture: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted mean colour (3,)."""
    return weights.reshape(-1) @ picture.reshape(-1, 3)  # (3,)
