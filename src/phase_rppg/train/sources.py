"""Where training clips come from: shards of the generator, the generator itself, prepared recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..datasets.base import natural_key
from ..datasets.cache import Entry, open_cache
from ..errors import InputError
from ..synth.clips import ClipJob, Clips, write_clips
from ..types import BoolArray, ByteArray, FloatArray
from .recipe import Source


class ClipSource(Protocol):
    """Anything with numbered clips; the same number is always the same clip. It can be pickled."""

    def __len__(self) -> int: ...

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        """(pixels (T,S,S,3) u8, wave (T,), fps, meta).

        meta["valid"] (T,) may say which frames to use, meta["mask"] (S,S) 0–1 where the skin is.
        """
        ...


def open_source(source: Source, workers: int = 1) -> ClipSource:
    """Open what a recipe names; a world with a cache is made first."""
    if source.clips:
        return Part(Clips(source.clips), source.part)
    if source.prepared:
        return Prepared(source.prepared, source.dataset or None, source.part)
    job = ClipJob(source.world, source.seconds, source.size, source.seed, source.faces or None)
    if not source.cache:
        return Part(Generated(job, source.count), source.part)
    return Part(write_clips(source.cache, job, source.count, workers=max(1, workers)), source.part)


class Part:
    """A consecutive part of another source."""

    def __init__(self, source: ClipSource, part: tuple[float, float]) -> None:
        self.source = source
        self.first, self.stop = (int(share * len(source) + 1e-9) for share in part)
        if self.stop <= self.first:
            raise InputError(f"no clips in the part {list(part)} of {len(source)}")

    def __len__(self) -> int:
        return self.stop - self.first

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        return self.source.clip(self.first + index)


class Generated:
    """Clips that the generator makes when they are asked for."""

    def __init__(self, job: ClipJob, count: int) -> None:
        self.job, self.count = job, count

    def __len__(self) -> int:
        return self.count

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        made = self.job.make(index)
        meta = {**made.truth.conditions, "mask": made.truth.mask}
        return made.pixels, np.asarray(made.truth.wave), made.truth.fps, meta


class Prepared:
    """Recordings of a data set, by subject; frames without a face or a reference are marked."""

    def __init__(self, root: str | Path, dataset: str | None, part: tuple[float, float]) -> None:
        entries = open_cache(root, dataset)
        subjects = sorted({(e.dataset, e.subject) for e in entries}, key=lambda s: (s[0], natural_key(s[1])))
        first, stop = (int(share * len(subjects) + 1e-9) for share in part)
        wanted = set(subjects[first:stop])
        self.entries: list[Entry] = [e for e in entries if (e.dataset, e.subject) in wanted]
        if not self.entries:
            raise InputError(f"{root}: no recordings in the part {list(part)} of {len(subjects)} subjects")

    def __len__(self) -> int:
        return len(self.entries)

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        entry = self.entries[index]
        valid: BoolArray = entry.valid
        return entry.pixels, entry.wave, entry.fps, {"name": entry.name, "valid": valid}
