"""Keep a colour trace continuous when its region changes.

At a change the old and the new region are sampled in the same frame. The colours of the new region are then
scaled to those of the old one. Otherwise every detection would add a step to the trace, and periodic steps
resemble a pulse.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..face.crop import Box
from ..face.skin_mask import IntArray, background_mean, background_points, planes_mean
from ..picture import Picture, YuvPicture
from ..types import FloatArray

_DECAY_S = 20.0  # time constant with which the scale returns to 1
_MAX_SCALE = 1.5  # largest scale; regions that differ more keep a step


class ColourContinuity:
    """The scale (3,) that makes a colour trace continuous."""

    def __init__(self, t_s: float) -> None:
        self._gain: FloatArray = np.ones(3)
        self._last_s = t_s

    def join(self, old: FloatArray, new: FloatArray) -> None:
        """Change the region; `old` and `new` (3,) are the colours of both regions in the same frame."""
        gain = self._gain * np.where(new > 1, old / np.maximum(new, 1), 1.0)
        self._gain = np.clip(gain, 1 / _MAX_SCALE, _MAX_SCALE)

    def scale(self, colour: FloatArray, t_s: float) -> FloatArray:
        """Return the scaled colour (3,); the scale decays towards 1."""
        self._gain = self._gain ** max(0.0, 1 - (t_s - self._last_s) / _DECAY_S)
        self._last_s = t_s
        return colour * self._gain


class Background:
    """The mean colour outside all faces, frame by frame."""

    def __init__(self) -> None:
        self._points: tuple[IntArray, IntArray] | None = None
        self._offsets: IntArray | None = None  # of the points in the memory of a picture with planes
        self._continuity = ColourContinuity(0.0)

    def update_region(self, picture: Picture, faces: Iterable[Box], t_s: float) -> None:
        """Set the region to everything outside the faces of this frame."""
        before, self._points = self._points, background_points(picture.shape, faces)
        self._offsets = picture.offsets(*self._points) if isinstance(picture, YuvPicture) else None
        if before is None or not len(before[0]) or not len(self._points[0]):
            self._continuity = ColourContinuity(t_s)
        else:
            self._continuity.join(background_mean(picture, before), background_mean(picture, self._points))

    def sample(self, picture: Picture, t_s: float) -> FloatArray | None:
        """Return the colour (3,) of this frame; None if faces fill the picture or no region is set."""
        if self._points is None or not len(self._points[0]):
            return None
        if isinstance(picture, YuvPicture) and self._offsets is not None:
            return self._continuity.scale(planes_mean(picture, self._offsets), t_s)
        return self._continuity.scale(background_mean(picture, self._points), t_s)
