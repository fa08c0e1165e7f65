"""Read iBVP: four sessions per subject as pictures at 30 Hz, and an ear PPG with labels of signal quality.

Joshi and Cho, "iBVP dataset: RGB-thermal rPPG dataset with high resolution signal quality labels",
Electronics 2024. Thermal pictures are not read. The PPG has no sampling rate of its own in the file. As in
the reader of the rPPG-Toolbox, it covers the duration of the pictures, and samples of a quality up to 0.3 are
left out.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..errors import RecordingError
from ..types import FloatArray, FrameSource
from .base import Found, Reference, files, read_table, subfolders

NAME = "ibvp"
LAYOUT = "iBVP: pNN_x/pNN_x_rgb/*.bmp + pNN_x/pNN_x_bvp.csv (header; column 1 PPG, column 4 quality)"
FPS = 30.0
MIN_QUALITY = 0.3
PICTURES = (".bmp", ".png")
_FOLDER = re.compile(r"^p(\d+)_?([a-z])$", re.IGNORECASE)


def find(root: Path) -> list[Found]:
    found = []
    for folder in subfolders(root):
        if match := _FOLDER.match(folder.name):
            number, session = match.groups()
            label = folder / f"{folder.name}_bvp.csv"
            pictures = folder / f"{folder.name}_rgb"
            subject = f"p{int(number):02d}"
            found.append(Found(subject, folder.name, pictures, label, {"session": session.lower()}))
    return found


def read_reference(found: Found) -> Reference:
    values, quality = _read_label(found)
    count = len(_pictures(found))
    t_s = np.arange(len(values)) * (count / FPS / len(values))
    kept = np.ones(len(values), bool) if quality is None else quality > MIN_QUALITY
    if kept.sum() < 2:
        raise RecordingError(found.name, f"no sample of the PPG has a quality above {MIN_QUALITY:g}")
    return Reference(t_s[kept], values[kept])


def open_video(found: Found) -> FrameSource:
    from ..video.decode import ImageSequence

    pictures = _pictures(found)
    return ImageSequence(pictures, np.arange(len(pictures)) / FPS)


def _pictures(found: Found) -> list[Path]:
    pictures = files(found.video, PICTURES) if found.video.is_dir() else []
    if not pictures:
        raise RecordingError(found.name, f"no pictures in {found.video}")
    return pictures


def _read_label(found: Found) -> tuple[FloatArray, FloatArray | None]:
    """Return the PPG and the quality of its samples, if the file has that column."""
    table = read_table(found.name, found.reference, ",", header=True)
    return table[:, 0], table[:, 3] if table.shape[1] > 3 else None
