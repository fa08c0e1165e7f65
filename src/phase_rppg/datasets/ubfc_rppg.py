"""Read UBFC-rPPG: one webcam video per subject, and a finger PPG with one timestamp per frame.

Bobbia, Macwan, Benezeth, Mansouri, Dubois, "Unsupervised skin tissue segmentation for remote
photoplethysmography", Pattern Recognition Letters 2017.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..errors import RecordingError
from ..types import FloatArray, FrameSource
from ..video.suffixes import VIDEO_SUFFIXES
from .base import Found, Reference, RetimedVideo, files, open_file, read_table, subfolders

NAME = "ubfc_rppg"
# Train, valid and test of the literature, as fractions of the subjects in natural order.
SPLITS = {"intra": ((0, 0.72), (0, 0), (0.72, 1))}
LAYOUT = (
    "UBFC-rPPG: subjectN/vid.avi (or .mp4) + subjectN/ground_truth.txt [DATASET_2], "
    "or N-gt/vid.avi + N-gt/gtdump.xmp [DATASET_1]; both may be in DATASET_1/ and DATASET_2/"
)
MAX_UNPAIRED = 2  # frames without a timestamp, or timestamps without a frame, that are tolerated
MIN_STEP_S = 0.001  # between frames whose timestamps are equal
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
    is_subject = folder.name.lower().startswith("subject") or folder.name.endswith("-gt")
    if label is None and not (is_subject and videos):
        return None
    video = videos[0] if videos else folder / "vid.avi"
    label = label or folder / ("gtdump.xmp" if folder.name.endswith("-gt") else "ground_truth.txt")
    return Found(folder.name, folder.name, video, label, {"set": _LABELS[label.name]})


def read_reference(found: Found) -> Reference:
    """Read the PPG and its timestamps. The stored heart rate is not used: it overflows in some subjects."""
    return read_label(found.name, found.reference)


def read_label(name: str, path: Path) -> Reference:
    """Read ground_truth.txt (rows PPG, rate, seconds) or gtdump.xmp (columns ms, rate, SpO2, PPG)."""
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
    """Open the video; in DATASET_2 the frames get the timestamps of the label file.

    The container states only an average rate, but the label file has one timestamp per frame. With these
    timestamps the PPG is smoother, and video and PPG correlate better, than with the container's rate.
    """
    source = open_file(found.video)
    if found.reference.suffix == ".xmp" or source.info.frame_count is None:
        return source
    times_s = read_reference(found).t_s
    extra = source.info.frame_count - len(times_s)
    if abs(extra) > MAX_UNPAIRED:
        return source
    return RetimedVideo(source, frame_times(times_s, max(extra, 0)), found.name)


def frame_times(times_s: FloatArray, extra: int) -> FloatArray:
    """Return increasing frame times: equal timestamps are separated, and `extra` frames are appended."""
    step_s = float(np.median(np.diff(times_s)))
    extended = np.concatenate([times_s, times_s[-1] + step_s * np.arange(1, extra + 1)])
    count = np.arange(len(extended))
    rising = np.maximum.accumulate(extended - count * MIN_STEP_S) + count * MIN_STEP_S
    return np.asarray(rising)
