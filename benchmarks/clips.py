"""The videos of the speed benchmarks: synthetic faces with sensor noise, made once and kept in a folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from phase_rppg.types import ByteArray
from phase_rppg.video import write_video
from phase_rppg.video.encode import repeat_video

BASE_S = 10  # of the rendered scene
FPS = 30
NOISE = 3.0  # standard deviation of the sensor noise, in grey levels
# Height: (width, bit/s). These are typical rates of webcams and phones at 30 frames per second.
SIZES = {240: (320, 400_000), 480: (640, 1_500_000), 720: (1280, 5_000_000), 1080: (1920, 12_000_000),
         2160: (3840, 40_000_000)}  # fmt: skip


def scene(folder: Path) -> Path:
    """Return a lossless rendering of a face, 640×480, from which all clips are made."""
    path = folder / "scene.mkv"
    if not path.exists():
        from phase_rppg import synth
        from phase_rppg.synth.recording import make_recording

        fixed = {"frame.face_px": 150.0, "motion.kind": "still", "light.kind": "constant", "pulse.bpm": 72.0,
                 "pulse.drift_bpm": 0.0, "subject.fitzpatrick": 2, "pulse.amplitude": 0.015}  # fmt: skip
        world = synth.load("studio")
        recording = make_recording(world, 7, 0, seconds=BASE_S, height=480, width=640, fixed=fixed)
        write_video(path, recording.frames(), FPS, codec="raw")
    return path


def clip(
    folder: Path, seconds: int = BASE_S, height: int = 480, fps: int = FPS, faces: int = 0, bitrate: int = 0
) -> Path:
    """Return a clip; long ones repeat a short one without encoding it again.

    With `faces`, it shows a group of small faces in a picture of twice the width. `bitrate` replaces the
    usual one.
    """
    base_s = min(BASE_S if height <= 1080 else 2, seconds)
    kind = f"{height}p-{fps}fps-{faces}faces" + (f"-{bitrate}bps" if bitrate else "")
    path, base = folder / f"{kind}-{seconds}s.mp4", folder / f"{kind}-base{base_s}s.mp4"
    if path.exists():
        return path
    if not base.exists():
        width, usual = SIZES[height]
        width, bitrate = (2 * width, 2 * usual) if faces else (width, bitrate or usual)
        frames = _frames(scene(folder), base_s, (height, width), fps, faces)
        write_video(base, frames, fps, bitrate=round(bitrate * fps / FPS), preset="veryfast")
    if seconds == base_s:
        os.link(base, path)
    else:
        repeat_video(base, path, round(seconds / base_s))
    return path


def _frames(source: Path, seconds: int, size: tuple[int, int], fps: int, faces: int) -> Iterator[ByteArray]:
    """Yield the frames of the scene at another size and rate with fresh noise, or a group of faces."""
    import av
    from av.video.reformatter import Interpolation, VideoReformatter

    rng = np.random.default_rng(0)
    height, width = size
    noise = rng.normal(0, NOISE, (height + 64, width + 64)).astype(np.int8)
    scale = VideoReformatter()
    with av.open(str(source)) as container:
        pictures = [
            picture for _, picture in zip(range(seconds * FPS), container.decode(video=0), strict=False)
        ]
    for index in range(seconds * fps):
        picture = pictures[index * FPS // fps % len(pictures)]
        if not faces:
            rgb = scale.reformat(
                picture, width, height, "rgb24", interpolation=Interpolation.BICUBIC
            ).to_ndarray()
        else:
            tile = scale.reformat(picture, width // 4, height // 2, "rgb24").to_ndarray()
            rgb = group(tile, faces)
        top, left = rng.integers(0, 64, 2)
        noisy = rgb.astype(np.int16) + noise[top : top + height, left : left + width, None]
        yield np.clip(noisy, 0, 255).astype(np.uint8)


def group(tile: npt.NDArray[Any], faces: int) -> ByteArray:
    """Return a grid of 2×4 tiles of which the first ones show the face and the others its background."""
    empty = np.broadcast_to(tile[:1, :1], tile.shape)
    tiles = [tile if number < faces else empty for number in range(8)]
    return np.vstack([np.hstack(tiles[:4]), np.hstack(tiles[4:])])
