"""Read UBFC-Phys: rest, speech and arithmetic under social stress, with the PPG of a wristband at 64 Hz.

Meziati Sabour, Benezeth, De Oliveira, Chappé, Yang, "UBFC-Phys: a multimodal database for psychophysiological
studies of social stress", IEEE Transactions on Affective Computing 2021.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ..video.suffixes import VIDEO_SUFFIXES
from .base import Found, Reference, files, read_table, subfolders

NAME = "ubfc_phys"
LAYOUT = "UBFC-Phys: sN/vid_sN_TM.avi + sN/bvp_sN_TM.csv (one column at 64 Hz), M = 1, 2, 3"
PPG_HZ = 64.0
TASKS = {"1": "rest", "2": "speech", "3": "arithmetic"}
_VIDEO = re.compile(r"^vid_(s(\d+)_t(\d))$", re.IGNORECASE)


def find(root: Path) -> list[Found]:
    found = []
    for folder in subfolders(root):
        for video in files(folder, VIDEO_SUFFIXES):
            if match := _VIDEO.match(video.stem):
                name, subject, task = match.groups()
                label = video.with_name(f"bvp_{name}.csv")
                conditions = {"task": TASKS.get(task, task)}
                found.append(Found(f"s{int(subject)}", f"s{int(subject)}_T{task}", video, label, conditions))
    return found


def read_reference(found: Found) -> Reference:
    values = read_table(found.name, found.reference, ",")[:, 0]
    return Reference(np.arange(len(values)) / PPG_HZ, values)
