"""Write the layout of MMPD: subjectN/pN_M.mat with the video in 0–1, GT_ppg per frame, and text labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ... import fileio
from ..codec import transcode
from ..recording import SyntheticRecording
from . import PlannedRecording

NAME = "mmpd"
HEIGHT_PX = 240
LIGHTS: dict[str, dict[str, Any]] = {
    "LED-low": {"light.lux": 60.0, "light.warmth": 0.0},
    "LED-high": {"light.lux": 300.0, "light.warmth": 0.0},
    "Incandescent": {"light.lux": 200.0, "light.warmth": 0.8},
    "Nature": {"light.lux": 500.0, "light.warmth": -0.15, "light.kind": "drift"},
}
MOTIONS = {"Stationary": "still", "Rotation": "turn", "Talking": "talk", "Walking": "walk"}


def plan(subjects: int) -> list[PlannedRecording]:
    recordings = []
    for subject in range(1, subjects + 1):
        tasks = [(light, motion, False) for light in LIGHTS for motion in MOTIONS]
        tasks += [(light, "Stationary", True) for light in LIGHTS]
        for number, (light, motion, exercise) in enumerate(tasks):
            index = 100 * subject + number
            fixed = {
                **LIGHTS[light],
                "motion.kind": MOTIONS[motion],
                "camera.fps": 30.0,
                "camera.jitter": 0.0,
            }
            if exercise:
                fixed["pulse.bpm"] = float(np.random.default_rng(index).uniform(95, 145))
            labels = {"light": light, "motion": motion, "exercise": str(exercise)}
            recordings.append(PlannedRecording(f"p{subject}_{number}", subject, index, fixed, labels))
    return recordings


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return _path(folder, planned).is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    from scipy.io import savemat

    pictures = transcode(recording.frames(), recording.codec, recording.fps)
    video = np.stack([rgb.astype(np.float32) / 255 for rgb in pictures])  # (T,H,W,3)
    conditions = recording.drawn.conditions
    content = {
        "video": video, "GT_ppg": recording.wave(recording.t_s)[None, :], **planned.labels,
        "skin_color": int(conditions["skin"]), "gender": "female" if planned.subject % 2 else "male",
        "glasser": str(conditions.get("glasses") == "true"), "hair_cover": "False", "makeup": "False",
    }  # fmt: skip
    with fileio.atomic_path(_path(folder, planned)) as temporary:
        savemat(temporary, content, do_compression=True)


def _path(folder: Path, planned: PlannedRecording) -> Path:
    return folder / f"subject{planned.subject}" / f"{planned.name}.mat"
