"""The plans hold what the paper's tables hold, and the paper's numbers are where its cells are."""

from __future__ import annotations

import pytest

from phase_rppg import registry
from phase_rppg.errors import UnknownNameError
from phase_rppg.reproduce import names, plan_of, printed_numbers
from phase_rppg.reproduce.budget import BUDGETS, budget_of
from phase_rppg.reproduce.plan import DATASETS, WORLDS

NAMES = names()


@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_the_paper_has_its_cell_or_is_of_a_work_that_is_not_here(name: str) -> None:
    plan = plan_of(name)
    known = {*registry.names("nn"), *registry.names("methods")}
    for row in printed_numbers.rows(name):
        assert row in plan.rows or row not in known
    assert plan.title
    assert len({(cell.row, cell.column) for cell in plan.cells}) == len(plan.cells)


def test_the_papers_numbers_are_those_of_its_tables() -> None:
    assert printed_numbers.value("table1", "phasenet", "ubfc_rppg", "MAE") == 0.15
    assert printed_numbers.value("table2", "physnet", "pure", "R") == -0.15
    assert printed_numbers.value("table3", "rhythmformer", "P+U", "RMSE") == 16.72
    assert printed_numbers.value("table4", "phasenet", "average", "MAE") == 3.48
    assert printed_numbers.value("table5", "contrast-phys", "clip", "G MACs") == 145.7
    assert printed_numbers.value("fig-lighting", "physnet", "nature", "MAE") == 21.62
    assert printed_numbers.value("ablation-depth", "1", "ubfc_rppg", "RMSE") == 1.21
    assert printed_numbers.value("ablation-lambda", "1", "ubfc_rppg", "MAE") == 0.43
    assert printed_numbers.value("table1", "pos", "buaa_mihr", "MAE") is None


@pytest.mark.parametrize("table", ["table3", "table4"])
def test_the_papers_averages_are_the_means_of_its_columns(table: str) -> None:
    plan = plan_of(table)
    for row in plan.rows:
        for metric in plan.metrics:
            printed = [printed_numbers.value(table, row, column, metric) or 0.0 for column in plan.columns]
            average = printed_numbers.value(table, row, "average", metric)
            assert average == pytest.approx(sum(printed) / 3, abs=0.011)


def test_a_left_out_data_set_is_never_trained_on() -> None:
    for name, domains in (("table2", DATASETS), ("study", WORLDS)):
        for cell in plan_of(name).cells:
            assert cell.target not in cell.sources
            assert {*cell.sources, cell.target} == set(domains)
    for name, target in (("table3", "mmpd"), ("table4", "buaa_mihr")):
        for cell in plan_of(name).cells:
            assert cell.target == target
            assert len(cell.sources) == 2
            assert target not in cell.sources


def test_within_one_data_set_the_cell_says_so() -> None:
    assert all(cell.intra for cell in plan_of("table1").cells)
    assert not any(cell.intra for cell in plan_of("table2").cells)


def test_tables_3_and_4_share_the_training_on_pure_and_ubfc() -> None:
    three, four = (plan_of(name).cell("phasenet", "P+U") for name in ("table3", "table4"))
    assert three is not None
    assert four is not None
    assert (three.model, three.sources) == (four.model, four.sources)


def test_a_method_that_does_not_learn_needs_its_target_only() -> None:
    cell = plan_of("table2").cell("pos", "mmpd")
    assert cell is not None
    assert cell.domains == ("mmpd",)


def test_other_networks_and_methods_can_be_asked_for() -> None:
    assert plan_of("table2", ["deepphys", "lgi"]).rows == ["deepphys", "lgi"]


def test_unknown_names_are_answered_with_the_choices() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'table1'\? choices: ablation-depth"):
        plan_of("tabel1")
    with pytest.raises(UnknownNameError, match="did you mean 'physnet'"):
        plan_of("table1", ["phisnet"])
    with pytest.raises(UnknownNameError, match="choices: paper, smoke"):
        budget_of("large")


@pytest.mark.parametrize("budget", list(BUDGETS))
def test_every_network_of_every_plan_gets_a_recipe_and_the_same_number_of_clips(budget: str) -> None:
    pytest.importorskip("torch")
    seen = set()
    for name in NAMES:
        plan = plan_of(name)
        for cell in plan.cells:
            if cell.model.learns and cell.target:
                recipe = budget_of(budget).recipe(cell.model, ["a", "b"], [30, 10], seed=5)
                seen.add((recipe.data.clips_per_epoch, recipe.optimise.epochs, recipe.optimise.batch))
                assert recipe.seed == 5
    assert len(seen) == 1


def test_networks_keep_their_own_conventions_with_the_papers_budget() -> None:
    pytest.importorskip("torch")
    paper_budget = budget_of("paper")
    plan = plan_of("table1")
    for name, frames, target in (("physnet", 128, "difference"), ("rhythmformer", 160, "wave")):
        cell = plan.cell(name, "pure")
        assert cell is not None
        recipe = paper_budget.recipe(cell.model, ["pure"], [40], 0)
        assert recipe.data.frames == frames
        assert recipe.loss.target == target
        assert recipe.network == {"name": name}
    contrast = plan.cell("contrast-phys", "pure")
    assert contrast is not None
    assert paper_budget.recipe(contrast.model, ["pure"], [40], 0).loss.main == "contrast"
