"""Lamps and how they change: a key light, a second light from elsewhere, ambient light.

A lamp's strength per frame is (T,3): it may drift, step, flicker with the mains or change like a screen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import FloatArray
from .fields import events, ramp, wander

KINDS = ("constant", "drift", "steps", "screen", "flicker", "shadow", "lamp")


@dataclass(frozen=True, slots=True)
class LightSpec:
    """What the light does."""

    kind: str = "constant"
    strength: float = 1.0
    side: float = 0.3  # −1 from the left … 1 from the right
    height: float = 0.5  # 0 level … 1 from above
    hard: float = 0.6  # share of the key light; the rest is ambient
    second: float = 0.3  # strength of the second light, beside the key light's 1
    warmth: float = 0.0  # −1 blue … 1 orange
    lux: float = 300.0
    mains_hz: float = 50.0
    mains_ripple: float = 0.0  # peak ripple of the light at twice the mains frequency
    lamp_bpm: float = 90.0  # a lamp that pulses like a heart (no-pulse worlds)


@dataclass(frozen=True, slots=True, eq=False)
class Light:
    """The lamps of one clip."""

    key: FloatArray  # (T,3) strength of the key light (its colour included)
    second: FloatArray  # (T,3)
    key_from: FloatArray  # (3,) unit vector towards the key light
    second_from: FloatArray  # (3,)
    ambient: float  # share of each lamp that comes from all sides
    shadow: FloatArray | None  # (T,) position of a moving shadow's edge over the frame, 0–1; None: no shadow
    shadow_depth: float
    shadow_angle: float


def make_light(spec: LightSpec, t_s: FloatArray, rng: np.random.Generator) -> Light:
    frames = len(t_s)
    colour = np.exp(spec.warmth * np.array([0.35, 0.0, -0.45]) + rng.normal(0, 0.03, 3))
    other = np.exp(rng.normal(0, 0.15, 3))
    gain = np.ones((frames, 3))
    screen: FloatArray = np.ones((frames, 3))
    k = spec.strength
    shadow = None
    if spec.kind in ("drift", "steps", "screen", "shadow"):
        gain *= np.exp(k * 0.06 * wander(t_s, rng.uniform(0.05, 0.5), rng))[:, None]
    if spec.kind == "steps":
        for at_s in events(t_s, 0.25, rng):
            change = k * rng.normal(0, 0.15) * np.exp(rng.normal(0, 0.15, 3))
            gain *= np.exp(ramp(t_s, at_s, rng.choice([0.03, 0.3]))[:, None] * change)
    if spec.kind == "screen":
        screen = _screen(t_s, k, rng)
    if spec.kind == "flicker":
        pace_hz = rng.uniform(0.5, 3.5)
        gain *= (
            1 + k * rng.uniform(0.003, 0.04) * np.sin(2 * np.pi * pace_hz * t_s + rng.uniform(0, 6))[:, None]
        )
        gain *= np.exp(k * 0.01 * wander(t_s, 6, rng))[:, None]
    if spec.kind == "lamp":
        phase = 2 * np.pi * spec.lamp_bpm / 60 * t_s + rng.uniform(0, 6)
        gain *= (1 + 0.01 * k * (np.sin(phase) + 0.3 * np.sin(2 * phase)))[:, None]
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
    )


def mains(
    spec: LightSpec, t_s: FloatArray, rows: int, exposure_s: float, readout_s: float, phase: float
) -> FloatArray:
    """(T,rows) gain of the mains ripple on a rolling shutter that integrates `exposure_s`."""
    flicker_hz = 2 * spec.mains_hz
    depth = spec.mains_ripple * np.sinc(flicker_hz * exposure_s)
    moment = t_s[:, None] + readout_s * np.linspace(0, 1, rows)[None, :]
    gain: FloatArray = 1 + depth * np.sin(2 * np.pi * flicker_hz * moment + phase)
    return gain.astype(np.float32)


def _screen(t_s: FloatArray, k: float, rng: np.random.Generator) -> FloatArray:
    """A film on a screen: cuts between scenes of different colour, and slower changes within."""
    level = np.ones((len(t_s), 3))
    for at_s in events(t_s, rng.uniform(0.2, 1.0), rng):
        cut = rng.normal(0, 0.35 * k) + rng.normal(0, 0.25 * k, 3)
        level *= np.exp(ramp(t_s, at_s, 0.04)[:, None] * (cut - 0.5 * np.log(level.mean())))
    slow = np.stack([wander(t_s, 0.8, rng) for _ in range(3)], axis=1)
    return level * np.exp(0.08 * k * slow)


def _direction(side: float, height: float) -> FloatArray:
    vector = np.array([side, -height, 1.0])
    return (vector / np.linalg.norm(vector)).astype(np.float32)
