"""Training and test recordings: prepared data sets, or clips of synthetic worlds."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import registry
from ..datasets import base, cache, splits
from ..datasets.prepare import prepare
from ..errors import InputError, RecordingError, UnknownNameError
from ..evaluate import clip_evaluation, synthetic_stamp
from ..evaluate.conventions import OURS, Convention
from ..evaluate.leaks import subject_key
from ..synth.clips import ClipJob, Clips, write_clips
from ..types import BoolArray, ByteArray, FloatArray
from .plan import DATASETS, Plan
from .training_settings import CLIP_FRAMES, Budget

WORLD_SEED = 600  # seed of the clips of synthetic worlds


@dataclass(frozen=True, eq=False)
class Item:
    """One recording, read from disk when it is opened."""

    subject: str
    name: str
    conditions: Mapping[str, str]
    frames: int
    origin: cache.Entry | tuple[Clips, int] | tuple[()]  # empty: only planned

    @property
    def key(self) -> str:
        """The digest of the recording and of its preparation; the name of a generated clip."""
        return self.origin.key if isinstance(self.origin, cache.Entry) else self.name

    def open(self) -> tuple[ByteArray, FloatArray, BoolArray, float]:
        """Return pixels (T,S,S,3) u8, the reference waveform (T,), valid (T,) and the frame rate."""
        if isinstance(self.origin, cache.Entry):
            return self.origin.pixels, self.origin.wave, self.origin.valid, self.origin.fps
        if not self.origin:
            raise InputError(f"{self.name}: is only planned and has no pixels")
        clips, index = self.origin
        pixels, wave, fps, _ = clips.clip(index)
        return pixels, wave, np.ones(len(wave), bool), fps


@dataclass(frozen=True, eq=False)
class Domain:
    """A data set or a world, prepared for training and testing."""

    name: str
    where: str
    synthetic: bool
    fingerprint: str  # hash of all recordings and of their preparation
    items: tuple[Item, ...]
    excluded: tuple[str, ...] = ()
    at_size: Callable[[int], Domain] | None = None  # prepares the data set again with crops of another size

    def of(self, subjects: Sequence[str]) -> list[Item]:
        """Return the recordings of some subjects."""
        chosen = set(subjects)
        return [item for item in self.items if item.subject in chosen]

    @property
    def subjects(self) -> list[str]:
        return sorted({item.subject for item in self.items}, key=base.natural_key)

    def split(self, intra: bool) -> splits.Split:
        """Return the training, validation and test subjects; `intra` if the domain is also the target."""
        ratios = splits.ratios(self.name)["intra"] if intra else splits.CROSS
        return splits.by_ratio(self.name, self.subjects, *ratios)


class ItemSource:
    """Recordings as a clip source of the training loop, without those that are too short for a clip."""

    def __init__(self, items: Sequence[Item], frames: int, dataset: str = "") -> None:
        self.items = [item for item in items if cache.longest_run(item.open()[2]) >= frames]
        if not self.items:
            raise InputError(f"no training recording has {frames} frames in a row with a face and a label")
        self.subjects = tuple(dict.fromkeys(subject_key(dataset, item.subject) for item in self.items))

    def __len__(self) -> int:
        return len(self.items)

    def clip(self, index: int) -> tuple[ByteArray, FloatArray, float, dict[str, Any]]:
        pixels, wave, valid, fps = self.items[index].open()
        return pixels, wave, fps, {"name": self.items[index].name, "valid": valid}


def clips_in(items: Sequence[Item]) -> int:
    """Return the number of clips that an epoch takes from recordings."""
    return sum(max(1, item.frames // CLIP_FRAMES) for item in items)


@dataclass(frozen=True)
class DatasetSearch:
    """The data sets that were found, and the folders that were searched."""

    found: dict[str, Path]
    searched: tuple[str, ...]

    def missing(self, names: Sequence[str]) -> list[str]:
        """Return the data sets that were not found."""
        return [name for name in names if name not in self.found]

    def explain(self, name: str) -> str:
        """Return the error message for a data set that was not found."""
        layout = registry.load("datasets", name).LAYOUT
        folders = ", ".join(self.searched) or "no folder (give one with --data ROOT)"
        return f"{name}: not found; searched {folders}; expected {layout}"


def locate(roots: Sequence[str]) -> DatasetSearch:
    """Find data sets by their layout in the given folders and one level below; `pure=PATH` names one."""
    found: dict[str, Path] = {}
    searched: list[str] = []
    for root in roots:
        name, equals, path = root.partition("=")
        if equals and name in DATASETS:
            base.find(name, path)  # raises an error that describes the expected layout
            found[name] = Path(path)
            searched.append(path)
            continue
        if equals and not Path(root).exists():
            raise UnknownNameError("data set", name, DATASETS)
        folder = Path(root)
        if not folder.is_dir():
            searched.append(f"{folder} (no such folder)")
            continue
        searched.append(str(folder))
        for dataset in DATASETS:
            for held in _roots_in(dataset, folder):
                if found.setdefault(dataset, held) != held:
                    both = f"{found[dataset]} and {held}"
                    raise InputError(f"{both} both contain {dataset}: choose one with --data {dataset}=PATH")
    return DatasetSearch(found, tuple(searched))


def _roots_in(dataset: str, folder: Path) -> list[Path]:
    """Return the folder if it is the data set itself, otherwise its subfolders that are."""
    find = registry.load("datasets", dataset).find
    return [folder] if find(folder) else [child for child in base.subfolders(folder) if find(child)]


def open_domains(
    plan: Plan,
    budget: Budget,
    data: Sequence[str],
    out: Path,
    workers: int,
    log: Callable[[str], None],
    convention: Convention = OURS,
) -> dict[str, Domain]:
    """Find and prepare the data of a plan; missing data sets and the cells that can still run are logged."""
    if plan.worlds:
        folder = out / "clips" / budget.name
        return {world: open_world(world, folder, budget, workers, log) for world in plan.domains}
    if not plan.domains:
        return {}
    search = locate([str(Path(root).expanduser()) for root in data])
    missing = search.missing(plan.domains)
    for name in missing:
        log(search.explain(name))
    possible = [cell for cell in plan.cells if not set(cell.domains) & set(missing)]
    if not possible:
        raise InputError(f"{plan.name}: no cell can run; {search.explain(missing[0])}")
    if missing:
        rows = ", ".join(dict.fromkeys(f"{cell.row} → {cell.column}" for cell in possible[:6]))
        more = " …" if len(possible) > 6 else ""
        log(f"{len(possible)} of {len(plan.cells)} cells can still run: {rows}{more}")
    needed = dict.fromkeys(domain for cell in possible for domain in cell.domains)
    ready = {}
    for name in needed:
        log(f"{name}: preparing {search.found[name]}")
        try:
            ready[name] = open_dataset(
                name, search.found[name], out / "prepared" / budget.name, budget, workers, log, convention
            )
        except InputError as error:  # only the cells of this data set cannot run
            log(str(error))
    if not ready:
        raise InputError(f"{plan.name}: none of its data sets can be used: {', '.join(needed)}")
    return ready


def open_dataset(
    name: str,
    root: Path,
    cache_root: Path,
    budget: Budget,
    workers: int,
    log: Callable[[str], None],
    convention: Convention = OURS,
) -> Domain:
    """Prepare a data set, as far as it is not prepared yet, and return its recordings."""

    def log_problem(problem: RecordingError | None) -> None:
        if problem is not None:
            log(f"{name}: excluded: {problem}")

    report = prepare(
        name,
        root,
        cache_root,
        clip_evaluation.preparation(convention, budget.size),
        workers=workers,
        on_done=lambda d: log_problem(d.problem),
    )
    entries = [cache.open_entry(done.path, verify=False) for done in report.outcomes if done.path is not None]
    items = tuple(Item(e.subject, e.name, dict(e.conditions), e.frames, e) for e in entries)
    digest = hashlib.sha256("\n".join(sorted(e.key for e in entries)).encode()).hexdigest()
    excluded = tuple(problem.recording for problem in report.problems)
    synthetic = any(synthetic_stamp.synthetic_flags(base.find(name, root)))

    def at_size(size: int) -> Domain:
        other = dataclasses.replace(budget, size=size)
        return open_dataset(name, root, cache_root, other, workers, log, convention)

    return Domain(name, str(root), synthetic, digest, items, excluded, at_size)


def open_world(
    name: str, cache_root: Path, budget: Budget, workers: int, log: Callable[[str], None]
) -> Domain:
    """Generate the clips of a world, as far as they do not exist; every clip has its own subject."""
    log(f"{name}: {budget.clips} clips of {budget.seconds:g} s")
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
