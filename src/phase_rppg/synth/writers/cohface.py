"""Write the layout of COHFACE: N/M/data.avi at 20 frames per second and N/M/data.hdf5 with pulse and time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ...errors import require
from ..recording import SyntheticRecording
from . import PlannedRecording
from .video import encode

NAME = "cohface"
PPG_HZ = 256.0
LIGHTS = ({"light.lux": 300.0}, {"light.lux": 300.0}, {"light.lux": 100.0}, {"light.lux": 100.0})


def plan(subjects: int) -> list[PlannedRecording]:
    clock = {"camera.fps": 20.0, "camera.jitter": 0.0}
    return [
        PlannedRecording(f"{subject}/{session}", subject, 10 * subject + session, {**clock, **light})
        for subject in range(1, subjects + 1)
        for session, light in enumerate(LIGHTS)
    ]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return (folder / planned.name / "data.hdf5").is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    require("h5py")
    import h5py

    encode(folder / planned.name / "data.avi", recording, uniform_clock=True)
    t_s = np.arange(0, recording.t_s[-1], 1 / PPG_HZ)
    label = folder / planned.name / "data.hdf5"
    with fileio.atomic_path(label) as temporary, h5py.File(temporary, "w") as file:
        file["pulse"], file["time"] = recording.wave(t_s), t_s
