"""Write the layout of UBFC-rPPG (DATASET_2): subjectN/vid.avi and ground_truth.txt.

The rows of ground_truth.txt are PPG, rate and timestamp in seconds, with one column per frame.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ..recording import SyntheticRecording
from . import PlannedRecording
from .video import encode

NAME = "ubfc_rppg"


def plan(subjects: int) -> list[PlannedRecording]:
    return [PlannedRecording(f"subject{k}", k, k) for k in range(1, subjects + 1)]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return (folder / planned.name / "ground_truth.txt").is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    encode(folder / planned.name / "vid.avi", recording)
    t_s = recording.t_s
    rows = np.stack([recording.wave(t_s), np.rint(recording.bpm(t_s)), t_s])
    text = "\n".join("  ".join(f"{value: .7e}" for value in row) for row in rows) + "\n"
    fileio.write_text(folder / planned.name / "ground_truth.txt", text)
