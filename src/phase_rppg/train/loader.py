"""Make batches from clip sources. The content of a batch is a pure function of (seed, epoch, index).

Workers, processes and resumed runs therefore get the same clips in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ..datasets.cache import longest_run
from ..errors import InputError
from ..types import BoolArray, ByteArray, FloatArray
from . import augment
from .compute import to_device
from .recipe import Recipe
from .sources import ClipSource

Item: TypeAlias = tuple[ByteArray, FloatArray, bool, FloatArray]  # pixels, wave, labelled, skin


@dataclass(frozen=True)
class Batch:
    """Training clips and their references."""

    pixels: Tensor  # (B,T,S,S,3) u8
    wave: Tensor  # (B,T) f32
    labelled: Tensor  # (B,) bool: whether a weakly supervised loss uses the wave
    skin: Tensor  # (B,S,S) f32 0–1: skin in the first frame; all 0 if unknown

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        parts = (self.pixels, self.wave, self.labelled, self.skin)
        return Batch(*(to_device(tensor, device) for tensor in parts))

    def pin_memory(self) -> Batch:
        """Return the batch in page-locked memory; the DataLoader calls this."""
        return Batch(*(t.pin_memory() for t in (self.pixels, self.wave, self.labelled, self.skin)))


@dataclass(frozen=True)
class Plan:
    """The order of the clips of all sources."""

    sizes: tuple[int, ...]  # clips of each source
    weights: tuple[float, ...]
    clips_per_epoch: int
    batch: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        return max(1, self.clips_per_epoch // self.batch)

    def epoch(self, epoch: int) -> list[tuple[int, int]]:
        """Return (source, clip) for each index of an epoch; a source repeats a clip only after all others."""
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
    """Return the plan of a recipe for its opened sources."""
    sizes = tuple(len(source) for source in sources)
    if not all(sizes):
        raise InputError("a source of the recipe has no clips")
    return Plan(
        sizes,
        tuple(source.weight for source in recipe.data.train),
        recipe.data.clips_per_epoch or sum(sizes),
        recipe.optimise.batch,
        recipe.seed,
    )


def starts(valid: BoolArray, length: int) -> np.ndarray:
    """Return every index from which `length` consecutive frames are valid."""
    if length > len(valid):
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.convolve(valid.astype(np.int64), np.ones(length, np.int64), "valid") == length)


class TrainingClips(Dataset[Item]):
    """A data set whose item (epoch, index) is one augmented clip."""

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
        pixels, wave, skin = make_clip(self.sources[source], clip, self.recipe, self.size, self.fps, rng)
        # The same clips are labelled in every epoch.
        drawn = np.random.default_rng([self.recipe.seed, 4, source, clip]).random()
        return pixels, wave, bool(drawn < self.recipe.loss.labelled), skin


def make_clip(
    source: ClipSource, index: int, recipe: Recipe, size: int, fps: float, rng: np.random.Generator
) -> tuple[ByteArray, FloatArray, FloatArray]:
    """Return one augmented clip: pixels (T,size,size,3) u8, wave (T,) f32 and skin mask (size,size) f32.

    Pixels and wave are at the frame rate of the network.
    """
    pixels, wave, source_fps, meta = source.clip(index)
    parameters = augment.draw(recipe.augment, rng)
    stretch = parameters.stretch * augment.octave_factor(wave, source_fps, parameters)
    steps = (source_fps / fps, stretch * source_fps / fps)
    try:
        at = clip_positions(len(pixels), meta.get("valid"), recipe.data.frames, steps, rng)
    except InputError as error:
        raise InputError(f"{meta.get('name', index)}: {error}") from None
    wave = augment.resample_wave(wave, at)
    if parameters.crf is not None:
        first = int(at[0])
        pixels = augment.compress(pixels[first : int(np.ceil(at[-1])) + 1], parameters.crf)
        at = at - first
    skin = augment.crop_mask(meta.get("mask"), parameters, size)
    return augment.recolour(augment.crop_frames(pixels, at, parameters.box, size), parameters), wave, skin


def clip_positions(
    usable: int,
    valid: BoolArray | None,
    frames: int,
    steps: tuple[float, float],
    rng: np.random.Generator,
) -> FloatArray:
    """Return the positions of the frames of a clip in its source; short sources are stretched less.

    `steps` are source frames per frame of the clip, without and with stretching.
    """
    longest = usable if valid is None else longest_run(valid)
    step = min(steps[1], (longest - 1) / (frames - 1))
    if valid is None:
        start = rng.uniform(0, max(usable - 1 - step * (frames - 1), 0))
        if step == 1:
            start = float(int(start))
    else:
        shortest = int(np.ceil(min(steps) * (frames - 1) - 1e-9)) + 1
        if longest < shortest:
            raise InputError(f"no {shortest} consecutive frames with a face and a reference")
        length = int(np.ceil(step * (frames - 1) - 1e-9)) + 1
        start = float(rng.choice(starts(valid, length)))
    return np.minimum(augment.sample_positions(start, frames, step), usable - 1)


def validation_clip(source: ClipSource, index: int, size: int, fps: float) -> tuple[ByteArray, FloatArray]:
    """Return a whole clip without augmentation, at the frame rate of the network."""
    pixels, wave, source_fps, _ = source.clip(index)
    frames = int((len(pixels) - 1) * fps / source_fps + 1e-6) + 1
    at = augment.sample_positions(0.0, frames, source_fps / fps)
    return augment.resize(pixels, at, size), augment.resample_wave(wave, at)


def batches(
    clips: TrainingClips,
    *,
    first_step: int,
    last_step: int,
    rank: int,
    world: int,
    workers: int,
    pin_memory: bool = False,
) -> Iterator[Batch]:
    """Yield the batches of one process, which takes 1/world of each batch."""
    share = clips.plan.batch // world

    def places() -> Iterator[list[tuple[int, int]]]:
        per_epoch, batch = clips.plan.steps_per_epoch, clips.plan.batch
        for step in range(first_step, last_step):
            epoch, within = divmod(step, per_epoch)
            yield [(epoch, within * batch + i) for i in range(rank * share, (rank + 1) * share)]

    loader = DataLoader(
        clips,
        batch_sampler=_BatchSampler(places),
        num_workers=workers,
        collate_fn=_collate,
        multiprocessing_context="spawn" if workers else None,
        prefetch_factor=3 if workers else None,
        worker_init_fn=_one_thread if workers else None,
        pin_memory=pin_memory,
    )
    yield from loader


class _BatchSampler:
    """The batch sampler of the DataLoader."""

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
