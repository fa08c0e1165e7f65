"""Cells are kept by what made them, go on after a kill, and fail alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from phase_rppg.errors import InputError, Interrupted
from phase_rppg.reproduce import Outcome, cells, plan_of, run, runner
from phase_rppg.reproduce.budget import budget_of
from phase_rppg.reproduce.domains import Domain
from phase_rppg.reproduce.plan import DATASETS
from phase_rppg.reproduce.store import Store, key_of

from .toys import domain

BUDGET = budget_of("smoke")
MODELS = ["pos", "efficientphys", "phasenet"]


@pytest.fixture
def domains() -> dict[str, Domain]:
    return {name: domain(name) for name in DATASETS}


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The networks that were trained, in order."""
    log: list[str] = []
    plain = cells.train

    def logged(job: cells.Work, *rest: Any) -> Any:
        log.append(f"{job.cell.row} {job.cell.column} {job.seed}")
        return plain(job, *rest)

    monkeypatch.setattr(cells, "train", logged)
    return log


def go(domains: dict[str, Domain], out: Path, seeds: tuple[int, ...] = (0,), **more: Any) -> Outcome:
    return run(plan_of("figures", MODELS), BUDGET, domains, Store(out), seeds, **more)


def test_what_is_finished_is_not_done_again(
    domains: dict[str, Domain], trained: list[str], tmp_path: Path
) -> None:
    first = go(domains, tmp_path)
    assert len(trained) == 4  # two networks on two data sets; POS does not learn
    again = go(domains, tmp_path)
    assert len(trained) == 4
    assert again.results == first.results
    assert not first.failed
    # Another seed is other work for the networks, and none for POS.
    both = go(domains, tmp_path, (0, 1))
    assert len(trained) == 8
    assert [len(both.results[row, "pure"]) for row in MODELS] == [1, 2, 2]
    # Another state of one data set is other work for its cells only.
    go({**domains, "pure": domain("pure", fingerprint="2")}, tmp_path)
    assert trained[8:] == ["efficientphys pure 0", "phasenet pure 0"]


def test_what_is_finished_can_be_written_up_alone(
    domains: dict[str, Domain], trained: list[str], tmp_path: Path
) -> None:
    run(plan_of("figures", ["pos"]), BUDGET, domains, Store(tmp_path), [0])
    found = go(domains, tmp_path, (0, 1), only_kept=True)
    assert set(found.results) == {("pos", "pure"), ("pos", "ubfc_rppg")}
    assert found.missing["phasenet", "pure"] == "not worked out yet"
    assert trained == []


def test_a_first_seed_is_finished_before_the_second_begins(
    domains: dict[str, Domain], trained: list[str], tmp_path: Path
) -> None:
    run(plan_of("figures", ["efficientphys"]), BUDGET, domains, Store(tmp_path), (3, 1))
    assert [row.split()[-1] for row in trained] == ["3", "3", "1", "1"]


