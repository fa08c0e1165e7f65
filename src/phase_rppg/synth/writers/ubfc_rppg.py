"""UBFC-rPPG (DATASET_2): subjectN/vid.avi and ground_truth.txt, rows PPG, rate, seconds of every frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ..film import Film
from . import Shot
from .video import encode

NAME = "ubfc_rppg"


def plan(subjects: int) -> list[Shot]:
    return [Shot(f"subject{k}", k, k) for k in range(1, subjects + 1)]


def finished(folder: Path, shot: Shot) -> bool:
    return (folder / shot.name / "ground_truth.txt").is_file()


def write(folder: Path, shot: Shot, recording: Film) -> None:
    encode(folder / shot.name / "vid.avi", recording)
    t_s = recording.t_s
    rows = np.stack([recording.wave(t_s), np.rint(recording.bpm(t_s)), t_s])
    text = "\n".join("  ".join(f"{value: .7e}" for value in row) for row in rows) + "\n"
    fileio.write_text(folder / shot.name / "ground_truth.txt", text)
