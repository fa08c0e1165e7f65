"""Vary a clip: codec, place, size, mirror, time, colour, noise. Pure functions of their random generator.

Time-stretch takes the pictures and the wave at the same new moments: the rate and its label change together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..face.crop import AreaCrop
from ..synth.codec import CodecSpec, transcode
from ..types import ByteArray, FloatArray
from .recipe import Augment


@dataclass(frozen=True)
class Draw:
    """One draw of everything that is varied."""

    flip: bool
    box: tuple[float, float, float, float]  # of the crop in the stored picture, as shares of its side
    stretch: float  # seconds of the source per second of the clip
    gain: FloatArray  # (3,)
    gamma: float
    noise: float
    seed: int  # of the noise itself
    crf: float | None = None  # quality at which the source is compressed once more; None: it is not


_TOGETHER = 8  # pictures that are cut in one go: they stay in the cache
PLAIN = Draw(False, (0.0, 0.0, 1.0, 1.0), 1.0, np.ones(3), 1.0, 0.0, 0)


def draw(augment: Augment, rng: np.random.Generator) -> Draw:
    """Decide how one clip is varied."""
    side = rng.uniform(*augment.scale)
    x, y = 0.5 - side / 2 + rng.uniform(-augment.shift, augment.shift, 2)
    stretch = float(np.exp(rng.uniform(*np.log(augment.stretch))))
    gain = np.exp(rng.normal(0, 1) * augment.brightness) * np.exp(rng.normal(0, augment.gain, 3))
    how = Draw(
        flip=bool(rng.random() < augment.flip),
        box=(float(x), float(y), float(side), float(side)),
        stretch=stretch,
        gain=gain,
        gamma=float(np.exp(rng.normal(0, 1) * augment.gamma)),
        noise=float(rng.uniform(0, 1) ** 2 * augment.noise),
        seed=int(rng.integers(2**31)),
    )
    # From numbers of its own: with or without a codec, everything else is varied alike.
    luck = np.random.default_rng([how.seed, 1])
    return replace(how, crf=float(luck.uniform(*augment.crf))) if luck.random() < augment.codec else how


def moments(start: float, frames: int, step: float) -> FloatArray:
    """Positions in the source, in frames: start, start + step, …"""
    return start + step * np.arange(frames)


def compress(pixels: ByteArray, crf: float) -> ByteArray:
    """The pictures (T,S,S,3) as they come back from H.264 at this quality."""
    side = pixels.shape[1]
    even = np.pad(pixels, ((0, 0), (0, side % 2), (0, side % 2), (0, 0)), mode="edge")
    stored = CodecSpec("h264", crf=crf, preset="veryfast")
    return np.stack([picture[:side, :side] for picture in transcode(even, stored)])


def cut(pixels: ByteArray, at: FloatArray, box: tuple[float, float, float, float], size: int) -> FloatArray:
    """Pictures at fractional positions (T,), cropped and resized by area: (T,size,size,3), 0–255."""
    first, last = int(np.floor(at[0])), min(int(np.floor(at[-1])) + 1, len(pixels) - 1)
    side = pixels.shape[1]
    x, y, width, height = (share * side for share in box)
    if (x, y, width, height) == (0, 0, size, size):
        small = pixels[first : last + 1].astype(np.float32)
    else:
        crop = AreaCrop((x, y, width, height), size, pixels.shape[1:3])
        whole = np.asarray(pixels[first : last + 1])  # not a map of a file: looking into one is slow
        small = np.concatenate([crop.mean(whole[i : i + _TOGETHER]) for i in range(0, len(whole), _TOGETHER)])
    share = (at - np.floor(at)).astype(np.float32)
    if not share.any():
        return small[np.floor(at).astype(int) - first]
    below = np.clip(np.floor(at).astype(int) - first, 0, len(small) - 1)
    above = np.minimum(below + 1, len(small) - 1)
    share = share[:, None, None, None]
    mixed: FloatArray = small[below] * (1 - share) + small[above] * share
    return mixed


def cut_mask(mask: FloatArray | None, how: Draw, size: int) -> FloatArray:
    """A mask (S,S) 0–1 of the stored picture as the varied clip shows it, (size,size) f32; 0 for None."""
    if mask is None:
        return np.zeros((size, size), np.float32)
    grey = np.repeat(np.rint(255 * mask).astype(np.uint8)[None, :, :, None], 3, 3)  # (1,S,S,3)
    small = cut(grey, np.zeros(1), how.box, size)[0, :, :, 0] / np.float32(255)
    return np.ascontiguousarray(small[:, ::-1] if how.flip else small, np.float32)


def cut_wave(wave: FloatArray, at: FloatArray) -> FloatArray:
    """The wave at fractional positions, (T,) f32."""
    return np.interp(at, np.arange(len(wave)), wave).astype(np.float32)


def recolour(pixels: FloatArray, how: Draw) -> ByteArray:
    """Mirror, gamma, gains and sensor noise; rounded to bytes as every camera does."""
    if how.flip:
        pixels = pixels[:, :, ::-1]
    if how.gamma != 1.0:
        pixels = 255 * np.power(np.maximum(pixels, 0) / 255, np.float32(how.gamma))
    if (how.gain != 1).any():
        pixels = pixels * how.gain.astype(np.float32)
    if how.noise > 0:
        rng = np.random.default_rng(how.seed)
        pixels = pixels + np.float32(how.noise) * rng.standard_normal(pixels.shape, np.float32)
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
