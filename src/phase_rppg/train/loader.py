"""From sources to batches. What is in a batch is a pure function of (seed, epoch, index).

Workers, processes and resumed runs therefore all see the same clips in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..errors import InputError
from ..types import BoolArray, ByteArray, FloatArray
from . import augment
from .recipe import Recipe
from .sources import ClipSource

Item: TypeAlias = tuple[ByteArray, FloatArray, bool, FloatArray]  # pixels, wave, labelled, skin


@dataclass(frozen=True)
class Batch:
    """Clips and what they should be read as."""

    pixels: Tensor  # (B,T,S,S,3) u8
    wave: Tensor  # (B,T) f32
    labelled: Tensor  # (B,) bool: whether a weakly supervised loss may look at the wave
    skin: Tensor  # (B,S,S) f32 0–1: living skin in the clip's first picture; all 0 where nobody knows


@dataclass(frozen=True)
class Plan:
    """Which clip of which source comes when."""

    sizes: tuple[int, ...]  # clips of each source
    weights: tuple[float, ...]
    clips_per_epoch: int
    batch: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        return max(1, self.clips_per_epoch // self.batch)

    def epoch(self, epoch: int) -> list[tuple[int, int]]:
        """(source, clip) of every place of an epoch; within a source no clip repeats before all were seen."""
        shares = np.array(self.weights) / sum(self.weights)
        counts = np.diff(np.rint(np.cumsum([0.0, *shares]) * self.clips_per_epoch)).astype(int)
        places: list[tuple[int, int]] = []
        for source, (size, count) in enumerate(zip(self.sizes, counts, strict=True)):
            first = epoch * count  # places of this source in earlier epochs
            for turn in range(first // size, (first + count - 1) // size + 1 if count else 0):
                order = np.random.default_rng([self.seed, 1, source, turn]).permutation(size)
                low, high = max(first - turn * size, 0), min(first + count - turn * size, size)
                places += [(source, int(clip)) for clip in order[low:high]]
        mixed = np.random.default_rng([self.seed, 2, epoch]).permutation(len(places))
        return [places[i] for i in mixed]


def plan(recipe: Recipe, sources: Sequence[ClipSource]) -> Plan:
    """The plan of a recipe over its opened sources."""
    sizes = tuple(len(source) for source in sources)
    if not all(sizes):
        raise InputError("a source of the recipe holds no clips yet")
    return Plan(
        sizes,
        tuple(source.weight for source in recipe.data.train),
        recipe.data.clips_per_epoch or sum(sizes),
        recipe.optimise.batch,
        recipe.seed,
    )


def starts(valid: BoolArray, length: int) -> np.ndarray:
    """Every first frame from which `length` frames are all valid."""
    if length > len(valid):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.convolve(valid.astype(np.int64), np.ones(length, np.int64), "valid") == length)


class TrainingClips(Dataset[Item]):
    """Item (epoch, place) is one augmented clip."""

    def __init__(self, recipe: Recipe, sources: Sequence[ClipSource], size: int, fps: float) -> None:
        self.recipe, self.sources, self.size, self.fps = recipe, sources, size, fps
        self.plan = plan(recipe, sources)
        self._epoch: tuple[int, list[tuple[int, int]]] = (-1, [])

    def __getitem__(self, place: tuple[int, int]) -> Item:
        epoch, index = place
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self.plan.epoch(epoch))
        source, clip = self._epoch[1][index]
        rng = np.random.default_rng([self.recipe.seed, 3, epoch, index])
        pixels, wave, skin = make(self.sources[source], clip, self.recipe, self.size, self.fps, rng)
        # The same clips are labelled in every epoch.
        luck = np.random.default_rng([self.recipe.seed, 4, source, clip]).random()
        return pixels, wave, bool(luck < self.recipe.loss.labelled), skin


def make(
    source: ClipSource, index: int, recipe: Recipe, size: int, fps: float, rng: np.random.Generator
) -> tuple[ByteArray, FloatArray, FloatArray]:
    """One augmented training clip: pixels (T,size,size,3) u8 and wave (T,) f32 on the network's clock, and
    where its skin is, (size,size) f32."""
    pixels, wave, source_fps, meta = source.clip(index)
    how = augment.draw(recipe.augment, rng)
    frames, usable = recipe.data.frames, len(pixels)
    step = how.stretch * source_fps / fps  # source frames per frame of ours
    step = min(step, (usable - 1) / (frames - 1))  # short clips are stretched less
    length = int(np.ceil(step * (frames - 1))) + 1
    valid = meta.get("valid")
    if valid is None:
        start = rng.uniform(0, max(usable - 1 - step * (frames - 1), 0))
        if step == 1:
            start = float(int(start))
    else:
        choices = starts(valid, length)
        if len(choices) == 0:
            raise InputError(
                f"{meta.get('name', index)}: no {length} frames in a row with a face and a label"
            )
        start = float(rng.choice(choices))
    at = np.minimum(augment.moments(start, frames, step), usable - 1)
    wave = augment.cut_wave(wave, at)
    if how.crf is not None:
        first = int(at[0])
        pixels = augment.compress(pixels[first : int(np.ceil(at[-1])) + 1], how.crf)
        at = at - first
    skin = augment.cut_mask(meta.get("mask"), how, size)
    return augment.recolour(augment.cut(pixels, at, how.box, size), how), wave, skin


def validation_clip(source: ClipSource, index: int, size: int, fps: float) -> tuple[ByteArray, FloatArray]:
    """A whole clip as it is, on the network's clock."""
    pixels, wave, source_fps, _ = source.clip(index)
    frames = int((len(pixels) - 1) * fps / source_fps + 1e-6) + 1
    at = augment.moments(0.0, frames, source_fps / fps)
    plain = augment.PLAIN
    return augment.recolour(augment.cut(pixels, at, plain.box, size), plain), augment.cut_wave(wave, at)


def batches(
    clips: TrainingClips, *, first_step: int, last_step: int, rank: int, world: int, workers: int
) -> Iterator[Batch]:
    """The batches of one process, from step to step; of w processes each takes one w-th of each batch."""
    share = clips.plan.batch // world

    def places() -> Iterator[list[tuple[int, int]]]:
        per_epoch, batch = clips.plan.steps_per_epoch, clips.plan.batch
        for step in range(first_step, last_step):
            epoch, within = divmod(step, per_epoch)
            yield [(epoch, within * batch + i) for i in range(rank * share, (rank + 1) * share)]

    loader = DataLoader(
        clips,
        batch_sampler=_Places(places),
        num_workers=workers,
        collate_fn=_collate,
        multiprocessing_context="spawn" if workers else None,
        prefetch_factor=3 if workers else None,
        worker_init_fn=_one_thread if workers else None,
    )
    yield from loader


class _Places:
    """What a DataLoader calls a batch sampler."""

    def __init__(self, places: object) -> None:
        self._places = places

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        yield from self._places()  # type: ignore[operator]


def _collate(items: list[Item]) -> Batch:
    pixels, waves, labelled, skins = zip(*items, strict=True)
    return Batch(
        torch.from_numpy(np.stack(pixels)),
        torch.from_numpy(np.stack(waves)),
        torch.tensor(labelled),
        torch.from_numpy(np.stack(skins)),
    )


def _one_thread(worker: int) -> None:
    del worker
    torch.set_num_threads(1)
