"""Films for the fake camera, made by the generator; noisy, because eight bits would swallow a clean pulse."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from phase_rppg import synth
from phase_rppg.synth import film as films
from phase_rppg.types import ByteArray, FloatArray

HEIGHT, WIDTH, FPS = 180, 240, 30
# The top left corner is a clock that tests can read: dark and less dark in turn, white when nobody is there.
CORNER_PX, DARK, LESS_DARK, GONE = 8, 40, 80, 255
TICK_FRAMES = 30


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
    made = films.film(synth.load(world), seed, 0, seconds=seconds, height=HEIGHT, width=WIDTH, fixed=fixed)
    frames = [rgb.copy() for rgb in made.frames()]
    for i, rgb in enumerate(frames):
        rgb[:CORNER_PX, :CORNER_PX] = LESS_DARK if i // TICK_FRAMES % 2 else DARK
    return frames, made.t_s, float(np.mean(made.bpm(made.t_s)))


def empty(seconds: float) -> list[ByteArray]:
    """A wall with noise and the mark of absence."""
    rng = np.random.default_rng(5)
    shape = (round(seconds * FPS), HEIGHT, WIDTH, 3)
    frames = list(rng.integers(70, 90, shape, dtype=np.uint8))
    for rgb in frames:
        rgb[:CORNER_PX, :CORNER_PX] = GONE
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
