"""Write the layout of iBVP: pNN_x/pNN_x_rgb/*.bmp at 30 Hz and pNN_x/pNN_x_bvp.csv with signal quality."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from ... import fileio
from ...types import ByteArray
from ..codec import transcode
from ..recording import SyntheticRecording
from . import PlannedRecording

NAME = "ibvp"
PPG_HZ = 250.0
SESSIONS = {"a": "still", "b": "talk", "c": "sway", "d": "turn"}


def plan(subjects: int) -> list[PlannedRecording]:
    clock = {"camera.fps": 30.0, "camera.jitter": 0.0}
    return [
        PlannedRecording(
            f"p{subject:02d}_{session}", subject, 10 * subject + number, {**clock, "motion.kind": kind}
        )
        for subject in range(1, subjects + 1)
        for number, (session, kind) in enumerate(SESSIONS.items())
    ]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return (folder / planned.name / f"{planned.name}_bvp.csv").is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    pictures = transcode(recording.frames(), recording.codec, recording.fps)
    for index, rgb in enumerate(pictures):
        place = folder / planned.name / f"{planned.name}_rgb" / f"{index:06d}.bmp"
        fileio.write_bytes(place, bmp(rgb))
    t_s = np.arange(0, len(recording.t_s) / 30, 1 / PPG_HZ)
    rows = [f"{value:.6f},{index},1,1" for index, value in enumerate(recording.wave(t_s))]
    text = "\n".join(["BVP,index,SQ1,SQ2", *rows]) + "\n"
    fileio.write_text(folder / planned.name / f"{planned.name}_bvp.csv", text)


def bmp(rgb: ByteArray) -> bytes:
    """Encode a picture (H,W,3) u8 as a bitmap file: rows from the bottom, in the order blue, green, red."""
    height, width, _ = rgb.shape
    rows = np.zeros((height, 3 * width + -3 * width % 4), np.uint8)
    rows[:, : 3 * width] = rgb[::-1, :, ::-1].reshape(height, 3 * width)
    offset = 54
    header = struct.pack("<2sIHHI", b"BM", offset + rows.size, 0, 0, offset)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, rows.size, 2835, 2835, 0, 0)
    return header + info + rows.tobytes()
