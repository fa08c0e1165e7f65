"""Compare beats with reference beats: errors of the intervals and of the variability."""

from __future__ import annotations

import numpy as np

from ..signal import hrv
from ..types import FloatArray

_LAGS_S: FloatArray = np.arange(-0.3, 0.6, 0.005)  # of the found beats behind the reference
_MAX_AWAY_S = 0.2  # largest distance of two beats that are the same
_VALUES = ("rmssd_ms", "sdnn_ms")


def interval_errors_s(found_s: FloatArray, true_s: FloatArray) -> FloatArray:
    """Return the errors of the intervals between consecutive beats that both series have.

    A constant lag between the series has no effect: a pulse arrives later in a face than in a finger.
    """
    if len(found_s) < 2 or len(true_s) < 2:
        return np.zeros(0)
    lag_s = min(_LAGS_S, key=lambda lag: float(np.median(_distance(found_s - lag, true_s))))
    nearest = np.abs((found_s - lag_s)[:, None] - true_s).argmin(1)
    same = np.abs(found_s - lag_s - true_s[nearest]) <= _MAX_AWAY_S
    pairs = same[1:] & same[:-1] & (np.diff(nearest) == 1)
    errors: FloatArray = (np.diff(found_s) - np.diff(true_s[nearest]))[pairs]
    return errors


def variability_ratios(
    found: hrv.Hrv | None, beats_s: FloatArray, true_s: FloatArray
) -> dict[str, float | None]:
    """Return found over true RMSSD and SDNN, by name; None for a value that is not shown.

    The truth comes from the reference beats during the found beats.
    """
    if found is None or not len(beats_s):
        return dict.fromkeys(_VALUES)
    inside = true_s[(true_s >= beats_s[0] - 0.6) & (true_s <= beats_s[-1] + 0.3)]
    true = hrv.hrv(inside)
    ratios: dict[str, float | None] = {}
    for name in _VALUES:
        value, reference = getattr(found, name), getattr(true, name, None)
        ratios[name] = None if value is None or not reference else value / reference
    return ratios


def _distance(found_s: FloatArray, true_s: FloatArray) -> FloatArray:
    """Return the distance of each beat to the nearest reference beat."""
    after = np.clip(np.searchsorted(true_s, found_s), 1, len(true_s) - 1)
    return np.minimum(np.abs(found_s - true_s[after - 1]), np.abs(found_s - true_s[after]))
