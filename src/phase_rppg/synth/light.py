"""Light sources over time: a key light, a second light from another direction, ambient light.

The intensity of a source is (T,3). It can drift, step, flicker with the mains or change like a screen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import FloatArray
from .random_fields import poisson_events, ramp, smooth_noise
from .skin import BLOOD_VOLUME

KINDS = ("constant", "drift", "steps", "screen", "flicker", "shadow", "lamp", "face_lamp")


@dataclass(frozen=True, slots=True)
class LightSpec:
    """The direction, colour and change of the light."""

    kind: str = "constant"  # how the light changes, one of light.KINDS
    strength: float = 1.0  # size of the change, 1 is typical
    side: float = 0.3  # −1 from the left … 1 from the right
    height: float = 0.5  # 0 level … 1 from above
    hard: float = 0.6  # share of the key light; the rest is ambient
    second: float = 0.3  # intensity of the second light relative to the key light
    warmth: float = 0.0  # −1 blue … 1 orange
    lux: float = 300.0  # illuminance; less light gives more noise
    mains_hz: float = 50.0  # frequency of the mains; lamps flicker at twice of it
    mains_ripple: float = 0.0  # peak ripple of the light at twice the mains frequency
    lamp_bpm: float = 90.0  # rate of a lamp that flickers like a pulse (worlds without a pulse)
    lamp_depth: float = 0.01  # "face_lamp": peak modulation of the light on the face
    lamp_tint: float = 0.0  # "face_lamp": colour of the modulation, −1 blue … 1 orange
    lamp_blood: float = 0.0  # "face_lamp": 0 the colour of `lamp_tint` … 1 the colour of a pulse
    spill: float = 1.0  # share of the second light that reaches the background
    falloff: float = 0.0  # 1 / radius of the spot of the second light in box heights; 0: even


@dataclass(frozen=True, slots=True, eq=False)
class Light:
    """The light sources of one clip."""

    key: FloatArray  # (T,3) intensity and colour of the key light
    second: FloatArray  # (T,3)
    key_from: FloatArray  # (3,) unit vector towards the key light
    second_from: FloatArray  # (3,)
    ambient: float  # share of ambient light in each source
    shadow: FloatArray | None  # (T,) position 0–1 of the edge of a moving shadow; None: no shadow
    shadow_depth: float
    shadow_angle: float
    spill: float = 1.0  # share of the second light that reaches the background
    falloff: float = 0.0  # 1 / radius of the spot of the second light in box heights
    spot: tuple[float, float] = (0.0, 0.0)  # its centre (u, v) in head coordinates


def make_light(spec: LightSpec, t_s: FloatArray, rng: np.random.Generator) -> Light:
    """Draw the light sources of one clip."""
    frames = len(t_s)
    colour = np.exp(spec.warmth * np.array([0.35, 0.0, -0.45]) + rng.normal(0, 0.03, 3))
    other = np.exp(rng.normal(0, 0.15, 3))
    gain = np.ones((frames, 3))
    screen: FloatArray = np.ones((frames, 3))
    k = spec.strength
    shadow = None
    if spec.kind in ("drift", "steps", "screen", "shadow"):
        gain *= np.exp(k * 0.06 * smooth_noise(t_s, rng.uniform(0.05, 0.5), rng))[:, None]
    if spec.kind == "steps":
        for at_s in poisson_events(t_s, 0.25, rng):
            change = k * rng.normal(0, 0.15) * np.exp(rng.normal(0, 0.15, 3))
            gain *= np.exp(ramp(t_s, at_s, rng.choice([0.03, 0.3]))[:, None] * change)
    if spec.kind == "screen":
        screen = _screen(t_s, k, rng)
    if spec.kind == "flicker":
        frequency_hz = rng.uniform(0.5, 3.5)
        gain *= (
            1
            + k
            * rng.uniform(0.003, 0.04)
            * np.sin(2 * np.pi * frequency_hz * t_s + rng.uniform(0, 6))[:, None]
        )
        gain *= np.exp(k * 0.01 * smooth_noise(t_s, 6, rng))[:, None]
    if spec.kind == "lamp":
        phase = 2 * np.pi * spec.lamp_bpm / 60 * t_s + rng.uniform(0, 6)
        gain *= (1 + 0.01 * k * (np.sin(phase) + 0.3 * np.sin(2 * phase)))[:, None]
    if spec.kind == "face_lamp":
        modulation = spec.lamp_depth * _lamp_wave(spec.lamp_bpm, t_s, rng)[:, None] * _lamp_colour(spec)
        # The depth refers to both lights together, so the second light alone changes more.
        screen = np.maximum(1 + modulation * (colour / (max(spec.second, 1e-3) * other) + 1), 0)
    if spec.kind == "shadow":
        shadow = 0.5 + 0.7 * np.sin(2 * np.pi * rng.uniform(0.05, 0.4) * t_s + rng.uniform(0, 6))
    return Light(
        key=(gain * colour).astype(np.float32),
        second=(spec.second * gain * screen * other).astype(np.float32),
        key_from=_direction(spec.side, spec.height),
        second_from=_direction(
            -spec.side * rng.uniform(0.2, 1.5) + rng.normal(0, 0.3), rng.uniform(-0.3, 0.8)
        ),
        ambient=1 - spec.hard,
        shadow=shadow,
        shadow_depth=k * rng.uniform(0.05, 0.4),
        shadow_angle=rng.uniform(0, 2 * np.pi),
        spill=spec.spill,
        falloff=spec.falloff,
        spot=(rng.uniform(-0.25, 0.25), rng.uniform(-0.3, 0.3)),
    )


def mains(
    spec: LightSpec, t_s: FloatArray, rows: int, exposure_s: float, readout_s: float, phase: float
) -> FloatArray:
    """Return the gain of the mains ripple for each row of a rolling shutter, (T,rows)."""
    flicker_hz = 2 * spec.mains_hz
    depth = spec.mains_ripple * np.sinc(flicker_hz * exposure_s)
    moment = t_s[:, None] + readout_s * np.linspace(0, 1, rows)[None, :]
    gain: FloatArray = 1 + depth * np.sin(2 * np.pi * flicker_hz * moment + phase)
    return gain.astype(np.float32)


def _lamp_wave(bpm: float, t_s: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return a wave (T,) of peak about 1: a sine, a sine with a harmonic or a soft square, steady or not."""
    phase = 2 * np.pi * bpm / 60 * t_s + rng.uniform(0, 2 * np.pi)
    if rng.random() < 0.5:
        phase = phase + rng.uniform(0.1, 0.6) * smooth_noise(t_s, 0.3, rng)
    shape = rng.integers(3)
    if shape == 0:
        return np.sin(phase)
    if shape == 1:
        return np.sin(phase) + rng.uniform(0.2, 0.5) * np.sin(2 * phase + rng.uniform(0, 2 * np.pi))
    return np.tanh(3 * np.sin(phase))


def _lamp_colour(spec: LightSpec) -> FloatArray:
    """Return the relative modulation of red, green and blue; the green one is 1."""
    tint = np.exp(spec.lamp_tint * np.array([0.35, 0.0, -0.45]))
    return tint + spec.lamp_blood * (BLOOD_VOLUME / BLOOD_VOLUME[1] - tint)


def _screen(t_s: FloatArray, k: float, rng: np.random.Generator) -> FloatArray:
    """Return the light of a screen that plays a film: cuts between colours, and slower changes (T,3)."""
    level = np.ones((len(t_s), 3))
    for at_s in poisson_events(t_s, rng.uniform(0.2, 1.0), rng):
        cut = rng.normal(0, 0.35 * k) + rng.normal(0, 0.25 * k, 3)
        level *= np.exp(ramp(t_s, at_s, 0.04)[:, None] * (cut - 0.5 * np.log(level.mean())))
    slow = np.stack([smooth_noise(t_s, 0.8, rng) for _ in range(3)], axis=1)
    return level * np.exp(0.08 * k * slow)


def _direction(side: float, height: float) -> FloatArray:
    vector = np.array([side, -height, 1.0])
    return (vector / np.linalg.norm(vector)).astype(np.float32)
