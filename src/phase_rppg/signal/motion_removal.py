"""Taking motion out of a wave: what the place and the speed of the face explain of it is not the heart.

Steps and nods shake the picture at the pace of a heart, and light on a turning face then changes with them.
That part of the wave follows the face's own path, which is known in every frame, so least squares finds it.
A head that turns to and fro every other second passes the lamp twice in that time: shading follows the square
of the path, too, which has twice its pace and so lies among the hearts where the path itself does not.
"""

from __future__ import annotations

import numpy as np

from ..types import BoolArray, FloatArray, Waveform
from . import filters
from .constants import MOTION_BAND_HZ
from .resample import bridge

# Face widths (root mean square within the band). A path much fainter than this is left alone: it is mostly
# the tracker's own noise, and where it does follow the heart it follows the beat's nod.
FAINT = 0.005
_TYPICAL_HZ = 1.6  # turns a speed into the width of a swing
_NO_PATH = 1e-4  # face widths: less than any tracker tells


def without_motion(wave: Waveform, centre: FloatArray) -> Waveform:
    """The wave without what `centre` (T,2), the place of the face in face widths, explains of it."""
    low_hz, top_hz = MOTION_BAND_HZ[0], min(MOTION_BAND_HZ[1], 0.45 * wave.fps)
    if wave.valid.sum() < 2 * wave.fps or top_hz <= low_hz:
        return wave
    path = bridge(centre, wave.valid)  # (T,2)
    speed = np.gradient(path, 1 / wave.fps, axis=0) / (2 * np.pi * _TYPICAL_HZ)
    moved = np.concatenate([path, speed, _squares(path, wave.valid)], 1)  # (T,7)
    in_band = filters.bandpass(moved, wave.fps, low_hz, top_hz)[wave.valid]
    beat = filters.bandpass(bridge(wave.values, wave.valid), wave.fps, low_hz, top_hz)[wave.valid]
    gram = in_band.T @ in_band / len(beat) + FAINT**2 * np.eye(moved.shape[1])
    weights = np.linalg.solve(gram, in_band.T @ beat / len(beat))
    return Waveform(wave.values - moved @ weights, wave.fps, wave.start_s, wave.valid)


def _squares(path: FloatArray, valid: BoolArray) -> FloatArray:
    """(T,3) x², x·y and y² of the path about its middle, over its spread: face widths again."""
    x, y = (path - path[valid].mean(0)).T
    spread = max(float(x[valid].std()), float(y[valid].std()), _NO_PATH)
    return np.stack([x * x, x * y, y * y], 1) / spread
