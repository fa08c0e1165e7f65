"""Per-frame following: a crop moves with its face between two detections.

The detector runs a few times per second, and its boxes jitter. In every frame, one step of Lucas and Kanade
(1981) measures how far the face has moved since the reference picture, and a square moves with the face.
Networks receive this square, so that it shows facial expressions but not the motion of the head.
"""

from __future__ import annotations

import math

import numpy as np

from ..picture import Picture
from ..types import FloatArray
from .crop import AreaCrop, Box
from .face_change import FaceChange

SETTLE_S = 1.5  # time constant of the following square towards a new detector box; smooths jitter
_RECROP_CELLS = 1.0  # the crop moves when the predicted face is farther than this from its position in it
_MAX_STEPS = 3  # limit of the displacement from the reference, in units of `max_step_cells`
_MIN_VELOCITY_S = 1 / 45  # shorter intervals give velocities that are mostly noise
_MAX_PREDICTION_S = 1 / 15  # the velocity is not extrapolated further than this
_CELLS_PER_BLUR = 32  # the gradient is computed after size / 32 blur passes
_THIRDS: FloatArray = np.full(3, 1 / 3, np.float32)


class FaceRegistration:
    """The motion of one face since a reference picture, and a square that follows it.

    Call `update` with every frame, and `set_reference` when the detector box of the face changes. `follow`
    does both.
    """

    picture: FloatArray  # (S,S,3) f32, crop of the latest frame
    shift: FloatArray  # of the face in `picture` relative to the reference: right and down, in cells
    _crop_displacement: FloatArray  # of the crop relative to the reference box, in cells
    _solve: FloatArray  # (2,S·S) maps a change of luma to a shift
    _reference_luma: FloatArray  # (S·S,)

    def __init__(self, box: Box, size: int, frame: Picture, t_s: float) -> None:
        self.size = size
        self._path_px: FloatArray = np.zeros(2)  # motion of the face before the reference picture
        # Centre and side of the square, without the motion of the face: latest detection and smoothed value.
        self._target = self._smoothed = _centre_and_side(box)
        self._velocity_px_s: FloatArray = np.zeros(2)
        self._last_s = t_s
        self._make_reference(box, frame)
        self._change = FaceChange(self.picture)

    @property
    def shows_another_face(self) -> bool:
        """Return whether the latest frame shows something else where the face was."""
        return self._change.changed

    @property
    def box(self) -> Box:
        """Return the square that `picture` shows."""
        return self._crop.box

    @property
    def cell_px(self) -> float:
        """Return the width of a cell of `picture`, in pixels of the video."""
        return self._crop.box[2] / self.size

    @property
    def displacement(self) -> FloatArray:
        """Return how far the face has moved since the reference: right and down, in cells."""
        return self._crop_displacement + self.shift

    @property
    def detection_offset(self) -> FloatArray:
        """Return the centre of the detector box relative to that of `following_box`, in cells."""
        return (self._target - self._smoothed)[:2] / self.cell_px

    def update(self, frame: Picture, t_s: float) -> None:
        """Measure the shift of the face in the next frame, starting from its predicted position.

        A frame that is not later than the previous one is ignored.
        """
        elapsed_s, self._last_s = t_s - self._last_s, t_s
        if elapsed_s <= 0:
            return
        self._smoothed = self._smoothed - math.expm1(-elapsed_s / SETTLE_S) * (self._target - self._smoothed)
        before = self.displacement
        max_step = max_step_cells(self.size)
        ahead_s = min(elapsed_s, _MAX_PREDICTION_S) / self.cell_px
        ahead = [_limited(velocity * ahead_s, max_step) for velocity in self._velocity_px_s.tolist()]
        self._move_crop(before + ahead, frame)
        self.picture = self._crop.mean(frame)
        self._change.update(self.picture, elapsed_s)
        cells = self._solve @ (_intensity(self.picture).reshape(-1) - self._reference_luma)
        crop = self._crop_displacement.tolist()
        self.shift = np.array(
            [
                _limited(at + _limited(cell, max_step), _MAX_STEPS * max_step) - at
                for at, cell in zip(crop, cells.tolist(), strict=True)
            ]
        )
        self._velocity_px_s = (self.displacement - before) * (self.cell_px / max(elapsed_s, _MIN_VELOCITY_S))

    def _move_crop(self, expected: FloatArray, frame: Picture) -> None:
        """Move the crop to the expected displacement of the face, if it is far from there."""
        right, down = (expected - self._crop_displacement).tolist()
        if max(abs(right), abs(down)) > _RECROP_CELLS:
            self._crop_displacement = expected
            x, y, side, _ = self._reference_box
            right, down = (expected * self.cell_px).tolist()
            self._crop = AreaCrop((x + right, y + down, side, side), self.size, frame.shape)

    def set_reference(self, box: Box, frame: Picture) -> None:
        """Use a new detector box in the latest frame as the reference. Call `update` with the frame first."""
        self._path_px = self._path_px + self.displacement * self.cell_px
        self._target = _centre_and_side(box) - np.append(self._path_px, 0.0)
        self._make_reference(box, frame)
        self._change.set_region(self.picture)

    def follow(self, box: Box, frame: Picture, t_s: float) -> Box:
        """Process the next frame, whose detector box is `box`, and return `following_box`."""
        self.update(frame, t_s)
        if box != self._reference_box:
            self.set_reference(box, frame)
        return self.following_box

    @property
    def following_box(self) -> Box:
        """Return the square that moves with the face, in the latest frame."""
        x, y = self._smoothed[:2] + self._path_px + self.displacement * self.cell_px
        side = float(self._smoothed[2])
        return float(x) - side / 2, float(y) - side / 2, side, side

    def _make_reference(self, box: Box, frame: Picture) -> None:
        """Measure motion relative to the picture of this box from now on."""
        self._reference_box = box
        self._crop = AreaCrop(box, self.size, frame.shape)
        self.picture = self._crop.mean(frame)
        self.shift, self._crop_displacement = np.zeros(2), np.zeros(2)
        luma = _blur(_intensity(self.picture)[None])[0]
        down, right = np.gradient(luma)
        basis = np.stack([-right, -down, luma, np.ones_like(luma)], -1).reshape(-1, 4)  # shift, gain, offset
        window = _face_window(self.size)
        gram = basis.T @ (basis * window[:, None])
        gram[np.diag_indices(4)] += 1e-3 * np.trace(gram) / 4 * np.array([1e-3, 1e-3, 1e-6, 1e-6]) + 1e-6
        solve = np.linalg.solve(gram, (basis * window[:, None]).T)[:2]  # (2,S·S)
        # Blurring the solution is the same as blurring every later picture, because the blur is symmetric.
        self._solve = _blur(solve.reshape(2, *luma.shape)).reshape(2, -1).astype(np.float32)
        self._reference_luma = _intensity(self.picture).reshape(-1)


