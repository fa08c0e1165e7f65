"""Read the header of a video and check it before decoding."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import VideoError
from .guard import GuardedDecoder

# The first bytes of JPEG, PNG, BMP and TIFF files. A file of several JPEG pictures is a video.
_STILL_PICTURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"BM", b"II*\0", b"MM\0*")
_STILL_BRANDS = (b"heic", b"heix", b"mif1", b"avif")  # of HEIF and AVIF files; sequences have other brands
_JPEG_STREAMS = (".mjpg", ".mjpeg")
_ANIMATED_PNG = b"acTL"
_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """The facts of the header of a video. The size is that of the rotated picture."""

    width: int
    height: int
    rotation: int  # 0, 90, 180 or 270 degrees counter-clockwise, already applied to width and height
    fps: float | None  # average of the header, for information only
    duration_s: float | None
    frame_count: int | None
    codec: str
    pixel_format: str
    bits: int  # per colour component
    grey: bool  # the pixel format has no colour, as for grey or infrared cameras


def probe(path: str | Path) -> VideoInfo:
    """Return the facts of a video file, or raise a VideoError if it cannot be used."""
    check_video_file(path)
    with GuardedDecoder(path, {"video": os.path.abspath(path)}) as child:
        return from_facts(child.facts())


def check_video_file(path: str | Path) -> None:
    """Raise a VideoError if the path is not a readable file, or is a still picture."""
    check_file(path)
    with open(path, "rb") as handle:
        head = handle.read(_HEAD_BYTES)
    is_stream = Path(path).suffix.lower() in _JPEG_STREAMS or _ANIMATED_PNG in head
    if is_still_picture(head) and not is_stream:
        raise VideoError(path, "is a still picture", "give a video or a folder of frames")


def is_still_picture(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a picture."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return b"ANIM" not in head
    return head.startswith(_STILL_PICTURES) or (head[4:8] == b"ftyp" and head[8:12] in _STILL_BRANDS)


def check_file(path: str | Path) -> None:
    """Raise a VideoError if the path is not a readable, non-empty regular file. A pipe is not opened."""
    file = Path(path)
    if os.path.isdir(file):
        raise VideoError(path, "is a directory", "give a video file")
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise VideoError(path, "is a pipe or a device, not a file", "save the video to a file first")
        with open(file, "rb") as handle:
            if not handle.read(1):
                raise VideoError(path, "is empty", "copy or record it again")
    except FileNotFoundError:
        raise VideoError(path, "does not exist", "check the spelling of the path") from None
    except OSError as error:
        raise VideoError(path, f"cannot be read ({error.strerror})", "check its permissions") from None
    except ValueError:  # a zero byte
        raise VideoError(path, "is not a valid path", "check the spelling of the path") from None


def from_facts(facts: dict[str, Any]) -> VideoInfo:
    """Convert the facts of the child to a VideoInfo; the rotation is rounded to quarter turns."""
    rotation = round(facts["rotation"] / 90) * 90 % 360
    width, height = facts["width"], facts["height"]
    if rotation in (90, 270):
        width, height = height, width
    return VideoInfo(
        width=width,
        height=height,
        rotation=rotation,
        fps=facts["fps"],
        duration_s=facts["duration_s"],
        frame_count=facts["frame_count"],
        codec=facts["codec"],
        pixel_format=facts["pixel_format"],
        bits=facts["bits"],
        grey=facts["grey"],
    )
