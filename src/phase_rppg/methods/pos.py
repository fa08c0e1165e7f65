"""POS: projects colours onto the plane orthogonal to the skin tone and combines both axes."""

from __future__ import annotations

import numpy as np

from ..types import FloatArray, RgbTrace, Waveform
from . import common

NAME = "pos"
CITATION = (
    "W. Wang, A. C. den Brinker, S. Stuijk, G. de Haan, "
    '"Algorithmic principles of remote PPG", IEEE Trans. Biomed. Eng. 64(7), 2017'
)
INPUT = "trace"
WINDOW_S = 1.6
PROJECTION = np.array([[0.0, 1.0, -1.0], [-2.0, 1.0, 1.0]])


def extract(trace: RgbTrace) -> Waveform:
    """Return the overlap-add of Algorithm 1 of the paper over all windows of 1.6 s, with inverted sign.

    Within a window, h = S₁ + σ(S₁)/σ(S₂)·S₂ with S = P·C/μ(C) is the product of one weight vector a and the
    colours. Its mean is zero because the rows of P sum to zero. The overlap-add is therefore each colour
    times the summed weights of its windows, and the cost does not depend on the window length.
    """
    values = common.checked_colours(trace)  # (T,3)
    length = common.window_length(WINDOW_S, trace.fps, len(values))
    weights = _window_weights(values, length)  # (W,3)
    padded = np.concatenate([np.zeros((1, 3)), np.cumsum(weights, 0)])
    frame = np.arange(len(values))
    last = np.minimum(frame + 1, len(weights))
    first = np.clip(frame - length + 1, 0, len(weights))
    summed = padded[last] - padded[first]  # (T,3)
    # The mean a·μ of each window is 0, so no mean has to be subtracted.
    return common.waveform_like(trace, -np.einsum("tc,tc->t", values, summed))


def _window_weights(values: FloatArray, length: int) -> FloatArray:
    """Return the vector a (W,3) of each window: a·C = S₁ + σ(S₁)/σ(S₂)·S₂."""
    centre = values.mean(0)
    x = values - centre
    products = x[:, :, None] * x[:, None, :]  # (T,3,3)
    mean = _window_mean(x, length)
    covariance = _window_mean(products, length) - mean[:, :, None] * mean[:, None, :]
    level = mean + centre
    rows = common.ratio(PROJECTION, level[:, None, :])  # (W,2,3): P·diag(1/μ)
    rows *= (level > 0).all(1)[:, None, None]
    variance = np.einsum("wic,wcd,wid->wi", rows, covariance, rows)
    sigma = np.sqrt(np.maximum(variance, 0.0))
    return rows[:, 0] + common.ratio(sigma[:, 0], sigma[:, 1])[:, None] * rows[:, 1]


def _window_mean(values: FloatArray, length: int) -> FloatArray:
    total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    return (total[length:] - total[:-length]) / length
