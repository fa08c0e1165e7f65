"""Where clips and test recordings come from: data sets that were found and prepared, or worlds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import registry
from ..datasets import base, cache, splits
from ..datasets.prepare import Settings, prepare
from ..errors import InputError, RecordingError, UnknownNameError
from ..evaluate import data_stamp
from ..synth.clips import ClipJob, Clips, write_clips
from ..types import BoolArray, ByteArray, FloatArray
from .budget import CLIP_FRAMES, Budget
from .plan import DATASETS

WORLD_SEED = 600  # of the clips of the study


@dataclass(frozen=True, eq=False)
class Item:
    """One recording, opened when it is looked at."""

    subject: str
    name: str
    conditions: Mapping[str, str]
    frames: int
    origin: cache.Entry | tuple[Clips, int]

    def open(self) -> tuple[ByteArray, FloatArray, BoolArray, float]:
        """(pixels (T,S,S,3) u8, reference wave (T,), valid (T,), fps)."""
        if isinstance(self.origin, cache.Entry):
            return self.origin.pixels, self.origin.wave, self.origin.valid, self.origin.fps
        clips, index = self.origin
        pixels, wave, fps, _ = clips.clip(index)
        return pixels, wave, np.ones(len(wave), bool), fps


@dataclass(frozen=True, eq=False)
class Domain:
    """A data set or a world, ready to be used."""

    name: str
    where: str
    synthetic: bool
    fingerprint: str  # of every recording and of how it was prepared
    items: tuple[Item, ...]
    excluded: tuple[str, ...] = ()

    def of(self, subjects: Sequence[str]) -> list[Item]:
        wanted = set(subjects)
        return [item for item in self.items if item.subject in wanted]

    @property
    def subjects(self) -> list[str]:
        return sorted({item.subject for item in self.items}, key=base.natural_key)

    def split(self, intra: bool) -> splits.Split:
        """Who is trained on, chosen by and tested on, when this domain is target and only source, or one."""
        ratios = splits.RATIOS.get(self.name, splits.RATIOS["folder"])["intra"] if intra else splits.CROSS
        return splits.by_ratio(self.name, self.subjects, *ratios)


class ItemSource:
    """Recordings as the training loop wants them; those without one whole clip are left out."""

    def __init__(self, items: Sequence[Item], frames: int) -> None:
        self.items = [item for item in items if _longest_run(item) >= frames]
        if not self.items:
            raise InputError(f"no training recording has {frames} frames in a row with a face and a label")

    def __len__(self) -> int:
        return len(self.items)

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        pixels, wave, valid, fps = self.items[index].open()
        return pixels, wave, fps, {"name": self.items[index].name, "valid": valid}


def _longest_run(item: Item) -> int:
    valid = item.open()[2]
    edges = np.flatnonzero(np.diff(np.concatenate([[0], valid.astype(np.int8), [0]])))
    return int(np.diff(edges)[::2].max(initial=0))


def clips_in(items: Sequence[Item]) -> int:
    """How many clips an epoch takes from these recordings."""
    return sum(max(1, item.frames // CLIP_FRAMES) for item in items)


@dataclass(frozen=True)
class Located:
    """Where the data sets are, and where it was looked."""

    found: dict[str, Path]
    looked: tuple[str, ...]

    def missing(self, wanted: Sequence[str]) -> list[str]:
        return [name for name in wanted if name not in self.found]

    def explain(self, name: str) -> str:
        layout = registry.load("datasets", name).LAYOUT
        places = ", ".join(self.looked) or "nowhere: give --data ROOT"
        return f"{name}: not found; looked in {places}; expected {layout}"


def locate(roots: Sequence[str]) -> Located:
    """Find data sets by their layout in the given folders and one level below; `pure=PATH` names one."""
    found: dict[str, Path] = {}
    looked: list[str] = []
    for root in roots:
        name, equals, place = root.partition("=")
        if equals and name in DATASETS:
            base.find(name, place)  # refused with its layout if it is not that
            found[name] = Path(place)
            looked.append(place)
            continue
        if equals and not Path(root).exists():
            raise UnknownNameError("data set", name, DATASETS)
        folder = Path(root)
        if not folder.is_dir():
            looked.append(f"{folder} (no such folder)")
            continue
        looked.append(str(folder))
        for dataset in DATASETS:
            for held in _holding(dataset, folder):
                if found.setdefault(dataset, held) != held:
                    both = f"{found[dataset]} and {held}"
                    raise InputError(f"{both} both hold {dataset}: name one with --data {dataset}=PATH")
    return Located(found, tuple(looked))


def _holding(dataset: str, folder: Path) -> list[Path]:
    """The folder itself, if it is the data set: parts of it may look like one too; else those just below."""
    find = registry.load("datasets", dataset).find
    return [folder] if find(folder) else [place for place in base.subfolders(folder) if find(place)]


def open_dataset(
    name: str,
    root: Path,
    cache_root: Path,
    budget: Budget,
    workers: int,
    tell: Callable[[str], None],
) -> Domain:
    """Prepare a data set (or keep what is prepared) and list its recordings."""

    def say(problem: RecordingError | None) -> None:
        if problem is not None:
            tell(f"{name}: excluded: {problem}")

    report = prepare(
        name, root, cache_root, Settings(size=budget.size), workers=workers, on_done=lambda d: say(d.problem)
    )
    entries = [cache.open_entry(done.path, verify=False) for done in report.outcomes if done.path is not None]
    items = tuple(Item(e.subject, e.name, dict(e.conditions), e.frames, e) for e in entries)
    digest = hashlib.sha256("\n".join(sorted(e.key for e in entries)).encode()).hexdigest()
    excluded = tuple(problem.recording for problem in report.problems)
    fake = any(data_stamp.synthetic(base.find(name, root)))
    return Domain(name, str(root), fake, digest, items, excluded)


def open_world(
    name: str, cache_root: Path, budget: Budget, workers: int, tell: Callable[[str], None]
) -> Domain:
    """Make the clips of a world (or keep those that are made); every clip is a subject of its own."""
    tell(f"{name}: {budget.clips} clips of {budget.seconds:g} s")
    folder = cache_root / f"{name}-{budget.size}px-{budget.seconds:g}s"
    clips = write_clips(
        folder, ClipJob(name, budget.seconds, budget.size, WORLD_SEED), budget.clips, workers=workers
    )
    items = tuple(
        Item(f"{i}", f"{name} {i}", _conditions(clips.clip(i)[3]), len(clips.clip(i)[1]), (clips, i))
        for i in range(budget.clips)
    )
    facts = sorted((str(key), str(value)) for key, value in clips.job.items())
    digest = hashlib.sha256(repr((facts, budget.clips)).encode()).hexdigest()
    return Domain(name, f"phase synth --world {name}", True, digest, items)


def _conditions(meta: Mapping[str, Any]) -> dict[str, str]:
    return {key: value for key, value in meta.items() if isinstance(value, str)}
