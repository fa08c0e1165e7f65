"""Files that are no video, or none that can be used."""

from __future__ import annotations

import struct
import wave
from pathlib import Path

import numpy as np

from phase_rppg.video.encode import write_video


def text(path: Path) -> Path:
    path.write_text("this is not a video\n" * 50)
    return path


def empty(path: Path) -> Path:
    path.touch()
    return path


def sound(path: Path) -> Path:
    """A second of silence."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * 8000)
    return path


def huge(path: Path, side: int = 16000) -> Path:
    """An uncompressed AVI whose header says 16000×16000 and that holds almost nothing."""
    write_video(path, [np.zeros((64, 64, 3), np.uint8)] * 2, 30, codec="raw")
    data = bytearray(path.read_bytes())
    place = data.find(b"strf") + 8 + 4
    assert struct.unpack_from("<i", data, place) == (64,)
    struct.pack_into("<ii", data, place, side, side)
    path.write_bytes(data)
    return path