def _limited(value: float, limit: float) -> float:
    """Return the value limited to ± `limit`."""
    return min(max(value, -limit), limit)


def max_step_cells(size: int) -> int:
    """Return the largest shift of a face from its predicted position in one frame, in cells."""
    return max(1, round(size / 12))


def _centre_and_side(box: Box) -> FloatArray:
    x, y, side, _ = box
    return np.array([x + side / 2, y + side / 2, side])


def _blur(pictures: FloatArray) -> FloatArray:
    """Average neighbouring cells of (N,S,S) with repeated edges; a blur widens the range of the gradient."""
    for axis in (1, 2) * round(pictures.shape[-1] / _CELLS_PER_BLUR):
        width = [(0, 0)] * 3
        width[axis] = (1, 1)
        p = np.moveaxis(np.pad(pictures, width, mode="edge"), axis, 0)
        pictures = np.moveaxis((p[:-2] + p[1:-1] + p[2:]) / 3, 0, axis)
    return pictures


def _intensity(picture: FloatArray) -> FloatArray:
    """Return the mean of the three channels, (S,S,3) → (S,S); a product is faster than a sum."""
    return (picture.reshape(-1, 3) @ _THIRDS).reshape(picture.shape[:2])


def _face_window(size: int) -> FloatArray:
    """Return weights (S·S,) of the ellipse that a face fills in its crop."""
    at = (np.arange(size) + 0.5) / size - 0.5
    inside = np.hypot(at[None, :] / 0.30, at[:, None] / 0.42) <= 1
    return inside.reshape(-1).astype(np.float64)
