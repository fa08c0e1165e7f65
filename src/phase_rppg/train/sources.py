"""Sources of training clips: stored clips, the generator, prepared recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..datasets.base import natural_key
from ..datasets.cache import Entry, open_cache
from ..errors import InputError, RecipeError
from ..evaluate.leaks import subject_key
from ..synth.clips import ClipJob, Clips, write_clips
from ..types import BoolArray, ByteArray, FloatArray
from .recipe import Data, Source


class ClipSource(Protocol):
    """Numbered clips; an index always gives the same clip. A source can be pickled."""

    def __len__(self) -> int: ...

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        """Return (pixels (T,S,S,3) u8, wave (T,), fps, meta).

        Optional: meta["valid"] (T,) marks the usable frames, meta["mask"] (S,S) is the skin mask, 0–1.
        """
        ...


def subjects_of(sources: Iterable[object]) -> list[str]:
    """Return the subjects of clip sources as "DATASET/SUBJECT"; generated clips show no real subject."""
    return [name for source in sources for name in getattr(source, "subjects", ())]


@dataclass(frozen=True)
class ClipProgress:
    """The number of clips that a stage has generated, for the callback `on_clips`."""

    done: int  # clips of an earlier run included
    total: int
    made: int  # clips of this run
    folder: str  # in which the last clips were stored; empty before the first
    stage: str = ""


OnClips = Callable[[ClipProgress], None]


def open_sources(
    data: Data, folder: Path, on_clips: OnClips | None = None
) -> tuple[list[ClipSource], list[ClipSource]]:
    """Open the sources for training and for validation, and generate the clips that are missing.

    A relative `cache` of a source is a folder below `folder`. `on_clips` is called first with no clips, then
    after each clip.
    """
    counts = {source.cache: source.count for source in (*data.train, *data.validate) if source.cache}
    total, done, made = sum(counts.values()), 0, 0
    report = on_clips or _ignore
    report(ClipProgress(0, total, 0, ""))
    counted: set[str] = set()

    def open_one(source: Source) -> ClipSource:
        def advance(count: int) -> None:
            nonlocal done, made
            if source.cache not in counted:  # otherwise another source of the same folder was opened
                done, made = done + count, made + (count == 1)  # a stored shard counts as many
                report(ClipProgress(done, total, made, str(folder / source.cache)))

        clips = open_source(source, data.workers, folder=folder, on_made=advance)
        counted.add(source.cache)
        return clips

    _refuse_tested(data)
    return [open_one(source) for source in data.train], [open_one(source) for source in data.validate]


def _refuse_tested(data: Data) -> None:
    """Raise an error if a prepared source contains a test subject, also under another folder."""
    tested = set(subjects_of(_prepared(data.test)))
    for table, used in (("train", data.train), ("validate", data.validate)):
        if shared := sorted(tested & set(subjects_of(_prepared(used) if tested else ()))):
            raise RecipeError(f"data.{table}", f"has subjects of data.test: {', '.join(shared[:5])}")


def _prepared(sources: Iterable[Source]) -> list[PreparedRecordings]:
    return [PreparedRecordings(s.prepared, s.dataset or None, s.part) for s in sources if s.prepared]


def open_source(
    source: Source,
    workers: int = 1,
    *,
    folder: Path = Path(),
    on_made: Callable[[int], None] | None = None,
) -> ClipSource:
    """Open a source of a recipe; clips of a world with a cache are generated first.

    A relative `cache` is a folder below `folder`. `on_made` is called with the number of new clips.
    """
    if source.clips:
        return Subset(Clips(source.clips), source.part)
    if source.prepared:
        return PreparedRecordings(source.prepared, source.dataset or None, source.part)
    job = ClipJob(source.world, source.seconds, source.size, source.seed, source.faces or None)
    if not source.cache:
        return Subset(GeneratedClips(job, source.count), source.part)
    clips = write_clips(folder / source.cache, job, source.count, workers=workers, done=on_made)
    return Subset(clips, source.part)


class Subset:
    """A range of another source."""

    def __init__(self, source: ClipSource, part: tuple[float, float]) -> None:
        self.source = source
        self.first, self.stop = (int(share * len(source) + 1e-9) for share in part)
        if self.stop <= self.first:
            raise InputError(f"no clips in the part {list(part)} of {len(source)}")

    def __len__(self) -> int:
        return self.stop - self.first

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        return self.source.clip(self.first + index)


class GeneratedClips:
    """Clips that are generated on access."""

    def __init__(self, job: ClipJob, count: int) -> None:
        self.job, self.count = job, count

    def __len__(self) -> int:
        return self.count

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        made = self.job.make(index)
        meta = {**made.truth.conditions, "mask": made.truth.mask}
        return made.pixels, np.asarray(made.truth.wave), made.truth.fps, meta


class PreparedRecordings:
    """Recordings of a prepared data set, split by subject; only frames with face and reference are valid."""

    def __init__(self, root: str | Path, dataset: str | None, part: tuple[float, float]) -> None:
        entries = open_cache(root, dataset)
        subjects = sorted({(e.dataset, e.subject) for e in entries}, key=lambda s: (s[0], natural_key(s[1])))
        first, stop = (int(share * len(subjects) + 1e-9) for share in part)
        wanted = set(subjects[first:stop])
        self.entries: list[Entry] = [e for e in entries if (e.dataset, e.subject) in wanted]
        self.subjects = tuple(subject_key(*pair) for pair in subjects[first:stop])
        if not self.entries:
            raise InputError(f"{root}: no recordings in the part {list(part)} of {len(subjects)} subjects")

    def __len__(self) -> int:
        return len(self.entries)

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        entry = self.entries[index]
        valid: BoolArray = entry.valid
        return entry.pixels, entry.wave, entry.fps, {"name": entry.name, "valid": valid}


def _ignore(progress: ClipProgress) -> None:
    del progress
