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
_TINT, _LEVEL = 0.15, 0.4  # how far skin may be from its median colour and brightness, in logarithms


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
    valid = np.asarray(clip.valid, bool)
    weights = skin_weights(clip.pixels[valid] if valid.any() else clip.pixels)
    moments = bridge(second_moments(clip.pixels, weights), valid)  # (T,3,3)
    mean = bridge(_skin_mean(clip.pixels, weights), valid)
    values = common.upright(rotation(moments, clip.fps), mean, clip.fps)
    return Waveform(values, clip.fps, float(clip.t_s[0]), clip.valid)


def second_moments(pixels: ByteArray, weights: FloatArray) -> FloatArray:
    """(T,3,3) the matrix VᵀV/N of each frame's skin pixels V (N,3), by their weights (H·W,)."""
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


def _skin_mean(pixels: ByteArray, weights: FloatArray) -> FloatArray:
    return np.stack([weights @ frame.reshape(-1, 3) / weights.sum() for frame in pixels])


def skin_weights(pixels: ByteArray) -> FloatArray:
    """(H·W,) 1 for skin: inside an ellipse that a face fills in its square crop, and near its usual colour.

    Hair, eyes and glasses turn the subspace more than blood does.
    """
    _, height, width, _ = pixels.shape
    y, x = np.mgrid[0:height, 0:width]
    inside = ((x + 0.5) / width - 0.5) ** 2 / 0.3**2 + ((y + 0.5) / height - 0.5) ** 2 / 0.38**2 <= 1
    log = np.log(pixels.mean(0).reshape(-1, 3) + 1.0)  # (H·W,3)
    inside = inside.reshape(-1)
    level = log.mean(1)
    tint = log - level[:, None]
    off_tint = np.abs(tint - np.median(tint[inside], axis=0)).max(1)
    off_level = np.abs(level - np.median(level[inside]))
    skin = inside & (off_tint < _TINT) & (off_level < _LEVEL)
    return (skin if skin.any() else inside).astype(float)
