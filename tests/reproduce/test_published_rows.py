"""`--training published` and `both`: networks trained as their authors did, beside equal settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from phase_rppg.errors import UnknownNameError
from phase_rppg.reproduce import make_plan, report, run
from phase_rppg.reproduce.cells import CellJob
from phase_rppg.reproduce.plan import Model, with_training
from phase_rppg.reproduce.store import Store
from phase_rppg.reproduce.training_settings import BUDGETS, CLIP_FRAMES, get_budget

from .toys import domain


def test_both_gives_two_rows_to_a_network_with_a_publication_and_one_to_others() -> None:
    plan = make_plan("figures", ["pos", "physnet", "phasenet-stream"])
    assert with_training(plan, "equal") == plan
    both = with_training(plan, "both")
    assert both.rows == ["pos", "physnet", "physnet (published)", "phasenet-stream"]
    assert [cell.model.training for cell in both.cells if cell.row.endswith("(published)")] == [
        "published"
    ] * 2
    only = with_training(plan, "published")
    assert only.rows == plan.rows
    assert {cell.model.training for cell in only.cells if cell.row == "physnet"} == {"published"}
    with pytest.raises(UnknownNameError, match="published"):
        with_training(plan, "publishd")


def test_an_epoch_of_the_published_training_is_every_frame_once() -> None:
    recipe = get_budget("paper").recipe(Model("physformer", training="published"), ["pure"], [100], 0)
    assert recipe.data.clips_per_epoch == 100 * CLIP_FRAMES // 160
    assert (recipe.optimise.epochs, recipe.loss.main, recipe.network["pixels"]) == (
        25,
        "physformer",
        "centred",
    )
    weighted = Model("phasenet", loss={"weight": 0.5}, training="published")
    assert get_budget("paper").recipe(weighted, ["pure"], [100], 0).loss.weight == 0.5  # the λ ablation


def test_the_checkpoint_is_selected_as_published() -> None:
    for name, selected in (("physnet", False), ("rhythmformer", True)):
        assert BUDGETS["paper"].selects(Model(name, training="published")) is selected
        assert BUDGETS["paper"].selects(Model(name))


def test_both_rows_are_trained_and_reported(tmp_path: Path) -> None:
    plan = make_plan("figures", ["physnet"])
    plan = with_training(replace(plan, cells=plan.cells[:1]), "both")
    assert plan.columns == ["pure"]
    domains = {"pure": domain("pure")}
    outcome = run(plan, get_budget("smoke"), domains, Store(tmp_path), [0])
    assert not outcome.failed
    trained = {row: outcome.results[row, "pure"][0]["training"]["settings"] for row in plan.rows}
    assert trained == {"physnet": "equal", "physnet (published)": "published"}
    keys = {CellJob(cell, 0, outcome.budget, domains, False).training_key() for cell in plan.cells}
    assert len(keys) == 2
    labels = [row.label for row in report.result_tables(outcome)[0].rows]
    assert "PhysNet (published)" in labels
