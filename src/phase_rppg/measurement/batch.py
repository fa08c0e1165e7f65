"""Measure many videos in parallel; a bad file does not stop the others."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, InternalError, PhaseError
from ..session.results import Result
from ..workers import Job, WorkerDied, run_jobs
from .measure import MeasureOptions, run

VIDEO_SUFFIXES = frozenset(
    {".avi", ".mkv", ".mov", ".mp4", ".m4v", ".mpg", ".mpeg", ".ts", ".webm", ".wmv", ".3gp", ".flv", ".y4m"}
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A video that could not be measured, and why."""

    video: str
    problem: str  # one line
    internal: bool = False  # a fault of ours, not of the video


def find_videos(paths: Sequence[Path]) -> list[Path]:
    """Files as they are named, and the videos inside folders (not deeper), each once and in order."""
    found: list[Path] = []
    for path in paths:
        if os.path.isdir(path):
            try:
                names = sorted(path.iterdir())
            except OSError as error:
                raise InputError(
                    f"{path}: cannot be read ({error.strerror}); check its permissions"
                ) from None
            inside = [p for p in names if p.suffix.lower() in VIDEO_SUFFIXES and os.path.isfile(p)]
            if not inside:
                raise InputError(
                    f"{path}: a folder without videos; name a video file or a folder that holds some"
                )
            found += inside
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def measure_many(
    videos: Sequence[Path], order: MeasureOptions, jobs: int
) -> Iterator[tuple[int, Result | Failure]]:
    """Measure all videos on `jobs` processes; yield (position in the list, result) as each one finishes."""
    order.config()  # refuses wrong options before any process starts
    work = [Job(str(video), (position, str(video), order)) for position, video in enumerate(videos)]
    for outcome in run_jobs(_measure_one, work, max(1, jobs)):
        position, video, _ = outcome.job.arguments
        yield position, outcome.result if outcome.error is None else _failure(video, outcome.error)


def _measure_one(_position: int, video: str, order: MeasureOptions) -> Result:
    return run(video, order)


def _failure(video: str, error: PhaseError) -> Failure:
    if isinstance(error, WorkerDied):
        return Failure(video, f"{error}; the file may be damaged")
    return Failure(video, str(error), internal=isinstance(error, InternalError))