def test_after_a_kill_between_cells_the_rest_is_done(
    domains: dict[str, Domain], trained: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = cells.perform
    count = 0

    def killed(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == 5:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(runner, "perform", killed)
    with pytest.raises(KeyboardInterrupt):
        go(domains, tmp_path)
    before = len(trained)
    assert before == 2  # two cells of POS, two of a network
    monkeypatch.setattr(runner, "perform", plain)
    whole = go(domains, tmp_path)
    assert len(trained) == 4
    assert not whole.failed
    assert len(whole.results) == len(whole.plan.cells)


def test_a_training_that_is_stopped_goes_on(domains: dict[str, Domain], tmp_path: Path) -> None:
    job = cells.Work(plan_of("table1").cell("phasenet", "pure"), 0, BUDGET, domains, False)  # type: ignore[arg-type]

    def stop(share: float) -> None:
        raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        cells.perform(job, Store(tmp_path), stop)
    assert Store(tmp_path).get(job.key()) is None
    assert (Store(tmp_path).run(job.run_key()) / "last.safetensors").exists()
    steps: list[float] = []
    done = cells.perform(job, Store(tmp_path), steps.append)
    assert steps == []  # its one step was saved
    assert done["recordings"]


@pytest.mark.parametrize(
    ("file", "says"),
    [("last.safetensors", "by another recipe"), ("best.safetensors", "by another recipe"), ("", "damaged")],
)
def test_a_checkpoint_of_another_cell_is_not_taken_for_this_one(
    file: str, says: str, domains: dict[str, Domain], tmp_path: Path
) -> None:
    plan, store = plan_of("table1"), Store(tmp_path)
    mine, other = (
        cells.Work(plan.cell("phasenet", "pure"), seed, BUDGET, domains, False)  # type: ignore[arg-type]
        for seed in (0, 1)
    )
    for job in (mine, other):
        cells.train(job, store.run(job.run_key()), lambda _: None)
    folder = store.run(mine.run_key())
    if file:
        shutil.copy(store.run(other.run_key()) / "last.safetensors", folder / file)
    else:
        (folder / "last.safetensors").write_bytes(b"half a fi")
    with pytest.raises(InputError, match=f"{says}.*; remove {folder} to train anew"):
        cells.perform(mine, store, lambda _: None)
    shutil.rmtree(folder)
    assert cells.perform(mine, store, lambda _: None)["recordings"]


def test_a_failed_cell_is_named_and_the_rest_finished(
    domains: dict[str, Domain], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = cells.train

    def failing(job: cells.Work, *rest: Any) -> Any:
        if job.cell.row == "efficientphys" and job.cell.column == "pure":
            raise RuntimeError("no memory\nat all")
        return plain(job, *rest)

    monkeypatch.setattr(cells, "train", failing)
    said: list[str] = []
    done = go(domains, tmp_path, say=said.append)
    assert done.failed == {("efficientphys", "pure"): "RuntimeError: no memory at all"}
    assert said == ["failed: efficientphys → pure, seed 0: RuntimeError: no memory at all"]
    assert len(done.results) == len(done.plan.cells) - 1


def test_cells_without_their_data_are_missing_and_the_others_run(tmp_path: Path) -> None:
    done = go({"pure": domain("pure", synthetic=False)}, tmp_path)
    assert set(done.results) == {(model, "pure") for model in MODELS}
    assert done.missing["phasenet", "ubfc_rppg"] == "ubfc_rppg"
    assert done.stamp.startswith("REAL DATA; SMOKE")


def test_a_damaged_result_is_worked_out_again(tmp_path: Path, domains: dict[str, Domain]) -> None:
    plan = plan_of("table1", ["pos"])
    first = run(plan, BUDGET, domains, Store(tmp_path), [0])
    for path in (tmp_path / "results").glob("*.json"):
        path.write_text(path.read_text()[:40])
    assert run(plan, BUDGET, domains, Store(tmp_path), [0]).results.keys() == first.results.keys()
    assert all(Store(tmp_path).get(p.stem) for p in (tmp_path / "results").glob("*.json"))


def test_too_few_subjects_are_said(tmp_path: Path) -> None:
    done = go({"pure": domain("pure", subjects=1)}, tmp_path)
    assert "1 subjects are too few" in done.failed["phasenet", "pure"]


def test_nobody_is_trained_on_and_tested(domains: dict[str, Domain]) -> None:
    for name in ("table1", "table2", "table3"):
        for cell in plan_of(name).cells:
            job = cells.Work(cell, 0, BUDGET, domains, False)
            tested = {item.name for item in job.tested()}
            for _, train, choose in job.learners():
                assert not tested & {item.name for item in (*train, *choose)}


def test_a_key_depends_on_facts_and_not_on_their_order() -> None:
    assert key_of({"a": 1, "b": (1, 2)}) == key_of({"b": [1, 2], "a": 1})
    assert key_of({"a": 1}) != key_of({"a": 2})


def test_sources_without_a_long_enough_stretch_are_refused(domains: dict[str, Domain]) -> None:
    from phase_rppg.reproduce.domains import ItemSource

    with pytest.raises(InputError, match="200 frames in a row"):
        ItemSource(domains["pure"].items, 200)
