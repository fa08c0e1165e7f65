"""CHROM: two colour differences in which specular light cancels, combined so that motion cancels too."""

from __future__ import annotations

import numpy as np

from ..types import RgbTrace, Waveform
from . import common

NAME = "chrom"
CITATION = (
    "G. de Haan, V. Jeanne, "
    '"Robust pulse rate from chrominance-based rPPG", IEEE Trans. Biomed. Eng. 60(10), 2013'
)
INPUT = "trace"
WINDOW_S = 1.6


def extract(trace: RgbTrace) -> Waveform:
    """S = X_f − σ(X_f)/σ(Y_f)·Y_f in Hann windows of 1.6 s that overlap by half, X = 3R−2G, Y =
    1.5R+G−1.5B.
    """
    values = common.colours(trace)
    length = common.window_length(WINDOW_S, trace.fps, len(values))
    length -= length % 2 if length > 2 else 0
    relative = common.ratio(values, common.running_mean(values, length))
    x = 3 * relative[:, 0] - 2 * relative[:, 1]
    y = 1.5 * relative[:, 0] + relative[:, 1] - 1.5 * relative[:, 2]
    xy = common.pulse_band(np.stack([x, y], 1), trace.fps)  # (T,2)

    hop = max(length // 2, 1)
    # Windows hang over both ends by half, so that their sum is one everywhere.
    padded = np.pad(xy, ((hop, length), (0, 0)))
    inside = np.pad(np.ones(len(xy)), (hop, length))
    window = np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2
    out, weight = np.zeros(len(padded)), np.zeros(len(padded))
    for start in range(0, len(xy) + hop, hop):
        part = slice(start, start + length)
        here = inside[part] > 0
        sigma = padded[part][here].std(0)
        alpha = sigma[0] / sigma[1] if sigma[1] > 0 else 0.0
        out[part] += window * (padded[part, 0] - alpha * padded[part, 1])
        weight[part] += window
    kept = slice(hop, hop + len(xy))
    return common.wave_on_clock_of(trace, common.ratio(out[kept], weight[kept]))
