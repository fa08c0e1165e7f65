"""Read PURE: six head-motion tasks per subject as PNG sequences, and a finger oximeter at 60 Hz.

Stricker, Müller, Gross, "Non-contact video-based pulse rate measurement on a mobile service robot",
RO-MAN 2014.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import RecordingError
from ..fileio import read_json
from ..types import FloatArray, FrameSource
from .base import Found, Reference, files, subfolders

NAME = "pure"
# Train, valid and test of the literature, as fractions of the subjects in natural order.
SPLITS = {"intra": ((0, 0.6), (0, 0), (0.6, 1))}
LAYOUT = "PURE: SS-TT/SS-TT/Image<nanoseconds>.png + SS-TT/SS-TT.json (or SS-TT.json next to SS-TT/)"
TASKS = {
    "01": "steady", "02": "talking", "03": "slow translation",
    "04": "fast translation", "05": "small rotation", "06": "medium rotation",
}  # fmt: skip
_FOLDER = re.compile(r"^(\d{2})-(\d{2})$")
_STAMP = re.compile(r"(\d{16,})$")  # nanoseconds since 1970 at the end of the file name


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
    """Return the waveform of the oximeter, with times in seconds after `start_ns`."""
    rows = package["/FullPackage"]
    try:
        stamps_ns = [int(row["Timestamp"]) for row in rows]
        values = np.array([float(row["Value"]["waveform"]) for row in rows])
    except (KeyError, TypeError, ValueError, OverflowError):
        raise RecordingError(name, "a row of /FullPackage has no valid Timestamp or Value.waveform") from None
    return Reference(_to_int64(name, [stamp - start_ns for stamp in stamps_ns]) / 1e9, values)


def read_package(name: str, path: Path) -> dict[str, Any]:
    """Read the JSON file with the list of the oximeter (/FullPackage) and of the camera (/Image)."""
    package = read_json(path, "label_mb")
    if not isinstance(package, dict) or not isinstance(package.get("/FullPackage"), list):
        raise RecordingError(name, f"{path.name} has no list /FullPackage")
    return package


def image_stamps_ns(name: str, package: dict[str, Any]) -> list[int]:
    """Return the timestamps of the pictures in the JSON file; empty if it has none."""
    try:
        return [int(row["Timestamp"]) for row in package.get("/Image") or []]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise RecordingError(name, "a row of /Image has no valid Timestamp") from None


def _to_int64(name: str, times_ns: list[int]) -> npt.NDArray[np.int64]:
    """Convert integers of any size; a time beyond 292 years raises a RecordingError."""
    try:
        return np.array(times_ns, np.int64)
    except OverflowError:
        raise RecordingError(name, "a timestamp is out of range") from None


def times_s(name: str, stamps_ns: list[int]) -> FloatArray:
    """Return the times in seconds after the first timestamp."""
    return _to_int64(name, [stamp - stamps_ns[0] for stamp in stamps_ns]) / 1e9


def open_video(found: Found) -> FrameSource:
    from ..video.decode import ImageSequence

    pictures = files(found.video, (".png",))
    if not pictures:
        raise RecordingError(found.name, f"no PNG pictures in {found.video}")
    t_s = _picture_times_s(found, pictures)
    if (np.diff(t_s) <= 0).any():
        at = int(np.argmax(np.diff(t_s) <= 0)) + 1
        raise RecordingError(
            found.name, f"the timestamps of the pictures do not increase at {pictures[at].name}"
        )
    return ImageSequence(pictures, t_s)


def _picture_times_s(found: Found, pictures: list[Path]) -> FloatArray:
    """Return the times of the pictures from their names, or from the JSON file if the names are numbers."""
    matches = [_STAMP.search(p.stem) for p in pictures]
    if all(matches):
        stamps_ns = [int(m.group(1)) for m in matches if m]
    else:
        stamps_ns = image_stamps_ns(found.name, read_package(found.name, found.reference))
        if len(stamps_ns) != len(pictures):
            raise RecordingError(
                found.name,
                f"{len(pictures)} pictures without a timestamp in the name, but {len(stamps_ns)} in the JSON",
            )
    return times_s(found.name, stamps_ns)


def _first_picture_ns(found: Found, package: dict[str, Any], pictures: list[Path]) -> int:
    if pictures and (match := _STAMP.search(pictures[0].stem)):
        return int(match.group(1))
    stamps_ns = image_stamps_ns(found.name, package)
    if not stamps_ns:
        raise RecordingError(found.name, "the names of the pictures and the JSON file hold no timestamps")
    return stamps_ns[0]
