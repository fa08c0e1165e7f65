"""Films for the fake camera, made by the generator; noisy, because eight bits would swallow a clean pulse."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from phase_rppg import synth
from phase_rppg.synth.sample import filmed, stage
from phase_rppg.types import ByteArray, FloatArray

HEIGHT, WIDTH, FPS = 180, 240, 30
GONE = 255  # the top left corner turns white when nobody is there: tests can see when that is


def film(
    bpm: float, seconds: float, kind: str = "person", seed: int = 7
) -> tuple[list[ByteArray], FloatArray, float]:
    """Frames (H,W,3) of one face, their times, and the true mean rate."""
    world = synth.load("wild")
    fixed = {
        "pulse.bpm": bpm, "pulse.drift_bpm": 0.0, "subject.kind": kind, "subject.fitzpatrick": 2,
        "frame.face_px": 96.0, "frame.people": 1, "motion.kind": "still", "motion.strength": 0.5,
        "light.kind": "constant", "light.lux": 300.0, "camera.fps": 30.0, "camera.noise": 2.0,
    }  # fmt: skip
    staged = stage(world, seed, 0, seconds, shape=(HEIGHT, WIDTH), fixed=fixed)
    frames = [_unmarked(rgb) for rgb in filmed(staged, world, seed, 0)]
    pulse = staged.pulses[0]
    return frames, staged.scene.t_s, float(np.mean(pulse.bpm[pulse.t_s <= seconds]))


def empty(seconds: float) -> list[ByteArray]:
    """A wall with noise and the mark of absence."""
    rng = np.random.default_rng(5)
    shape = (round(seconds * FPS), HEIGHT, WIDTH, 3)
    frames = list(rng.integers(70, 90, shape, dtype=np.uint8))
    for rgb in frames:
        rgb[:16, :16] = GONE
    return frames


def write_y4m(path: Path, frames: Iterable[ByteArray]) -> Path:
    """An uncompressed film as Chromium's fake camera reads it; it plays in a loop at 30 fps."""
    import av

    with open(path, "wb") as file:
        file.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{FPS}:1 Ip A1:1 C420jpeg\n".encode())
        for rgb in frames:
            picture = av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")
            file.write(b"FRAME\n" + picture.to_ndarray().tobytes())
    return path


def _unmarked(rgb: ByteArray) -> ByteArray:
    rgb = rgb.copy()
    rgb[:16, :16] = 40
    return rgb
