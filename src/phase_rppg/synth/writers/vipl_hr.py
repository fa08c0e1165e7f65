"""Write the layout of VIPL-HR: data/pN/vM/sourceK/video.avi, time.txt (ms) and wave.csv at 60 Hz."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ..recording import SyntheticRecording
from . import PlannedRecording
from .video import encode

NAME = "vipl_hr"
PPG_HZ = 60.0
SCENES = {1: "still", 2: "sway", 3: "talk"}
SOURCES = (1, 3)


def plan(subjects: int) -> list[PlannedRecording]:
    return [
        PlannedRecording(
            f"data/p{subject}/v{scene}/source{source}",
            subject,
            100 * subject + 10 * scene + source,
            {"motion.kind": kind},
        )
        for subject in range(1, subjects + 1)
        for scene, kind in SCENES.items()
        for source in SOURCES
    ]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return (folder / planned.name / "wave.csv").is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    place = folder / planned.name
    encode(place / "video.avi", recording, uniform_clock=True)
    fileio.write_text(place / "time.txt", "".join(f"{t * 1000:.1f}\n" for t in recording.t_s))
    values = recording.wave(np.arange(0, recording.t_s[-1], 1 / PPG_HZ))
    rows = [f"{round(60 + 30 * value)}" for value in values]
    fileio.write_text(place / "wave.csv", "\n".join(["Wave", *rows]) + "\n")
