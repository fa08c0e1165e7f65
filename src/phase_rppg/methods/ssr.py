"""2SR: rotation of the subspace of skin pixels between frames; needs no prior of skin tone or pulse."""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError
from ..face.skin_mask import clip_skin_weights
from ..signal.resample import interpolate_invalid
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
    """Return the overlap-add of the subspace rotation of each frame relative to the start of each window."""
    if (
        not isinstance(clip, Clip)
        or clip.pixels.ndim != 4
        or clip.pixels.shape[-1] != 3
        or len(clip.pixels) < 2
    ):
        given = getattr(getattr(clip, "pixels", clip), "shape", type(clip).__name__)
        raise ArgumentError("clip", given, "a Clip with pixels (T,S,S,3) and at least 2 frames")
    valid = np.asarray(clip.valid, bool)
    weights = clip_skin_weights(clip.pixels[valid] if valid.any() else clip.pixels).reshape(-1)
    moments = interpolate_invalid(second_moments(clip.pixels, weights), valid)  # (T,3,3)
    mean = interpolate_invalid(_skin_mean(clip.pixels, weights), valid)
    values = common.orient_pulse(rotation(moments, clip.fps), mean, clip.fps)
    return Waveform(values, clip.fps, float(clip.t_s[0]), clip.valid)


def second_moments(pixels: ByteArray, weights: FloatArray) -> FloatArray:
    """Return VᵀV/N (T,3,3) of the skin pixels V (N,3) of each frame, with weights (H·W,)."""
    return np.stack([_moment(frame.reshape(-1, 3).astype(float), weights) for frame in pixels])


def rotation(moments: FloatArray, fps: float) -> FloatArray:
    """Return the 2SR signal of a series of second moments (T,3,3)."""
    count = len(moments)
    power, axes = np.linalg.eigh(moments)  # ascending order
    power, axes = np.maximum(power[:, ::-1], 0.0), axes[:, :, ::-1]  # λ₁ ≥ λ₂ ≥ λ₃, axes[:, :, i] = uᵢ
    axes[:, :, 0] *= np.where(axes[:, :, 0].sum(1, keepdims=True) < 0, -1.0, 1.0)
    length = common.window_length(WINDOW_S, fps, count)
    out = np.zeros(count)
    for start in range(count - length + 1):
        now = slice(start, start + length)
        rotated = np.zeros((length, 3))
        for i in (1, 2):
            scale = common.ratio(np.sqrt(power[now, 0]), np.sqrt(power[start, i]))
            cosine = axes[now, :, 0] @ axes[start, :, i]  # u₁ of the frame · uᵢ of the reference frame
            rotated += (scale * cosine)[:, None] * axes[start, :, i]  # back into RGB
        sigma = rotated.std(0)
        wave = rotated[:, 0] - (sigma[0] / sigma[1] if sigma[1] > 0 else 0.0) * rotated[:, 1]
        out[now] += wave - wave.mean()
    return out


def _moment(pixels: FloatArray, weights: FloatArray) -> FloatArray:
    return (pixels * weights[:, None]).T @ pixels / weights.sum()


def _skin_mean(pixels: ByteArray, weights: FloatArray) -> FloatArray:
    return np.stack([weights @ frame.reshape(-1, 3) / weights.sum() for frame in pixels])
