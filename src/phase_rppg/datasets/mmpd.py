"""Read MMPD: phone videos with four lights, four motions, exercise and skin types, in MATLAB files.

Tang et al., "MMPD: Multi-domain Mobile Video Physiology Dataset", EMBC 2023. Video and PPG
have 30 samples per second.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import RecordingError
from ..types import FrameSource
from . import matlab
from .base import Found, Reference, files, subfolders

NAME = "mmpd"
# Train, valid and test of the literature, as fractions of the subjects in natural order.
SPLITS = {"intra": ((0, 0.7), (0.7, 0.8), (0.8, 1))}
LAYOUT = (
    "MMPD: subjectN/pN_M.mat with video, GT_ppg, light, motion, exercise, skin_color, gender, glasser, "
    "hair_cover, makeup"
)
FPS = 30.0
_FILE = re.compile(r"^p(\d+)_(\d+)$")
# field in the MATLAB file → name of the condition
_FIELDS = {
    "light": "light", "motion": "motion", "exercise": "exercise", "skin_color": "skin type",
    "gender": "gender", "glasser": "glasses", "hair_cover": "hair", "makeup": "make-up",
}  # fmt: skip
# label in some releases → spelling of the condition
_SPELLINGS = {
    "watching videos": "walking",
    "stationary (after exercise)": "stationary",
    "1": "true",
    "0": "false",
}
_YES_NO = ("exercise", "glasses", "hair", "make-up")


def find(root: Path) -> list[Found]:
    found = []
    for folder in subfolders(root):
        for path in files(folder, (".mat",)):
            if match := _FILE.match(path.stem):
                found.append(Found(f"subject{int(match.group(1))}", path.stem, path, path))
    return found


def read_reference(found: Found) -> Reference:
    content = matlab.read(found.name, found.reference, ("GT_ppg",))
    ppg = matlab.numbers(found.name, found.reference, "GT_ppg", content["GT_ppg"])
    count = _video(found).count()
    if abs(len(ppg) - count) <= FPS:
        fps = FPS
    else:  # the PPG has another rate and covers the duration of the video
        fps = FPS * len(ppg) / count
    return Reference(np.arange(len(ppg)) / fps, ppg)


def read_conditions(found: Found) -> dict[str, str]:
    content = matlab.read(found.name, found.reference, tuple(_FIELDS))
    return {ours: _label(found.name, ours, content[theirs]) for theirs, ours in _FIELDS.items()}


def open_video(found: Found) -> FrameSource:
    video = _video(found)
    video.count()
    return video


def _video(found: Found) -> matlab.MatVideo:
    return matlab.MatVideo(found.video, found.name, FPS)


def _label(name: str, condition: str, value: Any) -> str:
    """Return a label as a lower-case word; MATLAB stores it as text, number or boolean."""
    value = np.asarray(value).ravel()
    if len(value) != 1 or (value.dtype.kind == "f" and not np.isfinite(value[0])):
        raise RecordingError(name, f"{condition} is not a single label")
    item = value[0]
    if condition not in _YES_NO and isinstance(item, (np.integer, np.floating)):
        return f"{int(item)}"
    text = str(bool(item) if isinstance(item, (bool, np.bool_, np.number)) else item).strip().lower()
    return _SPELLINGS.get(text, text)
