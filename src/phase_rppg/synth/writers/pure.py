"""Write the layout of PURE: SS-TT/SS-TT/Image<ns>.png, and SS-TT/SS-TT.json with an oximeter at 60 Hz."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from ... import fileio
from ...types import ByteArray
from ..codec import transcode
from ..recording import SyntheticRecording
from . import PlannedRecording

NAME = "pure"
OXIMETER_HZ = 60.0
_START_NS = 1_392_643_993_642_815_000
# Steady, talking, slow and fast translation, small and medium rotation.
TASKS = (("still", 0.5), ("talk", 0.8), ("sway", 0.7), ("sway", 1.6), ("turn", 0.5), ("turn", 1.0))


def plan(subjects: int) -> list[PlannedRecording]:
    return [
        PlannedRecording(
            f"{subject:02d}-{task:02d}",
            subject,
            10 * subject + task,
            {"motion.kind": kind, "motion.strength": k},
        )
        for subject in range(1, subjects + 1)
        for task, (kind, k) in enumerate(TASKS, 1)
    ]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return (folder / planned.name / f"{planned.name}.json").is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    start_ns = _START_NS + planned.index * 600_000_000_000
    stamps_ns = [start_ns + round(float(t) * 1e9) for t in recording.t_s]
    pictures = transcode(recording.frames(), recording.codec, recording.fps)
    for stamp_ns, rgb in zip(stamps_ns, pictures, strict=True):
        fileio.write_bytes(folder / planned.name / planned.name / f"Image{stamp_ns}.png", png(rgb))
    t_s = np.arange(0.004, recording.t_s[-1], 1 / OXIMETER_HZ)
    levels = np.rint(50 + 40 * recording.wave(t_s)).astype(int).tolist()
    rates = np.rint(recording.bpm(t_s)).astype(int).tolist()
    rows = [
        {
            "Timestamp": start_ns + round(float(t) * 1e9),
            "Value": {"waveform": level, "pulseRate": rate, "o2saturation": 97, "signalStrength": 5},
            "FrameID": "",
        }
        for t, level, rate in zip(t_s, levels, rates, strict=True)
    ]
    images = [{"Timestamp": stamp_ns, "Value": {}, "FrameID": "/CameraFrame"} for stamp_ns in stamps_ns]
    label = fileio.dump_json({"/FullPackage": rows, "/Image": images}, indent=None)
    fileio.write_text(folder / planned.name / f"{planned.name}.json", label)


def png(rgb: ByteArray) -> bytes:
    """Encode a picture (H,W,3) u8 as PNG."""
    height, width, _ = rgb.shape
    rows = np.zeros((height, 1 + 3 * width), np.uint8)
    rows[:, 1:] = rgb.reshape(height, 3 * width)
    rows[1:, 1:] -= rgb.reshape(height, 3 * width)[:-1]  # PNG filter 2: difference to the row above
    rows[1:, 0] = 2

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    packed = zlib.compress(rows.tobytes(), 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")
