"""Colours that go on without a step when the region they are taken from changes.

At a change both the old and the new region are looked at in the same frame, and what follows is scaled so
that it begins where the old one ended: a step at every detection would be a false rhythm, and it would hide
a true one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..face.crop import Box
from ..face.skin_mask import IntArray, background_mean, background_points
from ..types import ByteArray, FloatArray

_MEMORY_S = 20.0  # colours drift back to their true level in this time
_LIMIT = 1.5  # regions that differ by more than this factor are not joined fully


class ColourContinuity:
    """The scale (3,) of a colour trace since its region last changed."""

    def __init__(self, t_s: float) -> None:
        self._gain: FloatArray = np.ones(3)
        self._last_s = t_s

    def join(self, old: FloatArray, new: FloatArray) -> None:
        """From now on colours come from the region that shows `new` where the one before showed `old`."""
        gain = self._gain * np.where(new > 1, old / np.maximum(new, 1), 1.0)
        self._gain = np.clip(gain, 1 / _LIMIT, _LIMIT)

    def scale(self, colour: FloatArray, t_s: float) -> FloatArray:
        """The colour as the trace has it."""
        self._gain = self._gain ** max(0.0, 1 - (t_s - self._last_s) / _MEMORY_S)
        self._last_s = t_s
        return colour * self._gain


class Background:
    """The mean colour away from all faces, frame by frame."""

    def __init__(self) -> None:
        self._points: tuple[IntArray, IntArray] | None = None
        self._seam = ColourContinuity(0.0)

    def place(self, rgb: ByteArray, faces: Iterable[Box], t_s: float) -> None:
        """The faces of this frame are where the background is not."""
        before, self._points = self._points, background_points(rgb.shape, faces)
        if before is None or not len(before[0]) or not len(self._points[0]):
            self._seam = ColourContinuity(t_s)
        else:
            self._seam.join(background_mean(rgb, before), background_mean(rgb, self._points))

    def measure(self, rgb: ByteArray, t_s: float) -> FloatArray | None:
        """Its colour (3,) in this frame; None when faces fill the picture or nobody was placed yet."""
        if self._points is None or not len(self._points[0]):
            return None
        return self._seam.scale(background_mean(rgb, self._points), t_s)
