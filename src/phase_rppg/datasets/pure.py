"""PURE: six head-motion tasks per subject as PNG sequences, and a finger oximeter at 60 Hz on its own clock.

Stricker, Müller, Gross, "Non-contact video-based pulse rate measurement on a mobile service robot",
RO-MAN 2014.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RecordingError
from ..fileio import read_json
from ..types import FloatArray, FrameSource
from .base import Found, Reference, files, subfolders

NAME = "pure"
LAYOUT = "PURE: SS-TT/SS-TT/Image<nanoseconds>.png + SS-TT/SS-TT.json (or SS-TT.json beside SS-TT/)"
TASKS = {
    "01": "steady", "02": "talking", "03": "slow translation",
    "04": "fast translation", "05": "small rotation", "06": "medium rotation",
}  # fmt: skip
_FOLDER = re.compile(r"^(\d{2})-(\d{2})$")
_STAMP = re.compile(r"(\d{16,})$")  # nanoseconds since 1970 at the end of the picture's name


def find(root: Path) -> list[Found]:
    found = []
    for folder in subfolders(root):
        if match := _FOLDER.match(folder.name):
            subject, task = match.groups()
            inner = folder / folder.name
            pictures = inner if inner.is_dir() else folder
            labels = [
                folder / f"{folder.name}.json",
                root / f"{folder.name}.json",
                inner / f"{folder.name}.json",
            ]
            label = next((p for p in labels if p.exists()), labels[0])
            found.append(Found(subject, folder.name, pictures, label, {"motion": TASKS.get(task, task)}))
    return found


def read_reference(found: Found) -> Reference:
    package = read_package(found.name, found.reference)
    pictures = files(found.video, (".png",))
    start_ns = _first_picture_ns(found, package, pictures)
    return reference_of(found.name, package, start_ns)


def reference_of(name: str, package: dict[str, Any], start_ns: int) -> Reference:
    """The oximeter's waveform in seconds after `start_ns`."""
    rows = package["/FullPackage"]
    try:
        stamps_ns = np.array([int(row["Timestamp"]) for row in rows], np.int64)
        values = np.array([float(row["Value"]["waveform"]) for row in rows])
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(
            name, f"a row of /FullPackage has no Timestamp or Value.waveform ({error})"
        ) from error
    return Reference((stamps_ns - start_ns) / 1e9, values)


def read_package(name: str, path: Path) -> dict[str, Any]:
    """The JSON file with its two lists, the oximeter's (/FullPackage) and the camera's (/Image)."""
    package = read_json(path)
    if not isinstance(package, dict) or not isinstance(package.get("/FullPackage"), list):
        raise RecordingError(name, f"{path.name} has no list /FullPackage")
    return package


def image_stamps_ns(name: str, package: dict[str, Any]) -> list[int]:
    """When the camera took its pictures, as far as the JSON file says."""
    try:
        return [int(row["Timestamp"]) for row in package.get("/Image") or []]
    except (KeyError, TypeError, ValueError) as error:
        raise RecordingError(name, f"a row of /Image has no Timestamp ({error})") from error


def open_video(found: Found) -> FrameSource:
    from ..video.decode import ImageSequence

    pictures = files(found.video, (".png",))
    if not pictures:
        raise RecordingError(found.name, f"no PNG pictures in {found.video}")
    t_s = _picture_times_s(found, pictures)
    if (np.diff(t_s) <= 0).any():
        at = int(np.argmax(np.diff(t_s) <= 0)) + 1
        raise RecordingError(found.name, f"the pictures' timestamps do not rise at {pictures[at].name}")
    return ImageSequence(pictures, t_s)


def _picture_times_s(found: Found, pictures: list[Path]) -> FloatArray:
    """Picture times from their names, or from the JSON list when the names only count."""
    matches = [_STAMP.search(p.stem) for p in pictures]
    if all(matches):
        stamps_ns = [int(m.group(1)) for m in matches if m]
    else:
        stamps_ns = image_stamps_ns(found.name, read_package(found.name, found.reference))
        if len(stamps_ns) != len(pictures):
            raise RecordingError(
                found.name,
                f"{len(pictures)} pictures whose names hold no time, but {len(stamps_ns)} times in the JSON",
            )
    return (np.array(stamps_ns, np.int64) - stamps_ns[0]) / 1e9


def _first_picture_ns(found: Found, package: dict[str, Any], pictures: list[Path]) -> int:
    if pictures and (match := _STAMP.search(pictures[0].stem)):
        return int(match.group(1))
    stamps_ns = image_stamps_ns(found.name, package)
    if not stamps_ns:
        raise RecordingError(
            found.name, "neither the pictures' names nor the JSON file say when they were taken"
        )
    return stamps_ns[0]
