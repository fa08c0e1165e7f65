"""BUAA-MIHR: 'Sub NN/lux X/luxX_APL.avi' with luxX_PPGData.mat (struct PPG: fs, data, peaks)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ..film import Film
from . import Shot
from .video import encode

NAME = "buaa_mihr"
PPG_HZ = 60.0
LUX = (1.0, 1.6, 2.5, 4.0, 6.3, 10.0, 15.8, 25.1, 39.8, 63.1, 100.0)


def plan(subjects: int) -> list[Shot]:
    # The levels that are used (10 lux and up) come first, so that a few per subject are useful ones.
    levels = sorted(LUX, key=lambda lux: (lux < 10, lux))
    return [
        Shot(f"Sub {subject:02d}/lux {lux:.1f}", subject, 20 * subject + LUX.index(lux), {"light.lux": lux})
        for subject in range(1, subjects + 1)
        for lux in levels
    ]


def finished(folder: Path, shot: Shot) -> bool:
    return (folder / shot.name / f"{_stem(shot)}_PPGData.mat").is_file()


def write(folder: Path, shot: Shot, recording: Film) -> None:
    from scipy.io import savemat

    encode(folder / shot.name / f"{_stem(shot)}_APL.avi", recording, even_clock=True)
    t_s = np.arange(0, recording.t_s[-1], 1 / PPG_HZ)
    ppg = {"fs": PPG_HZ, "data": recording.wave(t_s), "peaks": np.rint(recording.beats_s() * PPG_HZ)}
    with fileio.atomic_path(folder / shot.name / f"{_stem(shot)}_PPGData.mat") as temporary:
        savemat(temporary, {"PPG": ppg})


def _stem(shot: Shot) -> str:
    return shot.name.split("/")[1].replace(" ", "")
