"""Read SCAMPS: 2,800 rendered avatars of 20 s with a known pulse, in MATLAB files.

McDuff et al., "SCAMPS: synthetics for camera measurement of physiological signals", NeurIPS 2022. Every file
is one avatar, so every file is a subject of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..errors import RecordingError
from ..types import FrameSource
from . import matlab
from .base import Found, Reference, files

NAME = "scamps"
LAYOUT = "SCAMPS: P000001.mat with Xsub (frames, height, width, 3) in 0–1 and d_ppg, both at 30 Hz"
FPS = 30.0
_FILE = re.compile(r"^p0*(\d+)$", re.IGNORECASE)


def find(root: Path) -> list[Found]:
    return [
        Found(path.stem, path.stem, path, path, {"source": "rendered"})
        for path in files(root, (".mat",))
        if _FILE.match(path.stem)
    ]


def read_reference(found: Found) -> Reference:
    content = matlab.read(found.name, found.reference, ("d_ppg",))["d_ppg"]
    values = matlab.numbers(found.name, found.reference, "d_ppg", content)
    if abs(len(values) - _video(found).count()) > 1:
        raise RecordingError(
            found.name, f"d_ppg has {len(values)} samples for {_video(found).count()} frames"
        )
    return Reference(np.arange(len(values)) / FPS, values)


def open_video(found: Found) -> FrameSource:
    video = _video(found)
    video.count()
    return video


def _video(found: Found) -> matlab.MatVideo:
    return matlab.MatVideo(found.video, found.name, FPS, field="Xsub")
