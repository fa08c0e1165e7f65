"""2SR: how the space of skin pixels turns from frame to frame; no skin-tone or pulse prior is needed."""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError
from ..signal.resample import bridge
from ..types import ByteArray, Clip, FloatArray, Waveform
from . import common

NAME = "2sr"
CITATION = (
    "W. Wang, S. Stuijk, G. de Haan, "
    '"A novel algorithm for remote photoplethysmography: spatial subspace rotation", '
    "IEEE Trans. Biomed. Eng. 63(9), 2016"
)
INPUT = "clip"
WINDOW_S = 1.0  # 20 frames at the paper's 20 fps


def extract(clip: Clip) -> Waveform:
    """Rotation and scaling of each frame's pixel subspace against the first frame of every window, added
    up.
    """
    if (
        not isinstance(clip, Clip)
        or clip.pixels.ndim != 4
        or clip.pixels.shape[-1] != 3
        or len(clip.pixels) < 2
    ):
        given = getattr(getattr(clip, "pixels", clip), "shape", type(clip).__name__)
        raise ArgumentError("clip", given, "a Clip with pixels (T,S,S,3) and at least 2 frames")
    moments = bridge(second_moments(clip.pixels), np.asarray(clip.valid, bool))  # (T,3,3)
    mean = bridge(_skin_mean(clip.pixels), np.asarray(clip.valid, bool))
    values = common.upright(rotation(moments, clip.fps), mean, clip.fps)
    return Waveform(values, clip.fps, float(clip.t_s[0]), clip.valid)


def second_moments(pixels: ByteArray) -> FloatArray:
    """(T,3,3) the matrix VᵀV/N of each frame's skin pixels V (N,3), by its weights."""
    weights = _skin_weights(pixels.shape[1], pixels.shape[2])
    return np.stack([_moment(frame.reshape(-1, 3).astype(float), weights) for frame in pixels])


def rotation(moments: FloatArray, fps: float) -> FloatArray:
    """The 2SR signal of a series of second moments (T,3,3)."""
    count = len(moments)
    power, axes = np.linalg.eigh(moments)  # rising order
    power, axes = np.maximum(power[:, ::-1], 0.0), axes[:, :, ::-1]  # λ₁ ≥ λ₂ ≥ λ₃, axes[:, :, i] = uᵢ
    axes[:, :, 0] *= np.where(axes[:, :, 0].sum(1, keepdims=True) < 0, -1.0, 1.0)
    length = common.window_length(WINDOW_S, fps, count)
    out = np.zeros(count)
    for start in range(count - length + 1):
        now = slice(start, start + length)
        turned = np.zeros((length, 3))
        for i in (1, 2):
            scale = common.ratio(np.sqrt(power[now, 0]), np.sqrt(power[start, i]))
            along = axes[now, :, 0] @ axes[start, :, i]  # u₁ᵗ · uᵢ of the reference frame
            turned += (scale * along)[:, None] * axes[start, :, i]  # back into RGB
        sigma = turned.std(0)
        wave = turned[:, 0] - (sigma[0] / sigma[1] if sigma[1] > 0 else 0.0) * turned[:, 1]
        out[now] += wave - wave.mean()
    return out


def _moment(pixels: FloatArray, weights: FloatArray) -> FloatArray:
    return (pixels * weights[:, None]).T @ pixels / weights.sum()


def _skin_mean(pixels: ByteArray) -> FloatArray:
    weights = _skin_weights(pixels.shape[1], pixels.shape[2])
    return np.stack([weights @ frame.reshape(-1, 3) / weights.sum() for frame in pixels])


def _skin_weights(height: int, width: int) -> FloatArray:
    """(H·W,) 1 inside an ellipse that a face fills in its square crop."""
    y, x = np.mgrid[0:height, 0:width]
    inside = ((x + 0.5) / width - 0.5) ** 2 / 0.3**2 + ((y + 0.5) / height - 0.5) ** 2 / 0.38**2 <= 1
    return inside.reshape(-1).astype(float)
