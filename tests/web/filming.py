"""Films for the fake camera, made by the generator; noisy, because eight bits would swallow a clean pulse."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from phase_rppg import synth
from phase_rppg.synth.recording import make_recording
from phase_rppg.types import ByteArray, FloatArray

HEIGHT, WIDTH, FPS = 180, 240, 30
# A film for the camera carries its frame numbers on its left edge: in each of three columns a dark block
# stands at one of eighteen heights, a digit. Blocks only move, so the mean of the background keeps still.
COLUMN_PX, BLOCK_PX, DIGITS = 5, 10, 3
BASE = HEIGHT // BLOCK_PX
DARK, LIGHT = 30, 150


def film(
    bpm: float, seconds: float, world: str = "studio", seed: int = 7
) -> tuple[list[ByteArray], FloatArray, float]:
    """Frames (H,W,3) of one face that keeps still, their times, and the true mean rate.

    The pulse is even, so a film that holds a whole number of beats can be looped.
    """
    fixed = {
        "pulse.bpm": bpm, "pulse.rsa": 0.0, "pulse.hrv_s": 0.0, "pulse.drift_bpm": 0.0,
        "pulse.amplitude": 0.02, "subject.fitzpatrick": 2, "frame.face_px": 250.0, "motion.kind": "fixed",
        "light.kind": "constant", "camera.fps": 30.0, "camera.jitter": 0.0,
    }  # fmt: skip
    made = make_recording(
        synth.load(world), seed, 0, seconds=seconds, height=HEIGHT, width=WIDTH, fixed=fixed
    )
    frames = [rgb.copy() for rgb in made.frames()]
    return frames, made.t_s, float(np.mean(made.bpm(made.t_s)))


def empty(seconds: float) -> list[ByteArray]:
    """A wall with noise."""
    rng = np.random.default_rng(5)
    return list(rng.integers(70, 90, (round(seconds * FPS), HEIGHT, WIDTH, 3), dtype=np.uint8))


def numbered(rgb: ByteArray, number: int) -> ByteArray:
    """The picture with its number on the left edge."""
    rgb = rgb.copy()
    rgb[:, : DIGITS * COLUMN_PX] = LIGHT
    for place in range(DIGITS):
        top = number // BASE**place % BASE * BLOCK_PX
        rgb[top : top + BLOCK_PX, place * COLUMN_PX : (place + 1) * COLUMN_PX] = DARK
    return rgb


def write_y4m(path: Path, frames: Iterable[ByteArray]) -> Path:
    """An uncompressed film as Chromium's fake camera reads it; it plays in a loop at 30 fps, numbered."""
    import av

    with open(path, "wb") as file:
        file.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{FPS}:1 Ip A1:1 C420jpeg\n".encode())
        for number, rgb in enumerate(frames):
            picture = av.VideoFrame.from_ndarray(numbered(rgb, number), format="rgb24").reformat(
                format="yuv420p"
            )
            file.write(b"FRAME\n" + picture.to_ndarray().tobytes())
    return path
