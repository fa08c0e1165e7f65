"""UBFC-rPPG: one webcam video per subject, and a finger oximeter with one row per frame.

Bobbia, Macwan, Benezeth, Mansouri, Dubois, "Unsupervised skin tissue segmentation for remote
photoplethysmography", Pattern Recognition Letters 2017.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import RecordingError
from ..types import FrameSource
from .base import VIDEO_SUFFIXES, Found, Reference, files, open_file, read_table, subfolders

NAME = "ubfc_rppg"
LAYOUT = (
    "UBFC-rPPG: subjectN/vid.avi (or .mp4) + subjectN/ground_truth.txt [DATASET_2], "
    "or N-gt/vid.avi + N-gt/gtdump.xmp [DATASET_1]; the two may lie in DATASET_1/ and DATASET_2/"
)
_LABELS = {"ground_truth.txt": "DATASET_2", "gtdump.xmp": "DATASET_1"}


def find(root: Path) -> list[Found]:
    found: list[Found] = []
    for folder in subfolders(root):
        inner = subfolders(folder) if folder.name.upper().startswith("DATASET_") else [folder]
        found += [one for one in map(_recording, inner) if one is not None]
    return found


def _recording(folder: Path) -> Found | None:
    videos = [p for p in files(folder, VIDEO_SUFFIXES) if p.stem.lower().startswith("vid")]
    label = next((folder / name for name in _LABELS if (folder / name).exists()), None)
    looks_right = folder.name.lower().startswith("subject") or folder.name.endswith("-gt")
    if label is None and not (looks_right and videos):
        return None
    video = videos[0] if videos else folder / "vid.avi"
    label = label or folder / ("gtdump.xmp" if folder.name.endswith("-gt") else "ground_truth.txt")
    return Found(folder.name, folder.name, video, label, {"set": _LABELS[label.name]})


def read_reference(found: Found) -> Reference:
    """Row 1 or column 4 is the PPG. The rate column is not used: it overflows in some subjects."""
    return read_label(found.name, found.reference)


def read_label(name: str, path: Path) -> Reference:
    """Either of the two label files: rows PPG, rate, seconds; or columns milliseconds, rate, SpO2, PPG."""
    if path.suffix == ".xmp":
        table = read_table(name, path, ",")
        if table.shape[1] < 4:
            raise RecordingError(name, f"{path.name} has {table.shape[1]} columns, not ms, rate, SpO2, PPG")
        return Reference(table[:, 0] / 1000, table[:, 3])
    table = read_table(name, path)
    if len(table) < 3:
        raise RecordingError(name, f"{path.name} has {len(table)} rows, not 3 (PPG, rate, seconds)")
    return Reference(table[2], table[0])


def open_video(found: Found) -> FrameSource:
    return open_file(found.video)
