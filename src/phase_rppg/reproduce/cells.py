"""One cell: train its network, let it read the test recordings, compare with the references.

Only `train` and `nn` know torch; they are imported when there is something to train or to read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import registry
from ..datasets.splits import WHOLE, by_ratio
from ..errors import InputError, RecipeError, WeightsError
from ..evaluate import metrics
from ..fileio import write_json
from ..signal import rate
from ..types import ByteArray, Clip, FloatArray, RgbTrace, Waveform
from .budget import Budget
from .domains import Domain, Item, ItemSource, clips_in
from .plan import Cell
from .store import Store, key_of

if TYPE_CHECKING:
    from ..train.recipe import Recipe
    from ..train.sources import ClipSource

WARMUP_S = 1.0  # a causal network has seen too little before; left out for everybody
TRACE_PX = 48  # classical methods see the mean colour; more pixels do not change it


@dataclass(frozen=True, eq=False)
class Work:
    """A cell with its data and seed: everything that decides its result."""

    cell: Cell
    seed: int
    budget: Budget
    domains: Mapping[str, Domain]
    worlds: bool

    @property
    def target(self) -> Domain:
        return self.domains[self.cell.target]

    def learners(self) -> list[tuple[Domain, list[Item], list[Item]]]:
        """(source, recordings to train on, recordings to choose by) of every source."""
        found: list[tuple[Domain, list[Item], list[Item]]] = []
        for name in self.cell.sources:
            domain = self.domains[name]
            if self.worlds:
                found.append((domain, list(domain.items), []))
                continue
            split = domain.split(self.cell.intra)
            if not split.train:
                raise InputError(
                    f"{domain.where}: {len(domain.subjects)} subjects are too few to train and test"
                )
            found.append((domain, domain.of(split.train), domain.of(split.valid)))
        return found

    def tested(self) -> list[Item]:
        """The recordings that the cell is judged by."""
        if self.worlds and self.budget.tested:
            return list(self.target.items[: self.budget.tested])
        whole = by_ratio(self.target.name, self.target.subjects, *WHOLE)
        subjects = self.target.split(intra=True).test if self.cell.intra else whole.test
        if not subjects:
            raise InputError(f"{self.target.where}: {len(self.target.subjects)} subjects leave none to test")
        return self.target.of(subjects)

    def recipe(self) -> Recipe:
        learners = self.learners()
        return self.budget.recipe(
            self.cell.model,
            [domain.name for domain, _, _ in learners],
            [clips_in(train) for _, train, _ in learners],
            self.seed,
        )

    def run_key(self) -> str:
        """The hash of a training: recipe, data, who of it, seed (in the recipe)."""
        learners = self.learners()
        return key_of(
            {
                "recipe": self.recipe().to_dict(),
                "data": [
                    [domain.fingerprint, [i.name for i in train], [i.name for i in choose]]
                    for domain, train, choose in learners
                ],
                "validates": self.budget.validates,
            }
        )

    def key(self) -> str:
        """The hash of a result: the training, the test recordings, and how they are compared."""
        model = self.cell.model
        return key_of(
            {
                "model": self.run_key() if model.learns else model.name,
                "target": [self.target.fingerprint, [item.name for item in self.tested()]],
                "window_s": self.budget.window_s,
            }
        )


def perform(work: Work, store: Store, watch: Callable[[float], None]) -> dict[str, Any]:
    """The result of a cell: kept, or worked out now. `watch` is told the share that is done."""
    key = work.key()
    kept = store.get(key)
    if kept is not None:
        return kept
    started_s = time.process_time()
    facts: dict[str, Any] = {}
    if work.cell.model.learns:
        checkpoint, facts = train(work, store.run(work.run_key()), watch)
        reader = network_reader(checkpoint, work.recipe())
    else:
        reader = method_reader(work.cell.model.name)
    recordings, waves = [], {}
    for number, item in enumerate(work.tested()):
        wave, reference = read(item, reader)
        recordings.append(
            {
                "name": item.name,
                "subject": item.subject,
                "conditions": dict(item.conditions),
                **compare(wave, reference, work.budget.window_s),
            }
        )
        waves[f"wave{number}"], waves[f"reference{number}"] = wave.values, reference.values
    result = {
        "model": {"name": work.cell.model.name, "options": _json(work.cell.model.options)},
        "sources": [domain.name for domain, _, _ in work.learners()] if work.cell.model.learns else [],
        "target": work.target.name,
        "synthetic": any(work.domains[name].synthetic for name in work.cell.domains),
        "seed": work.seed if work.cell.model.learns else None,
        "training": facts,
        "cpu_s": round(time.process_time() - started_s, 2),
        "recordings": recordings,
    }
    return store.put(key, result, waves)


def _json(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}


def train(work: Work, folder: Path, watch: Callable[[float], None]) -> tuple[Path, dict[str, Any]]:
    """The checkpoint of a cell's network; a run that was stopped goes on where it was saved."""
    from ..train import loop

    recipe = work.recipe()
    learners = work.learners()
    training: list[ClipSource] = [ItemSource(items, recipe.data.frames) for _, items, _ in learners]
    validation: list[ClipSource] = [
        ItemSource(items, recipe.data.frames) for _, _, items in learners if items and work.budget.validates
    ]

    def told(event: loop.Event) -> None:
        watch(event.step / event.steps)

    try:
        checkpoint = loop.train(recipe, folder, resume=True, sources=(training, validation), watch=told)
    except (WeightsError, RecipeError) as error:
        if not (folder / "last.safetensors").exists():
            raise
        raise InputError(f"{error}; remove {folder} to train anew") from error
    facts = {
        "recipe": recipe.to_dict(),
        "clips_seen": recipe.data.clips_per_epoch // recipe.optimise.batch * recipe.optimise.batch
        * recipe.optimise.epochs,
        "lr": recipe.optimise.lr,
        "checkpoint": checkpoint.name,
    }  # fmt: skip
    write_json(folder / "run.json", facts)
    return checkpoint, facts


