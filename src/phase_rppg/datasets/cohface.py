"""Read COHFACE: four compressed videos of 20 frames per second per subject, and a finger PPG at 256 Hz.

Heusch, Anjos, Marcel, "A reproducible study on remote heart rate measurement", arXiv 2017. Sessions 0 and 1
have studio light, 2 and 3 daylight. The HDF5 file is read in the guarded process.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..video.suffixes import VIDEO_SUFFIXES
from . import matlab
from .base import Found, Reference, files, subfolders

NAME = "cohface"
LAYOUT = "COHFACE: N/M/data.avi + N/M/data.hdf5 with pulse (and time), N the subject and M = 0 … 3"
PPG_HZ = 256.0
LIGHTS = {"0": "studio", "1": "studio", "2": "natural", "3": "natural"}


def find(root: Path) -> list[Found]:
    found = []
    for subject in subfolders(root):
        if not subject.name.isdecimal():
            continue
        for folder in subfolders(subject):
            if folder.name in LIGHTS:
                videos = [p for p in files(folder, VIDEO_SUFFIXES) if p.stem == "data"]
                video = videos[0] if videos else folder / "data.avi"
                name, conditions = f"{subject.name}/{folder.name}", {"light": LIGHTS[folder.name]}
                found.append(Found(subject.name, name, video, folder / "data.hdf5", conditions))
    return found


def read_reference(found: Found) -> Reference:
    """Read the PPG with its own times, if the file has them, or at 256 Hz."""
    content = matlab.read(found.name, found.reference, ("pulse",), optional=("time",))
    values = matlab.numbers(found.name, found.reference, "pulse", content["pulse"])
    times_s = matlab.numbers(found.name, found.reference, "time", content.get("time", ()))
    if len(times_s) != len(values):
        times_s = np.arange(len(values)) / PPG_HZ
    return Reference(times_s, values)
