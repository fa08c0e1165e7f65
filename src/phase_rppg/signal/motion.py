"""Taking motion out of a wave: what the place and the speed of the face explain of it is not the heart.

Steps and nods shake the picture at the pace of a heart, and light on a turning face then changes with them.
That part of the wave follows the face's own path, which is known in every frame, so least squares finds it.
"""

from __future__ import annotations

import numpy as np

from ..types import FloatArray, Waveform
from . import filters
from .resample import bridge

# Face widths (root mean square within the band). A path much fainter than this is left alone: it is mostly
# the tracker's own noise, and where it does follow the heart it follows the beat's nod.
FAINT = 0.005
FIT_HZ = (0.5, 4.0)  # where path and wave are compared: the band of hearts, and a little beside it
_TYPICAL_HZ = 1.6  # turns a speed into the width of a swing


def without_motion(wave: Waveform, centre: FloatArray) -> Waveform:
    """The wave without what `centre` (T,2), the place of the face in face widths, explains of it."""
    low_hz, top_hz = FIT_HZ[0], min(FIT_HZ[1], 0.45 * wave.fps)
    if wave.valid.sum() < 2 * wave.fps or top_hz <= low_hz:
        return wave
    path = bridge(centre, wave.valid)  # (T,2)
    speed = np.gradient(path, 1 / wave.fps, axis=0) / (2 * np.pi * _TYPICAL_HZ)
    moved = np.concatenate([path, speed], 1)  # (T,4)
    in_band = filters.bandpass(moved, wave.fps, low_hz, top_hz)[wave.valid]
    beat = filters.bandpass(bridge(wave.values, wave.valid), wave.fps, low_hz, top_hz)[wave.valid]
    gram = in_band.T @ in_band / len(beat) + FAINT**2 * np.eye(4)
    weights = np.linalg.solve(gram, in_band.T @ beat / len(beat))
    return Waveform(wave.values - moved @ weights, wave.fps, wave.start_s, wave.valid)
