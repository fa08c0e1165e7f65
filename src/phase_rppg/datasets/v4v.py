"""Read V4V (Vision for Vitals): videos of 25 frames per second, and the blood pressure at 1 kHz.

Revanur et al., "The first Vision for Vitals (V4V) challenge", ICCV Workshops 2021. The wave of the blood
pressure serves as reference: it has the same beats as a PPG, with another shape. The layout is known to us
from third-party readers.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..video.suffixes import VIDEO_SUFFIXES
from .base import Found, Reference, files, read_table, subfolders

NAME = "v4v"
LAYOUT = (
    "V4V: Videos/(train|valid|test)/F001_T1.mkv (or the videos in one folder) + "
    "'Ground truth/BP_raw_1KHz/F001-T1-BP.txt' at 1 kHz"
)
PRESSURE_HZ = 1000.0
LABELS = Path("Ground truth") / "BP_raw_1KHz"
_VIDEO = re.compile(r"^([FM]\d+)[_-]T(\d+)$", re.IGNORECASE)


def find(root: Path) -> list[Found]:
    labels = _labels(root)
    found = []
    for folder in _folders(root, 3, set()):
        for video in files(folder, VIDEO_SUFFIXES):
            if match := _VIDEO.match(video.stem):
                subject, task = match.group(1).upper(), match.group(2)
                label = labels / f"{subject}-T{task}-BP.txt"
                found.append(Found(subject, f"{subject}_T{task}", video, label, {"task": f"T{task}"}))
    return found


def _folders(root: Path, depth: int, visited: set[Path]) -> list[Path]:
    """Return a folder and those below it, each once: links can form loops."""
    real = root.resolve()
    if real in visited:
        return []
    visited.add(real)
    inner = subfolders(root) if depth else []
    return [root, *(each for folder in inner for each in _folders(folder, depth - 1, visited))]


def _labels(root: Path) -> Path:
    """Return the folder of the labels, directly in the data set or in one of its folders."""
    places = [root / LABELS, *(folder / LABELS for folder in subfolders(root))]
    return next((place for place in places if place.is_dir()), places[0])


def read_reference(found: Found) -> Reference:
    values = read_table(found.name, found.reference).ravel()
    return Reference(np.arange(len(values)) / PRESSURE_HZ, values)
