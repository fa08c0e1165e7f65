"""Write plain videos: NAME.mp4 (or .mkv, .avi), NAME.csv (contact PPG) and NAME.json (ground truth).

The data set `folder` reads this layout.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ... import fileio
from ...video.encode import write_video
from ..recording import SyntheticRecording
from . import PlannedRecording

NAME = "video"
REFERENCE_HZ = 60.0
_SUFFIX = {"h264": ".mp4", "hevc": ".mp4", "mpeg4": ".mp4", "mjpeg": ".avi", "raw": ".mkv"}


def plan(subjects: int) -> list[PlannedRecording]:
    return [PlannedRecording(f"{index:05d}", index + 1, index) for index in range(subjects)]


def finished(folder: Path, planned: PlannedRecording) -> bool:
    return (folder / f"{planned.name}.json").is_file()


def write(folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None:
    video = folder / (planned.name + _SUFFIX[recording.codec.name])
    encode(video, recording)
    for person in range(recording.people):
        suffix = "" if person == 0 else f"-person{person + 1}"
        t_s = np.arange(0, recording.t_s[-1], 1 / REFERENCE_HZ)
        rows = [f"{t:.5f},{value:.6f}" for t, value in zip(t_s, recording.wave(t_s, person), strict=True)]
        fileio.write_text(folder / f"{planned.name}{suffix}.csv", "\n".join(["t_s,ppg", *rows]) + "\n")
    truth = {
        "video": video.name, "conditions": dict(recording.drawn.conditions), "fps": recording.fps,
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
    fileio.write_text(folder / f"{planned.name}.json", fileio.dump_json(truth, indent=None) + "\n")


def encode(path: Path, recording: SyntheticRecording, uniform_clock: bool = False) -> None:
    """Encode the frames with the codec of the recording. AVI holds no timestamps and gets a uniform clock."""
    spec, (height, width) = recording.codec, recording.drawn.scene.shape
    by_quality = spec.name in ("h264", "hevc")
    bit_rate = spec.bit_rate(width, height, recording.fps)
    uniform = uniform_clock or path.suffix == ".avi"
    write_video(
        path,
        recording.frames(),
        round(recording.fps, 3) if uniform else None,
        t_s=None if uniform else recording.t_s,
        codec=spec.name,
        crf=spec.crf if by_quality and bit_rate <= 0 else None,
        bitrate=bit_rate if bit_rate > 0 else None,
        preset=spec.preset if by_quality else None,
        quality=spec.quality if spec.name in ("mjpeg", "mpeg4") else None,
    )
