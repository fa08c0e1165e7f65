"""Augment a clip: codec, position, size, mirror, time scale, colour, noise. All functions are pure.

Time stretching resamples the frames and the wave at the same times, so the heart rate and its label change
together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..face.crop import AreaCrop
from ..signal import rate
from ..synth.codec import CodecSpec, transcode
from ..types import ByteArray, FloatArray
from .recipe import Augment


@dataclass(frozen=True)
class AugmentParameters:
    """The random parameters of one augmented clip."""

    flip: bool
    box: tuple[float, float, float, float]  # x, y, width, height of the crop, as shares of the stored side
    stretch: float  # seconds of the source per second of the clip
    gain: FloatArray  # (3,)
    gamma: float
    noise: float
    seed: int  # of the sensor noise
    crf: float | None = None  # constant rate factor of the additional compression; None: no compression
    octave: bool = False  # halve a fast heart rate, or double a slow one


OCTAVE_BPM = (75.0, 90.0)  # rates below are doubled, rates above are halved
_CROP_FRAMES = 8  # frames that are cropped together, so that they stay in the processor cache
NO_AUGMENTATION = AugmentParameters(False, (0.0, 0.0, 1.0, 1.0), 1.0, np.ones(3), 1.0, 0.0, 0)


def draw(augment: Augment, rng: np.random.Generator) -> AugmentParameters:
    """Draw the random parameters of one clip."""
    side = rng.uniform(*augment.scale)
    x, y = 0.5 - side / 2 + rng.uniform(-augment.shift, augment.shift, 2)
    stretch = float(np.exp(rng.uniform(*np.log(augment.stretch))))
    gain = np.exp(rng.normal(0, 1) * augment.brightness) * np.exp(rng.normal(0, augment.gain, 3))
    parameters = AugmentParameters(
        flip=bool(rng.random() < augment.flip),
        box=(float(x), float(y), float(side), float(side)),
        stretch=stretch,
        gain=gain,
        gamma=float(np.exp(rng.normal(0, 1) * augment.gamma)),
        noise=float(rng.uniform(0, 1) ** 2 * augment.noise),
        seed=int(rng.integers(2**31)),
    )
    # Generators of their own: these settings do not change the other parameters.
    if augment.octave and np.random.default_rng([parameters.seed, 2]).random() < augment.octave:
        parameters = replace(parameters, octave=True)
    codec_rng = np.random.default_rng([parameters.seed, 1])
    if codec_rng.random() >= augment.codec:
        return parameters
    return replace(parameters, crf=float(codec_rng.uniform(*augment.crf)))


def octave_factor(wave: FloatArray, fps: float, parameters: AugmentParameters) -> float:
    """Return the factor of the heart rate: ½ above 90 bpm and 2 below 75, as RhythmMamba does; else 1."""
    peak = rate.spectral_peak(np.asarray(wave, float), fps) if parameters.octave else None
    if peak is None:
        return 1.0
    return 0.5 if peak.bpm > OCTAVE_BPM[1] else 2.0 if peak.bpm < OCTAVE_BPM[0] else 1.0


def sample_positions(start: float, frames: int, step: float) -> FloatArray:
    """Return fractional frame positions in the source: start, start + step, …"""
    return start + step * np.arange(frames)


def compress(pixels: ByteArray, crf: float) -> ByteArray:
    """Encode frames (T,S,S,3) as H.264 at this quality and return the decoded frames."""
    side = pixels.shape[1]
    even = np.pad(pixels, ((0, 0), (0, side % 2), (0, side % 2), (0, 0)), mode="edge")
    codec = CodecSpec("h264", crf=crf, preset="veryfast")
    return np.stack([frame[:side, :side] for frame in transcode(even, codec)])


def crop_frames(
    pixels: ByteArray, at: FloatArray, box: tuple[float, float, float, float], size: int
) -> FloatArray:
    """Return frames at fractional positions (T,), cropped and area-averaged to (T,size,size,3), 0–255."""
    first, last = int(np.floor(at[0])), min(int(np.floor(at[-1])) + 1, len(pixels) - 1)
    side = pixels.shape[1]
    x, y, width, height = (share * side for share in box)
    if (x, y, width, height) == (0, 0, size, size):
        small = pixels[first : last + 1].astype(np.float32)
    else:
        crop = AreaCrop((x, y, width, height), size, pixels.shape[1:3])
        whole = np.asarray(pixels[first : last + 1])  # a plain array: slicing an `np.memmap` is slow
        small = np.concatenate(
            [crop.mean(whole[i : i + _CROP_FRAMES]) for i in range(0, len(whole), _CROP_FRAMES)]
        )
    share = (at - np.floor(at)).astype(np.float32)
    if not share.any():
        return small[np.floor(at).astype(int) - first]
    below = np.clip(np.floor(at).astype(int) - first, 0, len(small) - 1)
    above = np.minimum(below + 1, len(small) - 1)
    share = share[:, None, None, None]
    mixed: FloatArray = small[below] * (1 - share) + small[above] * share
    return mixed


def crop_mask(mask: FloatArray | None, parameters: AugmentParameters, size: int) -> FloatArray:
    """Return a mask (S,S) of the stored frame as (size,size) of the augmented clip; zeros for None."""
    if mask is None:
        return np.zeros((size, size), np.float32)
    grey = np.repeat(np.rint(255 * mask).astype(np.uint8)[None, :, :, None], 3, 3)  # (1,S,S,3)
    small = crop_frames(grey, np.zeros(1), parameters.box, size)[0, :, :, 0] / np.float32(255)
    return np.ascontiguousarray(small[:, ::-1] if parameters.flip else small, np.float32)


def resample_wave(wave: FloatArray, at: FloatArray) -> FloatArray:
    """Return the wave at fractional positions, (T,) f32."""
    return np.interp(at, np.arange(len(wave)), wave).astype(np.float32)


def recolour(pixels: FloatArray, parameters: AugmentParameters) -> ByteArray:
    """Apply mirror, gamma, gains and sensor noise, and round to bytes as a camera does."""
    if parameters.flip:
        pixels = pixels[:, :, ::-1]
    if parameters.gamma != 1.0:
        pixels = 255 * np.power(np.maximum(pixels, 0) / 255, np.float32(parameters.gamma))
    if (parameters.gain != 1).any():
        pixels = pixels * parameters.gain.astype(np.float32)
    if parameters.noise > 0:
        rng = np.random.default_rng(parameters.seed)
        pixels = pixels + np.float32(parameters.noise) * rng.standard_normal(pixels.shape, np.float32)
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def resize(pixels: ByteArray, at: FloatArray, size: int) -> ByteArray:
    """Return whole frames at fractional positions (T,), area-averaged to bytes (T,size,size,3)."""
    plain = NO_AUGMENTATION
    return recolour(crop_frames(pixels, at, plain.box, size), plain)
