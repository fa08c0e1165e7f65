"""PBV: the combination of channels that matches the colour signature of blood volume."""

from __future__ import annotations

import numpy as np

from ..signal import filters
from ..types import BoolArray, FloatArray, RgbTrace, Waveform
from . import common

NAME = "pbv"
CITATION = (
    "G. de Haan, A. van Leest, "
    '"Improved motion robustness of remote-PPG by using the blood volume pulse signature", '
    "Physiol. Meas. 35, 2014"
)
INPUT = "trace"
WINDOW_S = 6.4
SIGNATURE = np.array([0.33, 0.77, 0.53])  # relative pulse amplitude of R, G, B under the light of the paper
_RIDGE = 1e-6


def extract(trace: RgbTrace) -> Waveform:
    """Return S = W·C_n with W = k·P_bv·Q⁻¹, Q = C_n·C_nᵀ, |W| = 1, in Hann windows that overlap by half."""
    values = common.checked_colours(trace)
    length = common.window_length(WINDOW_S, trace.fps, len(values))
    relative = filters.pulse_band(common.normalised(values), trace.fps)
    return common.waveform_like(trace, -common.overlap_add(relative, length, _combine))


def _combine(changes: FloatArray, _inside: BoolArray) -> FloatArray:
    """Return W·C_n of one window (L,3)."""
    return changes @ _weights(changes)


def _weights(changes: np.ndarray) -> np.ndarray:
    """Return W (3,) of one window of relative changes (L,3)."""
    q = changes.T @ changes
    scale = float(np.trace(q))
    if scale <= 0:
        return np.zeros(3)
    w = np.linalg.solve(q + _RIDGE * scale * np.eye(3), SIGNATURE)
    return w / np.linalg.norm(w)
