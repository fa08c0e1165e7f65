"""Write the layout of V4V: Videos/train/F001_T1.mkv and the blood pressure at 1 kHz as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ..recording import SyntheticRecording
from . import PlannedRecording
from .video import encode

NAME = "v4v"
PRESSURE_HZ = 1000.0
TASKS = ("still", "talk")


def plan(subjects: int) -> list[PlannedRecording]:
    clock = {"camera.fps": 25.0, "camera.jitter": 0.0}
    return [
        PlannedRecording(
            f"F{subject:03d}_T{task}", subject, 10 * subject + task, {**clock, "motion.kind": kind}
        )
        for subject in range(1, subjects + 1)
        for task, kind in enumerate(TASKS, 1)
    ]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return _label(folder, planned).is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    encode(folder / "Videos" / "train" / f"{planned.name}.mkv", recording)
    pressure = 90 + 20 * recording.wave(np.arange(0, recording.t_s[-1], 1 / PRESSURE_HZ))
    fileio.write_text(_label(folder, planned), "".join(f"{value:.3f}\n" for value in pressure))


def _label(folder: Path, planned: PlannedRecording) -> Path:
    return folder / "Ground truth" / "BP_raw_1KHz" / f"{planned.name.replace('_', '-')}-BP.txt"
