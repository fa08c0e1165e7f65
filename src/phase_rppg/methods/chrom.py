"""CHROM: two chrominance signals, orthogonal to the specular reflection, combined so that motion cancels."""

from __future__ import annotations

import numpy as np

from ..signal import filters
from ..types import BoolArray, FloatArray, RgbTrace, Waveform
from . import common

NAME = "chrom"
CITATION = (
    "G. de Haan, V. Jeanne, "
    '"Robust pulse rate from chrominance-based rPPG", IEEE Trans. Biomed. Eng. 60(10), 2013'
)
INPUT = "trace"
WINDOW_S = 1.6


def extract(trace: RgbTrace) -> Waveform:
    """Return S = X_f − σ(X_f)/σ(Y_f)·Y_f, in Hann windows of 1.6 s that overlap by half.

    The chrominance signals are X = 3R−2G and Y = 1.5R+G−1.5B.
    """
    values = common.checked_colours(trace)
    length = common.window_length(WINDOW_S, trace.fps, len(values))
    length -= length % 2 if length > 2 else 0
    relative = common.ratio(values, common.running_mean(values, length))
    x = 3 * relative[:, 0] - 2 * relative[:, 1]
    y = 1.5 * relative[:, 0] + relative[:, 1] - 1.5 * relative[:, 2]
    xy = filters.pulse_band(np.stack([x, y], 1), trace.fps)  # (T,2)
    return common.waveform_like(trace, common.overlap_add(xy, length, _combine))


def _combine(xy: FloatArray, inside: BoolArray) -> FloatArray:
    """Return X_f − σ(X_f)/σ(Y_f)·Y_f of one window (L,2)."""
    sigma = xy[inside].std(0)
    alpha = sigma[0] / sigma[1] if sigma[1] > 0 else 0.0
    combined: FloatArray = xy[:, 0] - alpha * xy[:, 1]
    return combined
