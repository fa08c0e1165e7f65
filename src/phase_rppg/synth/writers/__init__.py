"""Recordings on disk: videos with references, or a fake data set in a real one's exact layout.

One file per layout, each with
    NAME
    plan(subjects) -> list[Shot]            which recordings a data set of so many subjects has
    write(folder, shot, film) -> None       write one of them; its last file appears only when all is there
    finished(folder, shot) -> bool          whether it is there already
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from ... import fileio
from ...errors import ArgumentError, UnknownNameError
from ...workers import map_in_order
from ..film import Film, film
from ..world import load


@dataclass(frozen=True, slots=True)
class Shot:
    """One recording of a data set."""

    name: str  # unique, e.g. "subject3" or "01-04"
    subject: int  # counted from 1
    index: int
    fixed: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


class Writer(Protocol):
    """What a module of this folder offers."""

    NAME: str

    def plan(self, subjects: int) -> list[Shot]: ...
    def write(self, folder: Path, shot: Shot, recording: Film) -> None: ...
    def finished(self, folder: Path, shot: Shot) -> bool: ...


MARKER = "SYNTHETIC.txt"
FORMS = ("video", "ubfc_rppg", "pure", "buaa_mihr", "mmpd")


def writer(name: str) -> Writer:
    """The module that writes a layout."""
    if name not in FORMS:
        raise UnknownNameError("output form", name, ("clips", *FORMS))
    return cast(Writer, importlib.import_module(f".{name}", __package__))


@dataclass(frozen=True, slots=True)
class FilmJob:
    """How to make the recordings of a data set; the same job always gives the same ones."""

    form: str
    out: str
    world: str
    seconds: float
    height: int = 480
    seed: int = 0
    faces: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, shot: Shot) -> str:
        recording = film(
            load(self.world), self.seed, shot.index, seconds=self.seconds, height=self.height,
            width=2 * round(2 * self.height / 3), faces=None if self.faces is None else Path(self.faces),
            fixed={**shot.fixed, **self.fixed}, who=shot.subject,
        )  # fmt: skip
        writer(self.form).write(Path(self.out), shot, recording)
        command = f"phase synth --as {self.form} --world {self.world} --seed {self.seed}"
        for folder in (Path(self.out), *filter(Path.is_dir, Path(self.out).iterdir())):
            mark(folder, command)  # each subject too, so that one that is moved elsewhere stays marked
        return shot.name


def mark(folder: Path, command: str) -> None:
    """Leave the marker that says: nobody was ever filmed for this."""
    if not (folder / MARKER).exists():
        text = f"These recordings are synthetic: no person was filmed.\nMade by: {command}\n"
        fileio.write_text(folder / MARKER, text)


def is_synthetic(root: str | Path) -> bool:
    """Whether a data set, or any part of it, was made by the generator: its marker lies there or above."""
    root = Path(root).resolve()
    return any((place / MARKER).exists() for place in (root, *root.parents)) or any(root.glob(f"*/{MARKER}"))


def write_recordings(
    job: FilmJob,
    subjects: int,
    *,
    per_subject: int | None = None,
    workers: int = 1,
    started: Callable[[int], None] | None = None,
    done: Callable[[int], None] | None = None,
) -> list[Shot]:
    """Write all recordings of `subjects` people (or the first `per_subject` of each); finished ones are kept.

    `started` is told how many there are, `done` whenever some have become ready.
    """
    if subjects < 1 or job.height < 32 or job.height % 2:
        raise ArgumentError(
            "n, size", (subjects, job.height), "at least 1 subject; an even height of 32 or more"
        )
    module, root = writer(job.form), Path(job.out)
    shots = [
        shot
        for shot in module.plan(subjects)
        if per_subject is None or _rank(shot, module, subjects) < per_subject
    ]
    missing = [shot for shot in shots if not module.finished(root, shot)]
    if started is not None:
        started(len(shots))
    if done is not None and len(missing) < len(shots):
        done(len(shots) - len(missing))
    for _ in map_in_order(job, missing, workers, name=lambda shot: shot.name):
        if done is not None:
            done(1)
    return shots


def _rank(shot: Shot, module: Writer, subjects: int) -> int:
    own = [other.name for other in module.plan(subjects) if other.subject == shot.subject]
    return own.index(shot.name)
