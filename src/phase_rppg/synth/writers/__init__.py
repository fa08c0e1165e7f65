"""Write synthetic recordings to disk, as plain videos or in the layout of a public data set.

One file per layout, with

    NAME                                    the name for `phase synth --as`
    plan(subjects)                          the recordings of a data set with so many subjects
    write(folder, planned, recording)       write one recording; the file that marks it as finished comes last
    finished(folder, planned)               whether the recording is already written
    HEIGHT_PX                               the default height of the video (optional, 480)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from ... import fileio, registry
from ...errors import ArgumentError, UnknownNameError
from ...workers import LOCAL, Engine, map_in_order
from ..recording import SyntheticRecording, make_recording
from ..sample import random_stream
from ..world import FrameSpec, load


@dataclass(frozen=True, slots=True)
class PlannedRecording:
    """The name, subject and fixed settings of one recording to be written."""

    name: str  # unique, e.g. "subject3" or "01-04"
    subject: int  # starting at 1
    index: int
    fixed: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


class Writer(Protocol):
    """The interface of the modules in this folder."""

    NAME: str

    def plan(self, subjects: int) -> list[PlannedRecording]: ...
    def write(self, folder: Path, planned: PlannedRecording, recording: SyntheticRecording) -> None: ...
    def finished(self, folder: Path, planned: PlannedRecording) -> bool: ...


MARKER = "SYNTHETIC.txt"
PACKAGE = "synth/writers"
HEIGHT_PX = 480


def names() -> list[str]:
    """Return the names of the layouts."""
    return registry.names(PACKAGE)


def writer(name: str) -> Writer:
    """Return the module that writes a layout."""
    if name not in names():
        raise UnknownNameError("layout", name, ("clips", *names()))
    return cast(Writer, registry.load(PACKAGE, name))


@dataclass(frozen=True, slots=True)
class RecordingJob:
    """The settings of the recordings of a data set. Equal jobs give equal recordings."""

    layout: str
    out: str
    world: str
    seconds: float
    height: int = HEIGHT_PX
    seed: int = 0
    faces: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, planned: PlannedRecording) -> str:
        world, fixed = load(self.world), {**planned.fixed, **self.fixed}
        upright = world.draw(
            FrameSpec, random_stream(world, self.seed, planned.index, "frame"), fixed
        ).portrait
        recording = make_recording(
            world, self.seed, planned.index, seconds=self.seconds, height=self.height,
            width=2 * round((9 / 32 if upright else 2 / 3) * self.height),
            faces=None if self.faces is None else Path(self.faces),
            fixed=fixed, identity=planned.subject,
        )  # fmt: skip
        writer(self.layout).write(Path(self.out), planned, recording)
        command = f"phase synth --as {self.layout} --world {self.world} --seed {self.seed}"
        for folder in (Path(self.out), *filter(Path.is_dir, Path(self.out).iterdir())):
            mark(folder, command)  # also each subject, so that a folder that is moved stays marked
        return planned.name


def mark(folder: Path, command: str) -> None:
    """Write the file that marks a folder as synthetic."""
    if not (folder / MARKER).exists():
        text = f"These recordings are synthetic: no person was filmed.\nMade by: {command}\n"
        fileio.write_text(folder / MARKER, text)


def is_synthetic(root: str | Path) -> bool:
    """Return whether the marker is in a data set, in one of its folders or in a folder above it."""
    root = Path(root).resolve()
    return any((folder / MARKER).exists() for folder in (root, *root.parents)) or any(
        root.glob(f"*/{MARKER}")
    )


def write_recordings(
    job: RecordingJob,
    subjects: int,
    *,
    per_subject: int | None = None,
    workers: int | None = 1,
    engine: Engine = LOCAL,
    started: Callable[[int], None] | None = None,
    done: Callable[[int], None] | None = None,
) -> list[PlannedRecording]:
    """Write all recordings of `subjects` people, or the first `per_subject` of each; finished ones are kept.

    `started` is called with the total number, `done` with the number that was finished since the last call.
    """
    if subjects < 1 or job.height < 32 or job.height % 2:
        raise ArgumentError(
            "n, size", (subjects, job.height), "at least 1 subject; an even height of 32 or more"
        )
    module, root = writer(job.layout), Path(job.out)
    recordings = [
        one
        for one in module.plan(subjects)
        if per_subject is None or _rank(one, module, subjects) < per_subject
    ]
    missing = [one for one in recordings if not module.finished(root, one)]
    if started is not None:
        started(len(recordings))
    if done is not None and len(missing) < len(recordings):
        done(len(recordings) - len(missing))
    writing = map_in_order(job, missing, workers, name=lambda one: one.name, engine=engine)
    with contextlib.closing(writing) as running:
        for _ in running:
            if done is not None:
                done(1)
    return recordings


def _rank(one: PlannedRecording, module: Writer, subjects: int) -> int:
    own = [other.name for other in module.plan(subjects) if other.subject == one.subject]
    return own.index(one.name)
