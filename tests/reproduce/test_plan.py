"""The plans have the cells of the paper's tables, and printed numbers belong to cells."""

from __future__ import annotations

import pytest

from phase_rppg import registry
from phase_rppg.errors import UnknownNameError
from phase_rppg.reproduce import make_plan, names, printed_numbers
from phase_rppg.reproduce.plan import DATASETS, WORLDS
from phase_rppg.reproduce.training_settings import BALANCES, BUDGETS, get_budget
from phase_rppg.train.loader import Plan as ClipPlan

NAMES = names()


@pytest.mark.parametrize("name", NAMES)
def test_printed_rows_are_planned_or_not_implemented_here(name: str) -> None:
    plan = make_plan(name)
    known = {*registry.names("nn"), *registry.names("methods")}
    for row in printed_numbers.rows(name):
        assert row in plan.rows or row not in known
    assert plan.title
    assert len({(cell.row, cell.column) for cell in plan.cells}) == len(plan.cells)


def test_printed_numbers() -> None:
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
def test_printed_averages_are_means_of_columns(table: str) -> None:
    plan = make_plan(table)
    for row in plan.rows:
        for metric in plan.metrics:
            printed = [printed_numbers.value(table, row, column, metric) or 0.0 for column in plan.columns]
            average = printed_numbers.value(table, row, "average", metric)
            assert average == pytest.approx(sum(printed) / 3, abs=0.011)


def test_the_target_is_never_a_source() -> None:
    for name, domains in (("table2", DATASETS), ("study", WORLDS)):
        for cell in make_plan(name).cells:
            assert cell.target not in cell.sources
            assert {*cell.sources, cell.target} == set(domains)
    for name, target in (("table3", "mmpd"), ("table4", "buaa_mihr")):
        for cell in make_plan(name).cells:
            assert cell.target == target
            assert len(cell.sources) == 2
            assert target not in cell.sources


def test_intra_marks_cells_within_one_data_set() -> None:
    assert all(cell.intra for cell in make_plan("table1").cells)
    assert not any(cell.intra for cell in make_plan("table2").cells)


def test_tables_3_and_4_share_the_training_on_pure_and_ubfc() -> None:
    three, four = (make_plan(name).cell("phasenet", "P+U") for name in ("table3", "table4"))
    assert three is not None
    assert four is not None
    assert (three.model, three.sources) == (four.model, four.sources)


def test_a_classical_method_needs_only_its_target() -> None:
    cell = make_plan("table2").cell("pos", "mmpd")
    assert cell is not None
    assert cell.domains == ("mmpd",)


def test_other_networks_and_methods_can_be_chosen() -> None:
    assert make_plan("table2", ["deepphys", "lgi"]).rows == ["deepphys", "lgi"]


def test_unknown_names_list_the_choices() -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean 'table1'\? choices: ablation-depth"):
        make_plan("tabel1")
    with pytest.raises(UnknownNameError, match="did you mean 'physnet'"):
        make_plan("table1", ["phisnet"])
    with pytest.raises(UnknownNameError, match="choices: paper, smoke"):
        get_budget("large")


@pytest.mark.parametrize("budget", list(BUDGETS))
def test_every_network_of_every_plan_gets_a_recipe_and_the_same_number_of_clips(budget: str) -> None:
    pytest.importorskip("torch")
    seen = set()
    for name in NAMES:
        plan = make_plan(name)
        for cell in plan.cells:
            if cell.model.trainable and cell.target:
                recipe = get_budget(budget).recipe(cell.model, ["a", "b"], [30, 10], seed=5)
                seen.add((recipe.data.clips_per_epoch, recipe.optimise.epochs, recipe.optimise.batch))
                assert recipe.seed == 5
    assert len(seen) == 1


def test_sources_have_equal_shares_unless_clips_are_balanced() -> None:
    pytest.importorskip("torch")
    cell = make_plan("table2").cell("physnet", "pure")
    assert cell is not None
    recipes = {
        balance: get_budget("paper").recipe(cell.model, ["a", "b"], [300, 100], 0, balance)
        for balance in BALANCES
    }
    shares = {name: [source.weight for source in r.data.train] for name, r in recipes.items()}
    assert shares == {"source": [1.0, 1.0], "clip": [300.0, 100.0]}
    assert {r.data.clips_per_epoch for r in recipes.values()} == {400}
    for name, expected in (("source", (200, 200)), ("clip", (300, 100))):
        weights = tuple(shares[name])
        order = ClipPlan((30, 10), weights, 400, 4, 0).epoch(0)
        assert tuple(sum(source == index for source, _ in order) for index in (0, 1)) == expected
    with pytest.raises(UnknownNameError, match="choices: clip, source"):
        get_budget("paper").recipe(cell.model, ["a"], [1], 0, "subject")


def test_networks_keep_their_own_conventions_with_the_papers_budget() -> None:
    pytest.importorskip("torch")
    paper_budget = get_budget("paper")
    plan = make_plan("table1")
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
