"""Write the layout of BUAA-MIHR: 'Sub NN/lux X/luxX_APL.avi' and luxX_PPGData.mat.

The MAT file holds the struct PPG with the fields fs, data and peaks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ..recording import SyntheticRecording
from . import PlannedRecording
from .video import encode

NAME = "buaa_mihr"
PPG_HZ = 60.0
LUX = (1.0, 1.6, 2.5, 4.0, 6.3, 10.0, 15.8, 25.1, 39.8, 63.1, 100.0)


def plan(subjects: int) -> list[PlannedRecording]:
    # The reader uses levels from 10 lux on. They come first, so that `per_subject` selects them.
    levels = sorted(LUX, key=lambda lux: (lux < 10, lux))
    return [
        PlannedRecording(
            f"Sub {subject:02d}/lux {lux:.1f}", subject, 20 * subject + LUX.index(lux), {"light.lux": lux}
        )
        for subject in range(1, subjects + 1)
        for lux in levels
    ]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return (folder / planned.name / f"{_stem(planned)}_PPGData.mat").is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    from scipy.io import savemat

    encode(folder / planned.name / f"{_stem(planned)}_APL.avi", recording, uniform_clock=True)
    t_s = np.arange(0, recording.t_s[-1], 1 / PPG_HZ)
    ppg = {"fs": PPG_HZ, "data": recording.wave(t_s), "peaks": np.rint(recording.beats_s() * PPG_HZ)}
    with fileio.atomic_path(folder / planned.name / f"{_stem(planned)}_PPGData.mat") as temporary:
        savemat(temporary, {"PPG": ppg})


def _stem(planned: PlannedRecording) -> str:
    return planned.name.split("/")[1].replace(" ", "")
