"""Measure many videos in parallel; a failure in one file does not stop the others."""

from __future__ import annotations

import contextlib
import fnmatch
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from ..errors import InternalError, OutputError, PhaseError, UnknownNameError, VideoError
from ..session.results import Result
from ..video.suffixes import VIDEO_SUFFIXES
from ..workers import LOCAL, Engine, Job, WorkerDied, run_jobs
from .measure import MeasureOptions, run
from .sources import IMAGE_SUFFIXES

_MIN_IMAGES = 2  # in a folder of frames


@dataclass(frozen=True, slots=True)
class VideoInput:
    """One video to measure: a file or a folder of frames."""

    name: str  # as the user gave it, for results
    path: Path  # that is read; a copy in a temporary folder for standard input and downloads
    label: str  # the part of the name that differs between the inputs
    address: str = ""  # in an object store; the process that measures the video fetches it

    def absolute(self) -> VideoInput:
        """Return the video with a path that does not depend on the working folder."""
        return self if self.address else replace(self, path=self.path.absolute())


Save: TypeAlias = Callable[[VideoInput, Result], list[OutputError]]


@dataclass(frozen=True, slots=True)
class Failure:
    """A video that could not be measured, and why."""

    video: str
    problem: str  # one line
    internal: bool = False  # a defect of this software, not of the video


@dataclass(frozen=True, slots=True)
class FaceChoice:
    """The faces of a result that are kept: all of them, or the one with this number."""

    number: int | None = None

    def apply(self, result: Result) -> Result:
        """Return the result with the chosen face only; an absent face is an error."""
        if self.number is None:
            return result
        kept = tuple(face for face in result.faces if face.id == self.number)
        if not kept:
            raise UnknownNameError("face", str(self.number), [str(face.id) for face in result.faces])
        return replace(result, faces=kept)


def find_videos(
    paths: Sequence[Path], pattern: str | None = None, exclude: Path | None = None
) -> tuple[list[VideoInput], list[Failure]]:
    """Return the inputs in order, each once, and the folders in which there are none.

    Parameters
    ----------
    paths
        Files and folders. A folder is searched with all its sub-folders.
    pattern
        Shell pattern of the files to take from folders, instead of the known suffixes of videos. A pattern
        with a slash is compared with the path below the folder.
    exclude
        A folder that is not searched: the output of this command.
    """
    found: dict[Path, str] = {}
    failures = []
    for path in paths:
        if not os.path.isdir(path):
            found.setdefault(path, path.name)
            continue
        if is_frame_folder(path):
            found.setdefault(path, path.resolve().name)
            continue
        problems: list[Failure] = []
        inside = list(_videos_below(path, pattern, exclude, problems))
        if not inside and not problems:
            what = f"contains no videos that match {pattern}" if pattern else "contains no videos"
            advice = "give a video file or a folder with videos"
            problems = [Failure(str(path), f"{path}: {what}; {advice}")]
        failures += problems
        for file in inside:
            found.setdefault(file, str(file.relative_to(path)))
    if len(set(found.values())) < len(found):
        common = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in found])
        found = {path: os.path.relpath(os.path.abspath(path), common) for path in found}
    return [VideoInput(str(path), path, label) for path, label in found.items()], failures


def is_frame_folder(path: Path) -> bool:
    """Return whether a folder is one video: it holds images and no video, or is a recording of PURE."""
    return _holds_frames(path) or _holds_frames(path / path.resolve().name)


def _holds_frames(path: Path) -> bool:
    try:
        suffixes = [os.path.splitext(entry.name)[1].lower() for entry in os.scandir(path) if entry.is_file()]
    except OSError:
        return False
    images = sum(suffix in IMAGE_SUFFIXES for suffix in suffixes)
    return images >= _MIN_IMAGES and not any(suffix in VIDEO_SUFFIXES for suffix in suffixes)


def _videos_below(
    root: Path, pattern: str | None, exclude: Path | None, problems: list[Failure]
) -> Iterator[Path]:
    """Yield the videos and folders of frames below a folder; pipes and devices are left out."""

    def record(error: OSError) -> None:
        name = str(error.filename)
        problems.append(Failure(name, f"{name}: cannot be read ({error.strerror}); check its permissions"))

    excluded = None if exclude is None else exclude.resolve()
    for folder, subfolders, names in os.walk(root, onerror=record):
        here = Path(folder)
        if excluded is not None and here.resolve() == excluded:
            subfolders.clear()
            continue
        subfolders.sort()
        if pattern is None and here != root and is_frame_folder(here):
            subfolders.clear()
            yield here
            continue
        for name in sorted(names):
            file = here / name
            if _is_wanted(file, root, pattern) and os.path.isfile(file):
                yield file


def _is_wanted(file: Path, root: Path, pattern: str | None) -> bool:
    if pattern is None:
        return file.suffix.lower() in VIDEO_SUFFIXES
    return fnmatch.fnmatch(file.relative_to(root).as_posix() if "/" in pattern else file.name, pattern)


def measure_many(
    videos: Sequence[VideoInput],
    options: MeasureOptions,
    workers: int | None,
    *,
    face: FaceChoice | None = None,
    save: Save | None = None,
    engine: Engine = LOCAL,
) -> Generator[tuple[int, Result | Failure, list[OutputError]], None, None]:
    """Measure all videos; yield (position in the list, result, errors of `save`) as each one finishes.

    With 0 workers, the videos are measured in this process. `save` can be pickled. It is called in the worker
    process with each result, before the result is yielded. `engine` is where the videos are measured; None
    workers use all CPUs of a cluster.
    """
    options.config()  # raises an error for wrong options before any process starts
    if engine != LOCAL:
        videos = [video.absolute() for video in videos]
    work = [
        Job(video.name, (position, video, options, face or FaceChoice(), save))
        for position, video in enumerate(videos)
    ]
    with contextlib.closing(run_jobs(_measure_one, work, workers, engine=engine)) as running:
        for outcome in running:
            position, video, *_ = outcome.job.arguments
            if outcome.error is None:
                yield position, *outcome.result
            else:
                yield position, failure_of(video.name, outcome.error), []


def _measure_one(
    _position: int,
    video: VideoInput,
    options: MeasureOptions,
    face: FaceChoice,
    save: Save | None,
) -> tuple[Result, list[OutputError]]:
    from .object_store import fetched

    with fetched(video) as local, errors_named(video):
        result = face.apply(replace(run(local.path, options), video=video.name))
        return result, [] if save is None else save(local, result)


@contextlib.contextmanager
def errors_named(video: VideoInput) -> Iterator[None]:
    """Name a video in its errors as the user gave it, and not the path of a temporary copy."""
    try:
        yield
    except VideoError as error:
        if error.video != str(video.path) or error.video == video.name:
            raise
        raise type(error)(video.name, error.problem, error.hint) from error


def failure_of(video: str, error: PhaseError) -> Failure:
    """Return the failure of a video from the error of its job."""
    if isinstance(error, WorkerDied):
        return Failure(video, f"{error}; the file may be damaged")
    return Failure(video, str(error), internal=isinstance(error, InternalError))