def network_reader(checkpoint: Path, recipe: Recipe) -> Callable[[ByteArray, float], FloatArray]:
    """A function from a recording's pixels to its wave, by the network that this recipe trained."""
    from ..train import predict
    from ..train.recipe import from_dict

    model = predict.load_checkpoint(checkpoint)
    if from_dict(model.facts["recipe"], str(checkpoint)) != recipe:
        raise InputError(f"{checkpoint}: made by another recipe; remove {checkpoint.parent} to train anew")

    def reader(pixels: ByteArray, fps: float) -> FloatArray:
        if abs(fps - model.fps) > 1e-6:
            raise InputError(f"recordings at {fps:g} fps, the network reads {model.fps:g}")
        return predict.read(model, pixels)

    return reader


def method_reader(name: str) -> Callable[[ByteArray, float], FloatArray]:
    """The same by a classical method, from the mean colour of the skin or from the pictures."""
    from ..methods.ssr import skin_weights

    method = registry.load("methods", name)

    def reader(pixels: ByteArray, fps: float) -> FloatArray:
        small = shrunk(pixels, TRACE_PX)
        valid = np.ones(len(small), bool)
        if method.INPUT == "clip":
            wave: Waveform = method.extract(Clip(small, np.arange(len(small)) / fps, fps, valid))
        else:
            weights = skin_weights(small)
            colours = small.reshape(len(small), -1, 3).transpose(0, 2, 1) @ (weights / weights.sum())
            wave = method.extract(RgbTrace(colours, fps, 0.0, valid))
        return np.asarray(wave.values, float)

    return reader


def shrunk(pixels: ByteArray, size: int, chunk: int = 64) -> ByteArray:
    """(T,S,S,3) at most `size` a side."""
    from ..train import augment

    if pixels.shape[1] <= size:
        return np.asarray(pixels)
    plain = augment.PLAIN
    parts = [pixels[first : first + chunk] for first in range(0, len(pixels), chunk)]
    cut = [augment.cut(part, np.arange(len(part), dtype=float), plain.box, size) for part in parts]
    return np.concatenate([augment.recolour(part, plain) for part in cut])


def read(item: Item, reader: Callable[[ByteArray, float], FloatArray]) -> tuple[Waveform, Waveform]:
    """What was read and what was true, on one clock, from the end of the first second on."""
    pixels, reference, valid, fps = item.open()
    values = reader(pixels, fps)
    judged = slice(round(WARMUP_S * fps), len(values))
    known = valid[judged]
    return (
        Waveform(values[judged], fps, WARMUP_S, known),
        Waveform(np.asarray(reference[judged], float), fps, WARMUP_S, known),
    )


def compare(wave: Waveform, reference: Waveform, window_s: float) -> dict[str, Any]:
    """The whole recording and its windows, in every convention; None where there is no pulse to read."""
    length = min(round(window_s * wave.fps), len(wave.values))
    starts = range(0, len(wave.values) - length + 1, length)
    return {
        "whole": _compared(wave, reference),
        "windows": [
            {
                "start_s": wave.start_s + s / wave.fps,
                **_compared(_cut(wave, s, length), _cut(reference, s, length)),
            }
            for s in starts
            if wave.valid[s : s + length].mean() > 0.9
        ],
    }


def _cut(wave: Waveform, start: int, length: int) -> Waveform:
    part = slice(start, start + length)
    return Waveform(wave.values[part], wave.fps, wave.start_s + start / wave.fps, wave.valid[part])


def _compared(wave: Waveform, reference: Waveform) -> dict[str, Any]:
    """Both conventions. Who compares must answer: a wave without any line is taken at its largest bin."""
    found = {name: metrics.compare(wave, reference, name) for name in metrics.CONVENTIONS}
    truth = rate.spectral_peak(reference)
    if truth is not None and rate.spectral_peak(wave) is None:
        true_bpm: dict[metrics.Convention, float] = {
            "ours": truth.bpm,
            "toolbox": rate.toolbox_bpm(reference),
        }
        forced = rate.toolbox_bpm(wave)
        snr_db = metrics.toolbox_snr_db(wave.values, wave.fps, truth.bpm)
        agreement = metrics.macc(wave.values, reference.values)
        found = {name: metrics.Comparison(forced, bpm, snr_db, agreement) for name, bpm in true_bpm.items()}
    return {name: None if c is None else asdict(c) for name, c in found.items()}


def count(name: str, frames: int, size: int) -> tuple[float, float]:
    """Millions of parameters and 10⁹ multiply-accumulates of a network at this input."""
    from ..nn import build
    from ..nn import counting as counting

    network = build(name, size=size)
    return counting.parameters(network) / 1e6, counting.clip_macs(network, frames, size) / 1e9
