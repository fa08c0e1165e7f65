"""PBV: the combination of channels whose changes point along the signature of blood volume."""

from __future__ import annotations

import numpy as np

from ..types import RgbTrace, Waveform
from . import common

NAME = "pbv"
CITATION = (
    "G. de Haan, A. van Leest, "
    '"Improved motion robustness of remote-PPG by using the blood volume pulse signature", '
    "Physiol. Meas. 35, 2014"
)
INPUT = "trace"
WINDOW_S = 6.4
SIGNATURE = np.array([0.33, 0.77, 0.53])  # relative pulsation of R, G, B in the paper's light
_RIDGE = 1e-6


def extract(trace: RgbTrace) -> Waveform:
    """S = W·C_n with W = k·P_bv·Q⁻¹, Q = C_n·C_nᵀ, |W| = 1, in Hann windows that overlap by half."""
    values = common.colours(trace)
    length = common.window_length(WINDOW_S, trace.fps, len(values))
    length -= length % 2 if length > 2 else 0
    relative = common.pulse_band(common.normalised(values), trace.fps)
    hop = max(length // 2, 1)
    padded = np.pad(relative, ((hop, length), (0, 0)))
    window = np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2
    out, weight = np.zeros(len(padded)), np.zeros(len(padded))
    for start in range(0, len(relative) + hop, hop):
        part = slice(start, start + length)
        out[part] += window * (padded[part] @ _weights(padded[part]))
        weight[part] += window
    kept = slice(hop, hop + len(relative))
    return common.wave_on_clock_of(trace, -common.ratio(out[kept], weight[kept]))


def _weights(changes: np.ndarray) -> np.ndarray:
    """W (3,) of one window of relative changes (L,3)."""
    q = changes.T @ changes
    scale = float(np.trace(q))
    if scale <= 0:
        return np.zeros(3)
    w = np.linalg.solve(q + _RIDGE * scale * np.eye(3), SIGNATURE)
    return w / np.linalg.norm(w)
