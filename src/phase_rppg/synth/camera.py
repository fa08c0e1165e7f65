"""What a camera makes of the light: clock, exposure, colour, noise, tone curve, 8 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from ..types import ByteArray, FloatArray
from .fields import events, ramp, wander

IntArray: TypeAlias = npt.NDArray[np.intp]
LUT_SIZE = 4096
DEVIATION_FRAMES = 8  # how often the noise level is computed anew: the picture changes slowly


@dataclass(frozen=True, slots=True)
class CameraSpec:
    """The camera and its habits."""

    fps: float = 30.0
    jitter: float = 0.0  # standard deviation of the frame times, as a share of the frame interval
    drop: float = 0.0  # probability that a frame is missing
    repeat: float = 0.0  # probability that a frame shows the picture before it
    skin_level: float = 0.25  # linear level at which the exposure puts the skin (0–1)
    auto_exposure: float = 0.0  # how strongly the exposure hunts
    white_balance: float = 0.0  # how strongly the colours drift
    contrast: float = 0.0  # −0.3 flat … 0.5 steep
    gamma: float = 2.2
    blur_px: float = 0.5  # optics; standard deviation in pixels of the full frame
    sharpen: float = 0.0
    noise: float = 1.5  # standard deviation at mid-grey, in 8-bit steps
    noise_size_px: float = 0.5  # how far the noise is smeared by demosaicing
    denoise: float = 0.0  # share of the previous picture in this one
    exposure_s: float = 0.012
    readout_s: float = 0.02


def frame_times(spec: CameraSpec, seconds: float, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Time stamps (T,) that cover 0 … `seconds`, and for each the frame whose picture it shows."""
    count = int(np.ceil(seconds * spec.fps)) + 3
    nominal_s = (np.arange(count) - 1) / spec.fps
    jitter = np.clip(rng.normal(0, 1, count), -2.5, 2.5) * spec.jitter / spec.fps
    t_s = nominal_s + np.clip(jitter, -0.4 / spec.fps, 0.4 / spec.fps)
    kept = rng.random(count) >= spec.drop
    kept[[0, -1]] = True
    t_s = t_s[kept]
    source = np.arange(len(t_s))
    for k in np.flatnonzero(rng.random(len(t_s)) < spec.repeat):
        source[k] = source[max(int(k) - 1, 0)]
    return t_s, source


def exposure(spec: CameraSpec, t_s: FloatArray, rng: np.random.Generator) -> FloatArray:
    """(T,3) gain of auto-exposure and white balance over time, around 1."""
    log_gain = np.zeros((len(t_s), 3))
    if spec.auto_exposure > 0:
        log_gain += (0.02 * spec.auto_exposure * wander(t_s, 0.3, rng))[:, None]
        for at_s in events(t_s, 0.2 * spec.auto_exposure, rng):
            log_gain += (rng.normal(0, 0.08) * ramp(t_s, at_s, rng.choice([0.05, 0.4, 1.5])))[:, None]
    if spec.white_balance > 0:
        shift = 0.012 * spec.white_balance * wander(t_s, 0.15, rng)
        log_gain += shift[:, None] * rng.uniform(-1, 1, 3)
    return np.exp(log_gain).astype(np.float32)


def tone_curve(spec: CameraSpec) -> ByteArray:
    """Linear light 0–1 in LUT_SIZE steps → 8-bit values; contrast bends around mid-grey."""
    x = np.linspace(0, 1, LUT_SIZE)
    y = np.where(x < 0.0031, 12.92 * x, 1.055 * x ** (1 / (spec.gamma + 0.2)) - 0.055)
    y = np.clip(y, 0, 1)
    s_curve = y * y * (3 - 2 * y)
    y = (1 - spec.contrast) * y + spec.contrast * s_curve
    return np.clip(np.rint(255 * y), 0, 255).astype(np.uint8)


class Sensor:
    """Poisson–Gaussian noise and the tone curve, planar (3,H,W) linear light → (H,W,3) u8."""

    def __init__(self, spec: CameraSpec, side: tuple[int, int], rng: np.random.Generator) -> None:
        self.spec, self.rng = spec, rng
        self.curve = tone_curve(spec)
        # Steps per unit of linear light at mid-grey translate the wanted noise into linear light.
        middle = int(0.2 * LUT_SIZE)
        slope = (float(self.curve[middle + 80]) - float(self.curve[middle - 80])) / (160 / LUT_SIZE)
        variance = (spec.noise / max(slope, 1.0)) ** 2
        read_share = rng.uniform(0.1, 0.5)
        self.read = read_share * variance
        self.shot = (1 - read_share) * variance / 0.2
        self.pool = _noise_pool(spec, side, rng)
        self.deviation: FloatArray | None = None
        self.previous: FloatArray | None = None
        self.scratch = np.empty((3, *side), np.float32)
        self.count = 0

    def expose(self, light: FloatArray) -> ByteArray:
        """One picture; `light` is used up."""
        _, height, width = light.shape
        if self.spec.noise > 0:
            if self.deviation is None or self.count % DEVIATION_FRAMES == 0:
                self.deviation = np.sqrt(np.maximum(light, 0) * np.float32(self.shot) + np.float32(self.read))
            top = int(self.rng.integers(self.pool.shape[1] - height + 1))
            left = int(self.rng.integers(self.pool.shape[2] - width + 1))
            noise = self.pool[:, top : top + height, left : left + width]
            light += np.multiply(self.deviation, noise, out=self.scratch)
        self.count += 1
        if self.spec.denoise > 0:
            if self.previous is not None:
                change = np.subtract(self.previous, light, out=self.scratch)
                change *= np.float32(self.spec.denoise)
                light += change
            self.previous = light
        rgb = np.empty((height, width, 3), np.uint8)
        for channel in range(3):  # one plane at a time stays in the cache
            steps = np.multiply(light[channel], np.float32(LUT_SIZE - 1), out=self.scratch[0]).astype(np.intp)
            rgb[:, :, channel] = self.curve.take(steps, mode="clip")
        return rgb


def optics(layer: FloatArray, spec: CameraSpec) -> FloatArray:
    """Blur and sharpen a planar picture, as lens and camera do."""
    if spec.blur_px > 0.05:
        layer = ndimage.gaussian_filter1d(layer, spec.blur_px, axis=-1, mode="nearest", truncate=3)
        layer = ndimage.gaussian_filter1d(layer, spec.blur_px, axis=-2, mode="nearest", truncate=3)
    if spec.sharpen > 0:
        smooth = ndimage.uniform_filter(layer, (*(1,) * (layer.ndim - 2), 3, 3), mode="nearest")
        layer = np.maximum(layer + np.float32(spec.sharpen) * (layer - smooth), 0)
    return layer.astype(np.float32, copy=False)


def optics_reach(spec: CameraSpec) -> int:
    """How many pixels away something still shows through the optics."""
    return int(np.ceil(3 * spec.blur_px)) + 2


def _noise_pool(spec: CameraSpec, side: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """A sheet of noise, larger than a frame; each frame takes another part of it, turned at random."""
    shape = (3, side[0] + 96, side[1] + 96)
    pool = rng.standard_normal(shape, dtype=np.float32)
    grey = rng.uniform(0, 0.75)
    pool = np.float32(np.sqrt(1 - grey)) * pool + np.float32(np.sqrt(grey)) * pool[:1]
    if spec.noise_size_px > 0.2:
        for axis in (1, 2):
            pool = ndimage.gaussian_filter1d(pool, spec.noise_size_px, axis=axis, mode="wrap", truncate=2.5)
    return (pool / np.float32(pool.std())).astype(np.float32)
