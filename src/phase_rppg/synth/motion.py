"""The motion of a head: one pose for each camera frame.

Lengths are in box heights, angles in radians, openings 0–1. Every kind of motion adds to the same pose, so
that a talking person can also sway.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..types import FloatArray
from .random_fields import poisson_events, ramp, smooth_noise

KINDS = ("fixed", "still", "sway", "nod", "turn", "talk", "walk", "mixed")


@dataclass(slots=True, eq=False)
class Poses:
    """The pose of the head in each frame; all arrays are (T,)."""

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
    camera_x: FloatArray = field(init=False)  # shift of the whole scene by a hand-held camera
    camera_y: FloatArray = field(init=False)
    brow: FloatArray = field(init=False)  # 0 at rest … 1 raised
    skew_x: FloatArray = field(init=False)  # rolling shutter: shift of a row per box height below the centre
    skew_y: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        for name in NAMES:
            setattr(self, name, np.zeros(len(self.t_s)))

    def part(self, frames: slice) -> Poses:
        """Return the poses of some frames."""
        some = Poses(self.t_s[frames])
        for name in NAMES:
            setattr(some, name, getattr(self, name)[frames])
        return some


NAMES = (
    "x", "y", "zoom", "roll", "yaw", "pitch", "jaw", "blink", "smile", "camera_x", "camera_y",
    "brow", "skew_x", "skew_y",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MotionSpec:
    """The kind of motion and its strength."""

    kind: str = "still"  # kind of motion, one of motion.KINDS
    strength: float = 1.0  # size of the motion, 1 is typical
    breathing: float = 1.0  # strength of the motion by breathing
    heartbeat: float = 0.0  # ballistocardiographic motion of each beat, in box heights
    blinks_hz: float = 0.25  # blinks per second
    handheld: float = 0.0  # slow shake of the camera, 1 is typical
    tremor: float = 0.0  # standard deviation of the tremor of a hand that holds the camera, in box heights
    expression: float = 0.0  # strength of smiles and raised brows
    turned: float = 0.0  # range of the constant angle between the head and the camera
    lean: float = 0.0  # strength of a slow tilt towards the shoulders


def make_poses(
    spec: MotionSpec, t_s: FloatArray, breathing: FloatArray, pulse: FloatArray, rng: np.random.Generator
) -> Poses:
    """Draw the motion of one clip; `breathing` and `pulse` are sampled at `t_s`."""
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
        _oscillate(poses, "pitch", k * rng.uniform(0.05, 0.3), rng)
    if spec.kind in ("turn", "mixed"):
        _oscillate(poses, "yaw", k * rng.uniform(0.08, 0.45), rng)
    if spec.kind in ("talk", "mixed"):
        _talk(poses, k, rng)
    if spec.kind == "walk":
        _walk(poses, k, rng)
    if spec.kind in ("sway", "mixed", "talk") and rng.random() < 0.5:
        poses.smile += rng.uniform(0.3, 1) * np.clip(smooth_noise(t_s, 0.3, rng), 0, 1.5)
    if spec.handheld > 0:
        poses.camera_x += (
            0.012 * spec.handheld * (smooth_noise(t_s, 0.8, rng) + 0.3 * smooth_noise(t_s, 4, rng))
        )
        poses.camera_y += (
            0.012 * spec.handheld * (smooth_noise(t_s, 0.8, rng) + 0.3 * smooth_noise(t_s, 4, rng))
        )
    if spec.tremor > 0:
        for track in (poses.camera_x, poses.camera_y):
            track += spec.tremor * (smooth_noise(t_s, 11, rng) + smooth_noise(t_s, 2, rng))
        poses.roll += 0.7 * spec.tremor * smooth_noise(t_s, 6, rng)
    if spec.expression > 0:
        _expressions(poses, spec.expression, rng)
    for name, size in (("yaw", 0.25), ("pitch", 0.15), ("roll", 0.1)) if spec.turned > 0 else ():
        getattr(poses, name)[:] += spec.turned * size * rng.uniform(-1, 1)
    if spec.lean > 0:
        tilt = spec.lean * smooth_noise(t_s, rng.uniform(0.08, 0.4), rng)
        poses.roll += 0.1 * tilt
        poses.x += 0.03 * tilt
    return poses


def _posture(poses: Poses, k: float, rng: np.random.Generator) -> None:
    """Add slow sway, a small tremor, and occasional changes of position."""
    t_s = poses.t_s
    slow_hz = rng.uniform(0.1, 0.4)
    sizes = {"x": 0.02, "y": 0.012, "zoom": 0.015, "roll": 0.02, "yaw": 0.05, "pitch": 0.035}
    for name, size in sizes.items():
        track = getattr(poses, name)
        track += k * size * rng.uniform(0.3, 1.3) * smooth_noise(t_s, slow_hz, rng)
        track += k * size * rng.uniform(0.02, 0.12) * smooth_noise(t_s, rng.uniform(1, 3), rng)
        for at_s in poisson_events(t_s, 0.04 * k, rng):
            track += 1.5 * size * rng.normal() * ramp(t_s, at_s, rng.uniform(0.3, 1.2))


def _blinks(poses: Poses, rate_hz: float, rng: np.random.Generator) -> None:
    for at_s in poisson_events(poses.t_s, rate_hz, rng):
        length_s = rng.uniform(0.16, 0.35)
        closing = ramp(poses.t_s, at_s, 0.35 * length_s) - ramp(
            poses.t_s, at_s + 0.5 * length_s, 0.5 * length_s
        )
        poses.blink = np.maximum(poses.blink, closing)


def _oscillate(poses: Poses, name: str, size: float, rng: np.random.Generator) -> None:
    """Add an oscillation of varying frequency, sometimes at the rate of a heart, so that it gives no hint."""
    t_s = poses.t_s
    frequency_hz = rng.uniform(0.15, 0.7) if rng.random() < 0.75 else rng.uniform(0.7, 2.2)
    size = size * min(1.0, 0.45 / frequency_hz)
    dt = np.diff(t_s, prepend=t_s[0])
    phase = 2 * np.pi * np.cumsum(frequency_hz * np.exp(0.15 * smooth_noise(t_s, 0.3, rng)) * dt)
    oscillation = (
        size * np.exp(0.3 * smooth_noise(t_s, 0.25, rng)) * np.sin(phase + rng.uniform(0, 2 * np.pi))
    )
    getattr(poses, name)[:] += oscillation
    (poses.x if name == "yaw" else poses.y)[:] += 0.15 * oscillation


def _talk(poses: Poses, k: float, rng: np.random.Generator) -> None:
    t_s = poses.t_s
    speaking = np.clip(1.2 + smooth_noise(t_s, 0.35, rng), 0, 1)
    syllables = np.clip(0.35 + 0.55 * smooth_noise(t_s, rng.uniform(2.5, 5), rng), 0, 1)
    poses.jaw += np.clip(rng.uniform(0.4, 1.0) * speaking * syllables, 0, 1)
    for name, size in (("x", 0.006), ("y", 0.008), ("pitch", 0.03), ("yaw", 0.03), ("roll", 0.015)):
        getattr(poses, name)[:] += k * size * speaking * smooth_noise(t_s, rng.uniform(0.8, 2.0), rng)


def _expressions(poses: Poses, strength: float, rng: np.random.Generator) -> None:
    """Add smiles and raised brows of half a second to three seconds."""
    for name in ("smile", "brow"):
        for at_s in poisson_events(poses.t_s, 0.3, rng):
            rise_s, hold_s, size = rng.uniform(0.15, 0.5), rng.uniform(0.2, 2.0), rng.uniform(0.3, 1.2)
            course = ramp(poses.t_s, at_s, rise_s) - ramp(poses.t_s, at_s + rise_s + hold_s, 1.5 * rise_s)
            getattr(poses, name)[:] += strength * size * course


def add_rolling_shutter(poses: Poses, row_s: float) -> None:
    """Skew the picture of a moving face; `row_s` is the readout time of one box height of rows."""
    for axis in ("x", "y"):
        moved = getattr(poses, axis) + getattr(poses, f"camera_{axis}")
        setattr(poses, f"skew_{axis}", row_s * np.gradient(moved, poses.t_s))


def _walk(poses: Poses, k: float, rng: np.random.Generator) -> None:
    t_s = poses.t_s
    step_hz = rng.uniform(1.5, 2.3)
    phase = 2 * np.pi * step_hz * t_s + 0.4 * smooth_noise(t_s, 0.4, rng)
    poses.y += k * rng.uniform(0.01, 0.035) * np.sin(phase)
    poses.x += k * rng.uniform(0.006, 0.02) * np.sin(0.5 * phase + 1)
    poses.roll += k * 0.012 * np.sin(0.5 * phase + 2)
    poses.yaw += k * 0.04 * np.sin(0.5 * phase)
    poses.zoom += k * 0.02 * smooth_noise(t_s, 0.3, rng)
    poses.camera_x += k * 0.02 * smooth_noise(t_s, 1.0, rng)
    poses.camera_y += k * rng.uniform(0.005, 0.02) * np.sin(phase + 0.8)
