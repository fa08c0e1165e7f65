"""Write the layout of UBFC-Phys: sN/vid_sN_TM.avi and sN/bvp_sN_TM.csv at 64 Hz."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ..recording import SyntheticRecording
from . import PlannedRecording
from .video import encode

NAME = "ubfc_phys"
PPG_HZ = 64.0
TASKS = ("still", "talk", "sway")  # rest, speech, arithmetic


def plan(subjects: int) -> list[PlannedRecording]:
    return [
        PlannedRecording(f"s{subject}_T{task}", subject, 10 * subject + task, {"motion.kind": kind})
        for subject in range(1, subjects + 1)
        for task, kind in enumerate(TASKS, 1)
    ]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return _label(folder, planned).is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    label = _label(folder, planned)
    encode(label.with_name(f"vid_{planned.name}.avi"), recording, uniform_clock=True)
    values = recording.wave(np.arange(0, recording.t_s[-1], 1 / PPG_HZ))
    fileio.write_text(label, "".join(f"{value:.6f}\n" for value in values))


def _label(folder: Path, planned: PlannedRecording) -> Path:
    return folder / f"s{planned.subject}" / f"bvp_{planned.name}.csv"
