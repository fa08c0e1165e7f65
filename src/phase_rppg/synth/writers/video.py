"""Plain videos: NAME.mp4 (or .mkv, .avi) with NAME.csv (the finger clip) and NAME.json (the whole truth).

The folder is also a data set of its own, readable as `folder`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ...video.encode import write_video
from ..film import Film
from . import Shot

NAME = "video"
REFERENCE_HZ = 60.0
_SUFFIX = {"h264": ".mp4", "mjpeg": ".avi", "raw": ".mkv"}


def plan(subjects: int) -> list[Shot]:
    return [Shot(f"{index:05d}", index + 1, index) for index in range(subjects)]


def finished(folder: Path, shot: Shot) -> bool:
    return (folder / f"{shot.name}.json").is_file()


def write(folder: Path, shot: Shot, recording: Film) -> None:
    video = folder / (shot.name + _SUFFIX[recording.codec.name])
    encode(video, recording)
    for person in range(recording.people):
        suffix = "" if person == 0 else f"-person{person + 1}"
        t_s = np.arange(0, recording.t_s[-1], 1 / REFERENCE_HZ)
        rows = [f"{t:.5f},{value:.6f}" for t, value in zip(t_s, recording.wave(t_s, person), strict=True)]
        fileio.write_text(folder / f"{shot.name}{suffix}.csv", "\n".join(["t_s,ppg", *rows]) + "\n")
    truth = {
        "video": video.name, "conditions": dict(recording.staged.conditions), "fps": recording.fps,
        "frame_times_s": recording.t_s.round(6).tolist(),
        "people": [
            {
                "beat_times_s": recording.beats_s(person).round(5).tolist(),
                "bpm": recording.bpm(recording.t_s, person).round(3).tolist(),
                "boxes": recording.boxes(person).round(2).tolist(),
            }
            for person in range(recording.people)
        ],
    }  # fmt: skip
    fileio.write_text(folder / f"{shot.name}.json", fileio.dump_json(truth, indent=None) + "\n")


def encode(path: Path, recording: Film, even_clock: bool = False) -> None:
    """Write the frames with the recording's codec; AVI cannot hold time stamps and gets an even clock."""
    spec = recording.codec
    even = even_clock or path.suffix == ".avi"
    write_video(
        path,
        recording.frames(),
        round(recording.fps, 3) if even else None,
        t_s=None if even else recording.t_s,
        codec=spec.name,
        crf=spec.crf if spec.name == "h264" and spec.kbps <= 0 else None,
        bitrate=int(1000 * spec.kbps) if spec.name == "h264" and spec.kbps > 0 else None,
        preset=spec.preset if spec.name == "h264" else None,
    )
