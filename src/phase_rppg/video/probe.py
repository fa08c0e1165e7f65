"""The facts of a video and the limits it must keep, before anything is decoded at length."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import VideoError
from .guard import GuardedDecoder


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """What a video says about itself. Sizes are as shown, that is after rotation."""

    width: int
    height: int
    rotation: int  # 0, 90, 180 or 270 degrees counter-clockwise, already applied to width and height
    fps: float | None  # the header's average: for information, time comes from the timestamps
    duration_s: float | None
    frame_count: int | None
    codec: str
    pixel_format: str
    bits: int  # per colour component
    grey: bool  # the format has no colour: a grey or infrared camera


def probe(path: str | Path) -> VideoInfo:
    """Say what a video file holds, or raise a VideoError that says why it cannot be used."""
    check_file(path)
    with GuardedDecoder(path, {"video": os.path.abspath(path)}) as child:
        return from_facts(child.facts())


def check_file(path: str | Path) -> None:
    """Refuse what is not a readable, non-empty file, without opening it as a video."""
    file = Path(path)
    if os.path.isdir(file):
        raise VideoError(path, "is a directory", "give a video file")
    try:
        with open(file, "rb") as handle:
            if not handle.read(1):
                raise VideoError(path, "is empty", "copy or record it again")
    except FileNotFoundError:
        raise VideoError(path, "does not exist", "check the spelling of the path") from None
    except OSError as error:
        raise VideoError(path, f"cannot be read ({error.strerror})", "check its permissions") from None


def from_facts(facts: dict[str, Any]) -> VideoInfo:
    """The child's JSON as a VideoInfo; only quarter turns are honoured."""
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
