"""Cells are stored by the hash of their inputs, resume after an interrupt, and fail independently."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from phase_rppg.errors import InputError, Interrupted
from phase_rppg.evaluate import conventions
from phase_rppg.reproduce import Outcome, cells, make_plan, run, runner
from phase_rppg.reproduce.domains import Domain
from phase_rppg.reproduce.plan import DATASETS
from phase_rppg.reproduce.store import Store, hash_key
from phase_rppg.reproduce.training_settings import get_budget

from .toys import domain

BUDGET = get_budget("smoke")
MODELS = ["pos", "efficientphys", "phasenet"]


@pytest.fixture
def domains() -> dict[str, Domain]:
    return {name: domain(name) for name in DATASETS}


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of trained networks in order."""
    log: list[str] = []
    plain = cells.train

    def logged(job: cells.CellJob, *rest: Any) -> Any:
        log.append(f"{job.cell.row} {job.cell.column} {job.seed}")
        return plain(job, *rest)

    monkeypatch.setattr(cells, "train", logged)
    return log


def go(domains: dict[str, Domain], out: Path, seeds: tuple[int, ...] = (0,), **more: Any) -> Outcome:
    return run(make_plan("figures", MODELS), BUDGET, domains, Store(out), seeds, **more)


def test_finished_cells_are_not_computed_again(
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


def test_only_stored_cells_can_be_reported(
    domains: dict[str, Domain], trained: list[str], tmp_path: Path
) -> None:
    run(make_plan("figures", ["pos"]), BUDGET, domains, Store(tmp_path), [0])
    found = go(domains, tmp_path, (0, 1), only_stored=True)
    assert set(found.results) == {("pos", "pure"), ("pos", "ubfc_rppg")}
    assert found.missing["phasenet", "pure"] == "not computed yet"
    assert trained == []


def test_seeds_are_run_one_after_the_other(
    domains: dict[str, Domain], trained: list[str], tmp_path: Path
) -> None:
    run(make_plan("figures", ["efficientphys"]), BUDGET, domains, Store(tmp_path), (3, 1))
    assert [row.split()[-1] for row in trained] == ["3", "3", "1", "1"]


def test_an_interrupted_run_computes_only_the_other_cells(
    domains: dict[str, Domain], trained: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = cells.run_cell
    count = 0

    def killed(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == 5:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(runner, "run_cell", killed)
    with pytest.raises(KeyboardInterrupt):
        go(domains, tmp_path)
    before = len(trained)
    assert before == 2  # two cells of POS, two of a network
    monkeypatch.setattr(runner, "run_cell", plain)
    whole = go(domains, tmp_path)
    assert len(trained) == 4
    assert not whole.failed
    assert len(whole.results) == len(whole.plan.cells)


def test_an_interrupted_training_resumes(domains: dict[str, Domain], tmp_path: Path) -> None:
    job = cells.CellJob(make_plan("table1").cell("phasenet", "pure"), 0, BUDGET, domains, False)  # type: ignore[arg-type]

    def stop(share: float) -> None:
        raise Interrupted("stopped")

    with pytest.raises(Interrupted):
        cells.run_cell(job, Store(tmp_path), stop)
    assert Store(tmp_path).get(job.key()) is None
    assert (Store(tmp_path).run(job.training_key()) / "last.safetensors").exists()
    steps: list[float] = []
    done = cells.run_cell(job, Store(tmp_path), steps.append)
    assert steps == []  # its one step was saved
    assert done["recordings"]


@pytest.mark.parametrize(
    ("file", "says"),
    [("last.safetensors", "by another recipe"), ("best.safetensors", "by another recipe"), ("", "damaged")],
)
def test_a_checkpoint_of_another_cell_is_refused(
    file: str, says: str, domains: dict[str, Domain], tmp_path: Path
) -> None:
    plan, store = make_plan("table1"), Store(tmp_path)
    mine, other = (
        cells.CellJob(plan.cell("phasenet", "pure"), seed, BUDGET, domains, False)  # type: ignore[arg-type]
        for seed in (0, 1)
    )
    for job in (mine, other):
        cells.train(job, store.run(job.training_key()), lambda _: None)
    folder = store.run(mine.training_key())
    if file:
        shutil.copy(store.run(other.training_key()) / "last.safetensors", folder / file)
    else:
        (folder / "last.safetensors").write_bytes(b"half a fi")
    with pytest.raises(InputError, match=f"{says}.*; remove {folder} to train again"):
        cells.run_cell(mine, store, lambda _: None)
    shutil.rmtree(folder)
    assert cells.run_cell(mine, store, lambda _: None)["recordings"]


def test_a_failed_cell_does_not_stop_the_others(
    domains: dict[str, Domain], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = cells.train

    def failing(job: cells.CellJob, *rest: Any) -> Any:
        if job.cell.row == "efficientphys" and job.cell.column == "pure":
            raise RuntimeError("no memory\nat all")
        return plain(job, *rest)

    monkeypatch.setattr(cells, "train", failing)
    said: list[str] = []
    done = go(domains, tmp_path, log=said.append)
    assert done.failed == {("efficientphys", "pure"): "RuntimeError: no memory at all"}
    assert said == ["failed: efficientphys → pure, seed 0: RuntimeError: no memory at all"]
    assert len(done.results) == len(done.plan.cells) - 1


def test_cells_without_their_data_are_missing_and_the_others_run(tmp_path: Path) -> None:
    done = go({"pure": domain("pure", synthetic=False)}, tmp_path)
    assert set(done.results) == {(model, "pure") for model in MODELS}
    assert done.missing["phasenet", "ubfc_rppg"] == "ubfc_rppg"
    assert done.stamp.startswith("REAL DATA; SMOKE")


def test_a_damaged_result_is_computed_again(tmp_path: Path, domains: dict[str, Domain]) -> None:
    plan = make_plan("table1", ["pos"])
    first = run(plan, BUDGET, domains, Store(tmp_path), [0])
    for path in (tmp_path / "results").glob("*.json"):
        path.write_text(path.read_text()[:40])
    assert run(plan, BUDGET, domains, Store(tmp_path), [0]).results.keys() == first.results.keys()
    assert all(Store(tmp_path).get(p.stem) for p in (tmp_path / "results").glob("*.json"))


def test_too_few_subjects_are_an_error(tmp_path: Path) -> None:
    done = go({"pure": domain("pure", subjects=1)}, tmp_path)
    assert "1 subjects are too few" in done.failed["phasenet", "pure"]


def test_no_subject_is_in_training_and_test(domains: dict[str, Domain]) -> None:
    for name in ("table1", "table2", "table3"):
        for cell in make_plan(name).cells:
            job = cells.CellJob(cell, 0, BUDGET, domains, False)
            tested = {item.name for item in job.test_items()}
            for _, train, choose in job.training_data():
                assert not tested & {item.name for item in (*train, *choose)}


def test_a_key_does_not_depend_on_the_order() -> None:
    assert hash_key({"a": 1, "b": (1, 2)}) == hash_key({"b": [1, 2], "a": 1})
    assert hash_key({"a": 1}) != hash_key({"a": 2})


def test_too_short_recordings_are_refused(domains: dict[str, Domain]) -> None:
    from phase_rppg.reproduce.domains import ItemSource

    with pytest.raises(InputError, match="200 frames in a row"):
        ItemSource(domains["pure"].items, 200)


def test_the_toolbox_convention_uses_the_variant_of_a_method(
    domains: dict[str, Domain], tmp_path: Path
) -> None:
    def rates(name: str) -> list[Any]:
        rules = conventions.get(name)
        plan = make_plan("table1", ["chrom", "2sr"])
        done = run(plan, BUDGET, domains, Store(tmp_path), [0], convention=rules)
        if rules.toolbox_methods:
            assert "rPPG-Toolbox has no such method" in done.failed["2sr", "pure"]
        (result,) = done.results["chrom", "pure"]
        assert result["convention"] == name
        return [recording["whole"][name]["snr_db"] for recording in result["recordings"]]

    assert rates("ours") != rates("toolbox") != rates("release")


def test_results_of_two_conventions_are_not_put_into_one_table(
    domains: dict[str, Domain], tmp_path: Path
) -> None:
    plan = make_plan("table1", ["pos"])
    ours = run(plan, BUDGET, domains, Store(tmp_path), [0])
    theirs = run(plan, BUDGET, domains, Store(tmp_path), [0], convention=conventions.TOOLBOX)
    (result,) = ours.results["pos", "pure"]
    with pytest.raises(
        InputError, match=r"mixed conventions in one table: this table \(toolbox\), pos → pure \(ours\)"
    ):
        theirs.add(("pos", "pure"), result)
    assert ours.results["pos", "pure"][0]["key"] != theirs.results["pos", "pure"][0]["key"]


def test_the_outcome_names_the_subjects_of_every_protocol(domains: dict[str, Domain], tmp_path: Path) -> None:
    done = go(domains, tmp_path)
    assert done.splits["train on pure, test on pure"] == {
        "train": ["pure/s0"], "validate": [], "test": ["pure/s1"],
    }  # fmt: skip
    assert done.splits["test on ubfc_rppg"] == {"test": ["ubfc_rppg/s1"]}
