"""Read VIPL-HR: nine scenes per subject, each filmed by several cameras, and a finger PPG at 60 Hz.

Niu, Han, Shan, Chen, "VIPL-HR: a multi-modal database for pulse estimation from less-constrained face video",
ACCV 2018. Source 4 is near-infrared and is left out. Frames take the times of `time.txt` (milliseconds), if
the file has one for each frame; the container states only a mean rate. The layout is known to us from
third-party readers.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..errors import RecordingError
from ..types import FloatArray, FrameSource
from ..video.suffixes import VIDEO_SUFFIXES
from .base import Found, Reference, RetimedVideo, files, open_file, read_table, subfolders
from .ubfc_rppg import MAX_UNPAIRED, frame_times

NAME = "vipl_hr"
LAYOUT = "VIPL-HR: (data/)pN/vM/sourceK/video.avi + wave.csv (header, 60 Hz) + time.txt (ms), K = 1, 2, 3"
PPG_HZ = 60.0
SCENES = {
    "1": "stable", "2": "motion", "3": "talking", "4": "dark", "5": "bright", "6": "long distance",
    "7": "exercise", "8": "phone stable", "9": "phone motion",
}  # fmt: skip
SOURCES = {"1": "webcam", "2": "phone", "3": "RealSense"}
_PARTS = re.compile(r"^(p|v|source)(\d+)(-\d+)?$", re.IGNORECASE)


def find(root: Path) -> list[Found]:
    base = root / "data" if (root / "data").is_dir() else root
    found = []
    for subject in _numbered(base, "p"):
        for scene in _numbered(subject, "v"):
            for source in _numbered(scene, "source"):
                camera = source.name[len("source") :]
                if camera in SOURCES:
                    found.append(_recording(subject, scene, source, camera))
    return found


def _numbered(folder: Path, word: str) -> list[Path]:
    """Return the folders with the name WORD and a number; a scene may be repeated as v1-2."""
    return [p for p in subfolders(folder) if (m := _PARTS.match(p.name)) and m.group(1).lower() == word]


def _recording(subject: Path, scene: Path, source: Path, camera: str) -> Found:
    videos = files(source, VIDEO_SUFFIXES)
    video = next((p for p in videos if p.stem == "video"), videos[0] if videos else source / "video.avi")
    number = scene.name[1:].partition("-")[0]
    conditions = {"scene": SCENES.get(number, number), "camera": SOURCES[camera]}
    name = f"{subject.name}/{scene.name}/{source.name}"
    return Found(subject.name, name, video, source / "wave.csv", conditions)


def read_reference(found: Found) -> Reference:
    values = read_table(found.name, found.reference, ",", header=True)[:, 0]
    return Reference(np.arange(len(values)) / PPG_HZ, values)


def open_video(found: Found) -> FrameSource:
    source = open_file(found.video)
    times_s = _times_s(found)
    if source.info.frame_count is None or len(times_s) < 2:
        return source
    extra = source.info.frame_count - len(times_s)
    if abs(extra) > MAX_UNPAIRED:
        return source
    return RetimedVideo(source, frame_times(times_s, max(extra, 0)), found.name)


def _times_s(found: Found) -> FloatArray:
    path = found.video.with_name("time.txt")
    if not path.is_file():
        return np.zeros(0)
    times_s: FloatArray = read_table(found.name, path).ravel() / 1000
    if not np.isfinite(times_s).all():
        raise RecordingError(found.name, f"{path.name} holds NaN or infinity")
    return times_s - times_s[0]
