"""One cell of a table: train its network, predict the test recordings, compare with the reference.

Only `train` and `nn` import torch. This module imports them when a cell needs a network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..datasets.splits import WHOLE, by_ratio
from ..errors import InputError, RecipeError, WeightsError
from ..evaluate import conventions
from ..evaluate.clip_evaluation import Predictor, crop_px, evaluate_clip
from ..evaluate.conventions import Convention
from ..evaluate.leaks import refuse_tested_subjects, subject_key
from ..evaluate.predictors import MethodPredictor
from ..fileio import write_json
from .domains import Domain, Item, ItemSource, clips_in
from .plan import Cell
from .store import Store, hash_key
from .training_settings import CPU, Budget, Machine

if TYPE_CHECKING:
    from ..train.recipe import Recipe
    from ..train.sources import ClipSource


@dataclass(frozen=True, eq=False)
class CellJob:
    """A cell with its data, budget and seed, which determine its result."""

    cell: Cell
    seed: int
    budget: Budget
    domains: Mapping[str, Domain]
    worlds: bool
    machine: Machine = CPU
    balance: str = "source"
    convention: Convention = conventions.OURS

    @property
    def target(self) -> Domain:
        return self.domains[self.cell.target]

    def training_data(self) -> list[tuple[Domain, list[Item], list[Item]]]:
        """Return (domain, training recordings, validation recordings) of every source."""
        found: list[tuple[Domain, list[Item], list[Item]]] = []
        for name in self.cell.sources:
            domain = self.domains[name]
            if self.worlds:
                found.append((domain, list(domain.items), []))
                continue
            split = domain.split(self.cell.intra)
            if not split.train:
                raise InputError(
                    f"{domain.where}: {len(domain.subjects)} subjects are too few for training and testing"
                )
            found.append((domain, domain.of(split.train), domain.of(split.valid)))
        return found

    def test_items(self) -> list[Item]:
        """Return the recordings that the cell is tested on."""
        if self.worlds and self.budget.test_clips:
            return list(self.target.items[: self.budget.test_clips])
        whole = by_ratio(self.target.name, self.target.subjects, *WHOLE)
        subjects = self.target.split(intra=True).test if self.cell.intra else whole.test
        if not subjects:
            raise InputError(
                f"{self.target.where}: {len(self.target.subjects)} subjects leave none for testing"
            )
        return self.target.of(subjects)

    def split(self) -> dict[str, dict[str, list[str]]]:
        """Return the subjects of the cell by use, under the name of its protocol."""
        tested = {"test": _subjects(self.target, self.test_items())}
        if not self.cell.model.trainable:
            return {f"test on {self.target.name}": tested}
        sources = self.training_data()
        trained = [name for domain, train, _ in sources for name in _subjects(domain, train)]
        chosen = [name for domain, _, valid in sources for name in _subjects(domain, valid)]
        name = f"train on {' + '.join(self.cell.sources)}, test on {self.target.name}"
        return {name: {"train": trained, "validate": chosen if self.budget.validates else [], **tested}}

    def recipe(self) -> Recipe:
        """Return the recipe that trains the network of the cell."""
        sources = self.training_data()
        return self.budget.recipe(
            self.cell.model,
            [domain.name for domain, _, _ in sources],
            [clips_in(train) for _, train, _ in sources],
            self.seed,
            self.balance,
        )

    def training_key(self) -> str:
        """Return the hash of a training run: its recipe, which includes the seed, and its recordings."""
        sources = self.training_data()
        return hash_key(
            {
                "recipe": self.recipe().to_dict(),
                "data": [
                    [domain.fingerprint, [i.name for i in train], [i.name for i in valid]]
                    for domain, train, valid in sources
                ],
                "validates": self.budget.selects(self.cell.model),
                **({} if self.machine.precision == "fp32" else {"precision": self.machine.precision}),
            }
        )

    def key(self) -> str:
        """Return the hash of a result: the training run, the test recordings and the window length."""
        model = self.cell.model
        return hash_key(
            {
                "model": self.training_key() if model.trainable else model.name,
                "target": [self.target.fingerprint, [item.name for item in self.test_items()]],
                "window_s": self.budget.window_s,
                "convention": self.convention.facts(),
            }
        )


def _subjects(domain: Domain, items: Sequence[Item]) -> list[str]:
    return list(dict.fromkeys(subject_key(domain.name, item.subject) for item in items))


def run_cell(job: CellJob, store: Store, on_progress: Callable[[float], None]) -> dict[str, Any]:
    """Return the result of a cell from the store, or compute it; `on_progress` gets the finished share."""
    key = job.key()
    stored = store.get(key)
    if stored is not None:
        return stored
    started_s = time.process_time()
    facts: dict[str, Any] = {}
    predictor: Predictor
    if job.cell.model.trainable:
        checkpoint, facts = train(job, store.run(job.training_key()), on_progress)
        predictor = network_predictor(checkpoint, job)
    else:
        predictor = MethodPredictor(job.cell.model.name)
    recordings, waves = [], {}
    for number, item in enumerate(sized_items(job, predictor)):
        found = evaluate_clip(item.open(), predictor, job.convention, job.budget.window_s)
        recordings.append(
            {
                "name": item.name,
                "subject": item.subject,
                "conditions": dict(item.conditions),
                **found.as_json(job.convention),
            }
        )
        waves[f"wave{number}"], waves[f"reference{number}"] = found.wave.values, found.reference.values
    result = {
        "model": {"name": job.cell.model.name, "options": _json(job.cell.model.options)},
        "sources": [domain.name for domain, _, _ in job.training_data()] if job.cell.model.trainable else [],
        "target": job.target.name,
        "convention": job.convention.name,
        "synthetic": any(job.domains[name].synthetic for name in job.cell.domains),
        "seed": job.seed if job.cell.model.trainable else None,
        "training": facts,
        "cpu_s": round(time.process_time() - started_s, 2),
        "recordings": recordings,
    }
    return store.put(key, result, waves)


def sized_items(job: CellJob, predictor: Predictor) -> list[Item]:
    """Return the test recordings with crops of the size that the convention asks for."""
    items, resize = job.test_items(), job.target.at_size
    size = crop_px(job.convention, predictor, job.budget.size)
    if size == job.budget.size or resize is None:
        return items
    names = {item.name for item in items}
    return [item for item in resize(size).items if item.name in names]


def _json(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in options.items()}


def train(job: CellJob, folder: Path, on_progress: Callable[[float], None]) -> tuple[Path, dict[str, Any]]:
    """Train the network of a cell, or resume its run; return the checkpoint and the training settings."""
    from ..train import loop

    recipe = job.recipe()
    sources = job.training_data()
    training: list[ClipSource] = [
        ItemSource(items, recipe.data.frames, domain.name) for domain, items, _ in sources
    ]
    validation: list[ClipSource] = [
        ItemSource(items, recipe.data.frames, domain.name)
        for domain, _, items in sources
        if items and job.budget.selects(job.cell.model)
    ]

    def on_event(event: loop.Event) -> None:
        on_progress(event.step / event.steps)

    try:
        checkpoint = loop.train(
            recipe,
            folder,
            resume=True,
            sources=(training, validation),
            on_step=on_event,
            compute=job.machine.compute(),
        )
    except (WeightsError, RecipeError) as error:
        if not (folder / "last.safetensors").exists():
            raise
        raise InputError(f"{error}; remove {folder} to train again") from error
    facts = {
        "recipe": recipe.to_dict(),
        "clips_seen": recipe.data.clips_per_epoch // recipe.optimise.batch * recipe.optimise.batch
        * recipe.optimise.epochs,
        "lr": recipe.optimise.lr,
        "settings": job.cell.model.training,
        "checkpoint": checkpoint.name,
        "key": folder.name,
    }  # fmt: skip
    write_json(folder / "run.json", facts)
    return checkpoint, facts


def network_predictor(checkpoint: Path, job: CellJob) -> Predictor:
    """Return the predictor of a trained network; a network that saw a test subject is refused."""
    from ..train import predict as networks
    from ..train.recipe import from_dict

    model = networks.load(checkpoint, job.machine.compute())
    if from_dict(model.provenance["recipe"], str(checkpoint)) != job.recipe():
        raise InputError(f"{checkpoint}: made by another recipe; remove {checkpoint.parent} to train again")
    tested = {item.subject for item in job.test_items()}
    refuse_tested_subjects(checkpoint, model.provenance, job.target.name, tested)
    return networks.NetworkPredictor(model)


def count_network(name: str, frames: int, size: int) -> tuple[float, float]:
    """Return the parameters in millions and the multiply-accumulates in 10⁹ of a network for one clip."""
    from ..nn import build, complexity

    network = build(name, size=size)
    return complexity.parameters(network) / 1e6, complexity.clip_macs(network, frames, size) / 1e9
