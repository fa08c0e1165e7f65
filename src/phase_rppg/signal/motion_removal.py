"""Motion removal: ridge regression of a waveform on the position and velocity of the face.

Walking and nodding have frequencies in the band of heart rates, and the shading of a moving face changes with
them. This part of the waveform follows the position of the face, which is known in every frame. Shading also
depends on the square of the position, which has twice its frequency. A head that turns with a period of 2 s
can therefore disturb the band of heart rates although its own frequency is below that band.
"""

from __future__ import annotations

import numpy as np

from ..types import BoolArray, FloatArray, Waveform
from . import filters
from .constants import MOTION_BAND_HZ
from .resample import interpolate_invalid

# Ridge parameter: root mean square of motion within the band, in face widths. Much smaller motion is not
# removed: it is mostly noise of the tracker, or the motion of the head with each heartbeat.
RIDGE_FACE_WIDTHS = 0.005
_TYPICAL_HZ = 1.6  # scales velocity to face widths: the amplitude of a sine at this frequency
_MIN_SPREAD = 1e-4  # face widths; below the resolution of the tracker


def remove_motion(wave: Waveform, centre: FloatArray) -> Waveform:
    """Return the waveform without the part that face motion explains.

    `centre` (T,2) is the position of the face in face widths.
    """
    return FaceMotion(centre).remove(wave)


class FaceMotion:
    """The motion of a face in one window; all waveforms of the window share its regressors."""

    _regressors: FloatArray  # (T,7)
    _in_band: FloatArray  # (N,7) the regressors where the face was seen, within MOTION_BAND_HZ
    _gram: FloatArray  # (7,7)

    def __init__(self, centre: FloatArray) -> None:
        """`centre` (T,2) is the position of the face in face widths."""
        self._centre = centre
        self._fps = 0.0  # frame rate and valid samples for which the regressors were computed
        self._valid: BoolArray = np.zeros(0, bool)

    def remove(self, wave: Waveform) -> Waveform:
        """Return the waveform without the part that the motion explains."""
        low_hz, top_hz = MOTION_BAND_HZ[0], min(MOTION_BAND_HZ[1], 0.45 * wave.fps)
        if wave.valid.sum() < 2 * wave.fps or top_hz <= low_hz:
            return wave
        if self._fps != wave.fps or not np.array_equal(self._valid, wave.valid):
            self._compute_regressors(wave.valid, wave.fps, (low_hz, top_hz))
        seen = interpolate_invalid(wave.values, wave.valid)
        pulse = filters.bandpass(seen, wave.fps, low_hz, top_hz)[wave.valid]
        weights = np.linalg.solve(self._gram, self._in_band.T @ pulse / len(pulse))
        return Waveform(wave.values - self._regressors @ weights, wave.fps, wave.start_s, wave.valid)

    def _compute_regressors(self, valid: BoolArray, fps: float, band_hz: tuple[float, float]) -> None:
        self._valid, self._fps = valid, fps
        position = interpolate_invalid(self._centre, valid)  # (T,2)
        velocity = np.gradient(position, 1 / fps, axis=0) / (2 * np.pi * _TYPICAL_HZ)
        self._regressors = np.concatenate([position, velocity, _squares(position, valid)], 1)
        self._in_band = filters.bandpass(self._regressors, fps, *band_hz)[valid]
        ridge = RIDGE_FACE_WIDTHS**2 * np.eye(self._regressors.shape[1])
        self._gram = self._in_band.T @ self._in_band / len(self._in_band) + ridge


def _squares(position: FloatArray, valid: BoolArray) -> FloatArray:
    """Return x², x·y and y² (T,3) of the centred position over its spread, in face widths."""
    x, y = (position - position[valid].mean(0)).T
    spread = max(float(x[valid].std()), float(y[valid].std()), _MIN_SPREAD)
    return np.stack([x * x, x * y, y * y], 1) / spread
