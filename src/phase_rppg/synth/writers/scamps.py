"""Write the layout of SCAMPS: P000001.mat with the frames Xsub in 0–1 and d_ppg, both at 30 Hz."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ..codec import transcode
from ..recording import SyntheticRecording
from . import PlannedRecording

NAME = "scamps"
HEIGHT_PX = 96
_CLOCK = {"camera.fps": 30.0, "camera.jitter": 0.0}


def plan(subjects: int) -> list[PlannedRecording]:
    return [PlannedRecording(f"P{index:06d}", index, index, _CLOCK) for index in range(1, subjects + 1)]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return (folder / f"{planned.name}.mat").is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    from scipy.io import savemat

    pictures = transcode(recording.frames(), recording.codec, recording.fps)
    video = np.stack([rgb.astype(np.float32) / 255 for rgb in pictures])  # (T,H,W,3)
    content = {"Xsub": video, "d_ppg": recording.wave(recording.t_s)[None, :]}
    with fileio.atomic_path(folder / f"{planned.name}.mat") as temporary:
        savemat(temporary, content, do_compression=True)
