"""Test subjects never train or select a network, in every recipe and in every protocol."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from phase_rppg.errors import InputError
from phase_rppg.reproduce import cells, make_plan, names
from phase_rppg.reproduce.domains import Domain
from phase_rppg.reproduce.plan import DATASETS, WORLDS
from phase_rppg.reproduce.store import Store
from phase_rppg.reproduce.training_settings import BUDGETS, get_budget
from phase_rppg.train import loop
from phase_rppg.train.checkpoint import load_checkpoint
from phase_rppg.train.recipe import FOLDER, load_stages

from .toys import domain

PLANS = [name for name in names() if make_plan(name).view != "count"]


@pytest.fixture(scope="module")
def domains() -> dict[str, Domain]:
    return {name: domain(name, subjects=10) for name in (*DATASETS, *WORLDS)}


@pytest.mark.parametrize("name", [file.stem for file in FOLDER.glob("*.toml")])
def test_a_recipe_declares_its_test_subjects_or_uses_no_real_ones(name: str) -> None:
    for stage in load_stages(name):
        data = stage.recipe.data
        used = [*data.train, *data.validate]
        real = {source.dataset for source in used if source.prepared}
        assert real <= {source.dataset for source in data.test}
        assert not [one for one in used for tested in data.test if one.overlaps(tested)]


@pytest.mark.parametrize("budget", list(BUDGETS))
@pytest.mark.parametrize("name", PLANS)
def test_training_is_given_no_test_subject(
    name: str, budget: str, domains: dict[str, Domain], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the loop receives is inspected, for training and for the selection of a checkpoint."""
    plan = make_plan(name)
    settings = replace(get_budget(budget, worlds=plan.worlds), frames=64)
    given: list[Any] = []

    def inspect(recipe: Any, folder: Path, *, sources: Any, **rest: Any) -> Path:
        given.append(sources)
        return folder / "last.safetensors"

    monkeypatch.setattr(loop, "train", inspect)
    for cell in plan.cells:
        if not cell.model.trainable:
            continue
        given.clear()
        job = cells.CellJob(cell, 0, settings, domains, plan.worlds)
        cells.train(job, tmp_path, lambda _: None)
        ((training, validation),) = given
        tested = {f"{job.target.name}/{item.subject}" for item in job.test_items()}
        trained = {name for source in training for name in source.subjects}
        selected = {name for source in validation for name in source.subjects}
        assert tested
        assert trained
        assert not trained & tested
        assert not selected & tested
        assert not selected & trained


def test_a_leaking_split_is_found_by_the_record_of_the_checkpoint(
    domains: dict[str, Domain], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = make_plan("table1").cell("efficientphys", "pure")
    assert cell is not None
    job = cells.CellJob(cell, 0, get_budget("smoke"), domains, False)
    everyone = [(job.target, list(job.target.items), [])]
    monkeypatch.setattr(cells.CellJob, "training_data", lambda self: everyone)
    with pytest.raises(InputError, match=r"was trained on 4 of the 4 test subjects: pure/s6, pure/s7"):
        cells.run_cell(job, Store(tmp_path), lambda _: None)


def test_the_checkpoint_records_who_trained_it(domains: dict[str, Domain], tmp_path: Path) -> None:
    cell = make_plan("table1").cell("efficientphys", "mmpd")
    assert cell is not None
    job = cells.CellJob(cell, 0, get_budget("smoke"), domains, False)
    checkpoint, _ = cells.train(job, tmp_path, lambda _: None)
    subjects = load_checkpoint(checkpoint).provenance["subjects"]
    assert subjects == {"train": [f"mmpd/s{i}" for i in range(7)], "validate": ["mmpd/s7"]}
