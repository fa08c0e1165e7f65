"""How a head moves: one pose per camera frame.

Lengths are in box heights, angles in radians, openings 0–1. Every kind of motion adds to the same pose, so
a talking person may also sway.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..types import FloatArray
from .fields import events, ramp, wander

KINDS = ("fixed", "still", "sway", "nod", "turn", "talk", "walk", "mixed")


@dataclass(slots=True, eq=False)
class Poses:
    """Where the head is in each frame; all arrays (T,)."""

    t_s: FloatArray
    x: FloatArray = field(init=False)
    y: FloatArray = field(init=False)
    zoom: FloatArray = field(init=False)  # log of the size
    roll: FloatArray = field(init=False)
    yaw: FloatArray = field(init=False)
    pitch: FloatArray = field(init=False)
    jaw: FloatArray = field(init=False)  # 0 closed … 1 wide open
    blink: FloatArray = field(init=False)
    smile: FloatArray = field(init=False)
    camera_x: FloatArray = field(init=False)  # the whole scene moves: a hand-held camera
    camera_y: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        for name in NAMES:
            setattr(self, name, np.zeros(len(self.t_s)))

    def part(self, frames: slice) -> Poses:
        """The poses of some of the frames."""
        some = Poses(self.t_s[frames])
        for name in NAMES:
            setattr(some, name, getattr(self, name)[frames])
        return some


NAMES = ("x", "y", "zoom", "roll", "yaw", "pitch", "jaw", "blink", "smile", "camera_x", "camera_y")


@dataclass(frozen=True, slots=True)
class MotionSpec:
    """What kind of motion, and how much."""

    kind: str = "still"
    strength: float = 1.0
    breathing: float = 1.0  # how much breathing moves the head
    heartbeat: float = 0.0  # box heights that each beat nods the head (ballistic motion)
    blinks_hz: float = 0.25
    handheld: float = 0.0
    turned: float = 0.0  # how far the head may look away from the camera throughout
    lean: float = 0.0  # how far it tilts to the shoulders, slowly


def make_poses(
    spec: MotionSpec, t_s: FloatArray, breathing: FloatArray, pulse: FloatArray, rng: np.random.Generator
) -> Poses:
    """Draw the motion of one clip; `breathing` and `pulse` are on the same clock."""
    poses = Poses(t_s)
    k = spec.strength
    if spec.kind == "fixed":
        return poses
    _posture(poses, k * {"still": 0.35, "sway": 1.6}.get(spec.kind, 0.8), rng)
    poses.y += 0.004 * spec.breathing * breathing
    poses.zoom += 0.003 * spec.breathing * breathing
    poses.pitch += 0.012 * spec.breathing * breathing * rng.uniform(-1, 1)
    poses.y += spec.heartbeat * pulse
    poses.pitch += 0.5 * spec.heartbeat * pulse * rng.uniform(-1, 1)
    _blinks(poses, spec.blinks_hz, rng)
    if spec.kind in ("nod", "mixed"):
        _swing(poses, "pitch", k * rng.uniform(0.05, 0.3), rng)
    if spec.kind in ("turn", "mixed"):
        _swing(poses, "yaw", k * rng.uniform(0.08, 0.45), rng)
    if spec.kind in ("talk", "mixed"):
        _talk(poses, k, rng)
    if spec.kind == "walk":
        _walk(poses, k, rng)
    if spec.kind in ("sway", "mixed", "talk") and rng.random() < 0.5:
        poses.smile += rng.uniform(0.3, 1) * np.clip(wander(t_s, 0.3, rng), 0, 1.5)
    if spec.handheld > 0:
        poses.camera_x += 0.012 * spec.handheld * (wander(t_s, 0.8, rng) + 0.3 * wander(t_s, 4, rng))
        poses.camera_y += 0.012 * spec.handheld * (wander(t_s, 0.8, rng) + 0.3 * wander(t_s, 4, rng))
    for name, size in (("yaw", 0.25), ("pitch", 0.15), ("roll", 0.1)) if spec.turned > 0 else ():
        getattr(poses, name)[:] += spec.turned * size * rng.uniform(-1, 1)
    if spec.lean > 0:
        tilt = spec.lean * wander(t_s, rng.uniform(0.08, 0.4), rng)
        poses.roll += 0.1 * tilt
        poses.x += 0.03 * tilt
    return poses


def _posture(poses: Poses, k: float, rng: np.random.Generator) -> None:
    """Nobody sits still: slow sway, a faint tremor, and now and then a change of position."""
    t_s = poses.t_s
    slow_hz = rng.uniform(0.1, 0.4)
    sizes = {"x": 0.02, "y": 0.012, "zoom": 0.015, "roll": 0.02, "yaw": 0.05, "pitch": 0.035}
    for name, size in sizes.items():
        track = getattr(poses, name)
        track += k * size * rng.uniform(0.3, 1.3) * wander(t_s, slow_hz, rng)
        track += k * size * rng.uniform(0.02, 0.12) * wander(t_s, rng.uniform(1, 3), rng)
        for at_s in events(t_s, 0.04 * k, rng):
            track += 1.5 * size * rng.normal() * ramp(t_s, at_s, rng.uniform(0.3, 1.2))


def _blinks(poses: Poses, rate_hz: float, rng: np.random.Generator) -> None:
    for at_s in events(poses.t_s, rate_hz, rng):
        length_s = rng.uniform(0.16, 0.35)
        closing = ramp(poses.t_s, at_s, 0.35 * length_s) - ramp(
            poses.t_s, at_s + 0.5 * length_s, 0.5 * length_s
        )
        poses.blink = np.maximum(poses.blink, closing)


def _swing(poses: Poses, name: str, size: float, rng: np.random.Generator) -> None:
    """To and fro, at a pace that wanders; sometimes at the pace of a heart, to be no clue."""
    t_s = poses.t_s
    pace_hz = rng.uniform(0.15, 0.7) if rng.random() < 0.75 else rng.uniform(0.7, 2.2)
    size = size * min(1.0, 0.45 / pace_hz)
    dt = np.diff(t_s, prepend=t_s[0])
    phase = 2 * np.pi * np.cumsum(pace_hz * np.exp(0.15 * wander(t_s, 0.3, rng)) * dt)
    swing = size * np.exp(0.3 * wander(t_s, 0.25, rng)) * np.sin(phase + rng.uniform(0, 2 * np.pi))
    getattr(poses, name)[:] += swing
    (poses.x if name == "yaw" else poses.y)[:] += 0.15 * swing


def _talk(poses: Poses, k: float, rng: np.random.Generator) -> None:
    t_s = poses.t_s
    speaking = np.clip(1.2 + wander(t_s, 0.35, rng), 0, 1)
    syllables = np.clip(0.35 + 0.55 * wander(t_s, rng.uniform(2.5, 5), rng), 0, 1)
    poses.jaw += np.clip(rng.uniform(0.4, 1.0) * speaking * syllables, 0, 1)
    for name, size in (("x", 0.006), ("y", 0.008), ("pitch", 0.03), ("yaw", 0.03), ("roll", 0.015)):
        getattr(poses, name)[:] += k * size * speaking * wander(t_s, rng.uniform(0.8, 2.0), rng)


def _walk(poses: Poses, k: float, rng: np.random.Generator) -> None:
    t_s = poses.t_s
    step_hz = rng.uniform(1.5, 2.3)
    phase = 2 * np.pi * step_hz * t_s + 0.4 * wander(t_s, 0.4, rng)
    poses.y += k * rng.uniform(0.01, 0.035) * np.sin(phase)
    poses.x += k * rng.uniform(0.006, 0.02) * np.sin(0.5 * phase + 1)
    poses.roll += k * 0.012 * np.sin(0.5 * phase + 2)
    poses.yaw += k * 0.04 * np.sin(0.5 * phase)
    poses.zoom += k * 0.02 * wander(t_s, 0.3, rng)
    poses.camera_x += k * 0.02 * wander(t_s, 1.0, rng)
    poses.camera_y += k * rng.uniform(0.005, 0.02) * np.sin(phase + 0.8)
