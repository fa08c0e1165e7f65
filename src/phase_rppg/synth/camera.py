"""The camera model: frame times, exposure, white balance, noise, tone curve, 8-bit output."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ..types import ByteArray, FloatArray
from . import image_filters
from .random_fields import interpolation, poisson_events, ramp, smooth_noise

IntArray: TypeAlias = npt.NDArray[np.intp]
LUT_SIZE = 4096
BLURRED_NOISE_PX = 0.2  # noise with a smaller blur is white
LOCAL_TONE_PX = 24  # size of the cells of the local tone mapping
LOCAL_TONE_FOLLOWS = 0.15  # weight of the current frame in its slow mean
LUMA = (0.3, 0.6, 0.1)
DEVIATION_FRAMES = 8  # frames between two updates of the noise level, because the picture changes slowly


@dataclass(frozen=True, slots=True)
class CameraSpec:
    """The settings of a camera."""

    fps: float = 30.0  # mean frame rate
    jitter: float = 0.0  # standard deviation of the frame times, as a share of the frame interval
    drop: float = 0.0  # probability that a frame is missing
    repeat: float = 0.0  # probability that a frame repeats the previous picture
    skin_level: float = 0.25  # linear level of the skin after exposure (0–1)
    auto_exposure: float = 0.0  # strength of the changes of the automatic exposure
    white_balance: float = 0.0  # strength of the drift of the white balance
    contrast: float = 0.0  # −0.3 flat … 0.5 steep
    gamma: float = 2.2  # exponent of the transfer function
    blur_px: float = 0.5  # optics; standard deviation in pixels of the full frame
    sharpen: float = 0.0  # strength of edge sharpening
    noise: float = 1.5  # standard deviation at mid-grey, in 8-bit steps
    noise_size_px: float = 0.5  # standard deviation of the blur of the noise by demosaicing
    denoise: float = 0.0  # weight of the previous picture in the current one
    exposure_s: float = 0.012  # exposure time
    readout_s: float = 0.02  # time to read all rows of the sensor
    rolling: float = 0.0  # strength of the distortion of moving faces by the rolling shutter; 1 is physical
    hunting: float = 0.0  # strength of oscillations of exposure and white balance before they settle
    local_tone: float = 0.0  # 0 none … 1 equal brightness everywhere
    beauty: float = 0.0  # strength of the smoothing of skin
    fps_wander: float = 0.0  # slow changes of the frame interval (log, std), as in a dim room


def frame_times(spec: CameraSpec, seconds: float, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """Return timestamps (T,) that cover 0 … `seconds`, and the index of the picture that each frame shows."""
    count = int(np.ceil(seconds * spec.fps)) + 3
    nominal_s = (np.arange(count) - 1) / spec.fps
    if spec.fps_wander > 0:
        stretch = np.clip(np.exp(spec.fps_wander * smooth_noise(nominal_s, 0.3, rng)), 0.9, 2.2)
        reached_s = (np.cumsum(stretch) - stretch[0] - 1) / spec.fps
        count = int(np.searchsorted(reached_s, seconds + 1 / spec.fps)) + 1
        if count > len(reached_s):  # faster than nominal on average
            return frame_times(replace(spec, fps_wander=0.0), seconds, rng)
        nominal_s = reached_s[:count]
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
    """Return the gain (T,3) of automatic exposure and white balance over time; its mean is about 1."""
    log_gain = np.zeros((len(t_s), 3))
    if spec.auto_exposure > 0:
        log_gain += (0.02 * spec.auto_exposure * smooth_noise(t_s, 0.3, rng))[:, None]
        for at_s in poisson_events(t_s, 0.2 * spec.auto_exposure, rng):
            log_gain += (rng.normal(0, 0.08) * ramp(t_s, at_s, rng.choice([0.05, 0.4, 1.5])))[:, None]
    if spec.white_balance > 0:
        shift = 0.012 * spec.white_balance * smooth_noise(t_s, 0.15, rng)
        log_gain += shift[:, None] * rng.uniform(-1, 1, 3)
    if spec.hunting > 0:
        _hunt(log_gain, spec.hunting, t_s, rng)
    return np.exp(log_gain).astype(np.float32)


def _hunt(log_gain: FloatArray, strength: float, t_s: FloatArray, rng: np.random.Generator) -> None:
    """Add steps of exposure and of white balance that overshoot, ring and settle, in steps of the control."""
    control_hz = rng.uniform(8, 30)
    held = np.clip(
        np.searchsorted(t_s, np.floor(t_s * control_hz) / control_hz, side="right") - 1, 0, len(t_s) - 1
    )
    for colour, size in ((np.ones(3), 0.03), (rng.normal(0, 1, 3), 0.012)):
        for at_s in poisson_events(t_s, 0.3, rng):
            after_s = np.maximum(t_s - at_s, 0)
            ringing = 1 - np.exp(-after_s / rng.uniform(0.3, 1.5)) * np.cos(
                2 * np.pi * rng.uniform(0.4, 1.6) * after_s
            )
            step = np.where(t_s >= at_s, strength * rng.normal(0, size) * ringing, 0)
            log_gain += step[held, None] * colour


def tone_curve(spec: CameraSpec) -> ByteArray:
    """Return the 8-bit value for LUT_SIZE levels of linear light 0–1, with an S-curve for the contrast."""
    x = np.linspace(0, 1, LUT_SIZE)
    y = np.where(x < 0.0031, 12.92 * x, 1.055 * x ** (1 / (spec.gamma + 0.2)) - 0.055)
    y = np.clip(y, 0, 1)
    s_curve = y * y * (3 - 2 * y)
    y = (1 - spec.contrast) * y + spec.contrast * s_curve
    return np.clip(np.rint(255 * y), 0, 255).astype(np.uint8)


class Sensor:
    """Apply Poisson–Gaussian noise and the tone curve: planar (3,H,W) linear light → (H,W,3) u8."""

    def __init__(self, spec: CameraSpec, side: tuple[int, int], rng: np.random.Generator) -> None:
        self.spec, self.rng = spec, rng
        self.curve = tone_curve(spec)
        # The slope of the tone curve at mid-grey converts the noise from 8-bit steps to linear light.
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
        """Return one picture. `light` is overwritten."""
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
        for channel in range(3):  # one plane at a time fits into the processor cache
            steps = np.multiply(light[channel], np.float32(LUT_SIZE - 1), out=self.scratch[0])
            np.clip(steps, 0, LUT_SIZE - 1, out=steps)
            rgb[:, :, channel] = self.curve.take(steps.astype(np.intp), mode="wrap")  # faster than "clip"
        return rgb


class LocalTone:
    """Brighten dark parts of the picture and darken bright ones, as phones do; it follows slowly."""

    def __init__(self, strength: float, shape: tuple[int, int]) -> None:
        self.strength = strength
        cells = [max(2, side // LOCAL_TONE_PX) for side in shape]
        self.pool = [_pooling(n, side) for n, side in zip(cells, shape, strict=True)]
        self.spread = [interpolation(side, n) for n, side in zip(cells, shape, strict=True)]
        self.log_level: FloatArray | None = None

    def apply(self, light: FloatArray) -> None:
        """Change one picture (3,H,W) in place."""
        level = sum(w * (self.pool[0] @ plane @ self.pool[1].T) for w, plane in zip(LUMA, light, strict=True))
        log_level = np.log(np.maximum(level, 1e-3))
        if self.log_level is None:
            self.log_level = log_level
        self.log_level += np.float32(LOCAL_TONE_FOLLOWS) * (log_level - self.log_level)
        gain = np.exp(np.float32(-0.5 * self.strength) * (self.log_level - self.log_level.mean()))
        light *= self.spread[0] @ gain @ self.spread[1].T


def _pooling(cells: int, pixels: int) -> FloatArray:
    """Return the matrix (cells,pixels) of the means over equal parts of a line."""
    matrix = (np.arange(pixels) * cells // pixels == np.arange(cells)[:, None]).astype(np.float32)
    return matrix / matrix.sum(1, keepdims=True)


def optics(layer: FloatArray, spec: CameraSpec) -> FloatArray:
    """Blur and sharpen a planar picture, like the lens and the camera software."""
    if spec.blur_px > 0.05:
        layer = image_filters.gaussian_filter1d(layer, spec.blur_px, -1, "nearest", truncate=3)
        layer = image_filters.gaussian_filter1d(layer, spec.blur_px, -2, "nearest", truncate=3)
    if spec.sharpen > 0:
        smooth = image_filters.box_filter3(layer)
        layer = np.maximum(layer + np.float32(spec.sharpen) * (layer - smooth), 0)
    return layer.astype(np.float32, copy=False)


def optics_reach(spec: CameraSpec) -> int:
    """Return the radius of the blur and sharpening filters in pixels."""
    return int(np.ceil(3 * spec.blur_px)) + 2


def averaged_noise(size_px: float, pixels: float) -> float:
    """Return the standard deviation that is left of unit noise after a mean over `pixels` × `pixels`."""
    offsets = np.arange(-6, 7)
    kernel = np.exp(-0.5 * (offsets / size_px) ** 2) if size_px > BLURRED_NOISE_PX else 1.0 * (offsets == 0)
    edges = np.clip(np.arange(math.ceil(pixels) + 1), 0, pixels)
    averaged = np.convolve(kernel / np.linalg.norm(kernel), np.diff(edges) / pixels)
    return float(averaged @ averaged)  # the variance along each of the two axes


def _noise_pool(spec: CameraSpec, side: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Return a plane of noise that is larger than a frame. Each frame uses a random part of it."""
    shape = (3, side[0] + 96, side[1] + 96)
    pool = rng.standard_normal(shape, dtype=np.float32)
    grey = rng.uniform(0, 0.75)
    pool = np.float32(np.sqrt(1 - grey)) * pool + np.float32(np.sqrt(grey)) * pool[:1]
    if spec.noise_size_px > BLURRED_NOISE_PX:
        for axis in (1, 2):
            pool = image_filters.gaussian_filter1d(pool, spec.noise_size_px, axis, "wrap", truncate=2.5)
    return (pool / np.float32(pool.std())).astype(np.float32)
