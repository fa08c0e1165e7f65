"""Every table and figure from the command line to its files, on small synthetic data sets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")

from phase_rppg.cli import run as phase
from phase_rppg.datasets import base
from phase_rppg.errors import InputError
from phase_rppg.evaluate import synthetic_stamp
from phase_rppg.reproduce import domains, make_plan, names, runner
from phase_rppg.reproduce.training_settings import Machine, get_budget
from phase_rppg.synth.writers import MARKER, is_synthetic
from phase_rppg.train.compute import Compute

# Table 1 and the ablations run whole, and with them every network; the other tables need not all do it again.
FEW = {
    "table2": ("pos", "physnet", "phasenet"),
    "table3": ("green", "physformer", "phasenet"),
    "table4": ("green", "physformer", "phasenet"),
    "table5": ("physnet", "phasenet"),
    "study": ("pos", "efficientphys", "phasenet-stream"),
}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


def reproduce(name: str, fakes: Path, out: Path, *more: str) -> int:
    return phase(
        [
            "reproduce",
            name,
            "--data",
            str(fakes),
            "--out",
            str(out),
            "--budget",
            "smoke",
            "--workers",
            "0",
            *more,
        ]
    )


@pytest.mark.parametrize("name", names())
def test_every_plan_runs(name: str, fakes: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = [word for model in FEW.get(name, ()) for word in ("--model", model)]
    assert reproduce(name, fakes, out, *few) == 0, capsys.readouterr().err
    stamp = "NO DATA" if name == "table5" else "FAKE DATA"
    assert stamp in capsys.readouterr().out
    folder = out / name
    for suffix in (".md", ".tex", ".csv"):
        assert stamp in (folder / f"{name}{suffix}").read_text(encoding="utf-8")
    assert list(folder.glob("*.png"))
    document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert document["failed"] == document["missing"] == []
    if name != "table5":
        assert len(document["cells"]) == len(make_plan(name, FEW.get(name, ())).cells)
    if name == "fig-lighting":
        titles = [table["title"] for table in document["tables"]]
        assert any("MMPD by light" in title for title in titles)
        assert any("MMPD by motion" in title for title in titles)


def test_a_missing_data_set_lists_the_cells_that_can_run(
    fakes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = tmp_path / "some"
    for name in ("set-ub", "set-pu"):
        shutil.copytree(fakes / name, some / name)
    assert reproduce("table1", some, tmp_path / "out", "--model", "green") == 4
    said = capsys.readouterr().err
    assert f"mmpd: not found; searched {some}; expected MMPD" in said
    assert "2 of 4 cells can still run: green → ubfc_rppg, green → pure" in said
    assert "2 of 4 cells are missing: green → buaa_mihr; green → mmpd" in said.splitlines()[-1]
    assert "no data" in (tmp_path / "out" / "table1" / "table1.md").read_text(encoding="utf-8")
    assert reproduce("table3", some, tmp_path / "out") == 4
    assert "no cell can run; mmpd: not found" in capsys.readouterr().err
    assert reproduce("table3", some / "absent", tmp_path / "out") == 4
    assert f"searched {some / 'absent'} (no such folder)" in capsys.readouterr().err
    (some / "more").mkdir()
    (some / "set-ub").rename(some / "more" / "a")
    shutil.copytree(some / "more" / "a", some / "more" / "b")
    assert reproduce("table1", some / "more", tmp_path / "out") == 4
    assert "both contain ubfc_rppg" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tabel1"], "did you mean 'table1'? choices: ablation-depth, ablation-lambda"),
        ([], "choices: ablation-depth"),
        (["table1", "--budget", "huge"], "choices: paper, smoke"),
        (["table1", "--seed", "1", "--seed", "1"], "different whole numbers"),
        (["table1", "--seed", "x"], "--seed"),
        (["table1", "--model", "physnot"], "did you mean 'physnet'"),
        (["table1", "--data", "mmpdd=/nowhere"], "did you mean 'mmpd'"),
        (["ablation-depth", "--model", "physnet"], "with ablation-depth only phasenet"),
    ],
)
def test_usage_errors_give_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert phase(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("folder", ["set-ub", "set-pu", "set-bu", "set-mm"])
def test_a_folder_is_a_data_set_or_contains_several(folder: str, fakes: Path) -> None:
    (alone,) = domains.locate([str(fakes / folder)]).found.values()
    assert alone == fakes / folder
    assert alone in domains.locate([str(fakes)]).found.values()
    assert domains.locate([str(fakes), str(alone)]).found == domains.locate([str(fakes)]).found


def test_under_torchrun_only_the_first_process_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert phase(["reproduce", "table5", "--model", "physnet", "--out", str(tmp_path / "other")]) == 0
    assert capsys.readouterr() == ("", "")
    assert not (tmp_path / "other").exists()
    monkeypatch.setenv("RANK", "0")
    assert phase(["reproduce", "table5", "--model", "physnet", "--out", str(tmp_path / "first")]) == 0
    assert (tmp_path / "first" / "table5" / "REPORT.md").exists()


def test_the_options_of_the_machine_reach_training_and_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Machine] = []

    def stop(*arguments: object, machine: Machine, **more: object) -> None:
        seen.append(machine)
        raise InputError("stopped")

    monkeypatch.setattr(runner, "run", stop)
    options = ["--device", "cpu", "--precision", "bf16", "--channels-last", "--compile"]
    assert phase(["reproduce", "table5", "--out", str(tmp_path), *options]) == 4
    assert seen[0].compute() == Compute("cpu", "bf16", channels_last=True, compile=True)


def test_counting_a_classical_method_is_a_failed_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert phase(["reproduce", "table5", "--model", "pos", "--out", str(tmp_path)]) == 4
    assert "failed: pos → clip, seed 0: unknown network 'pos'" in capsys.readouterr().err


def test_list_shows_all_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert phase(["reproduce", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in names())


def test_synthetic_data_is_recognised_by_its_marker(fakes: Path, tmp_path: Path) -> None:
    assert is_synthetic(fakes / "set-pu")
    shutil.copytree(
        fakes / "set-ub" / "subject1", tmp_path / "REAL UBFC" / "subject1"
    )  # without the root's marker
    assert is_synthetic(tmp_path / "REAL UBFC")
    (tmp_path / "REAL UBFC" / "subject1" / MARKER).unlink()
    assert not is_synthetic(tmp_path / "REAL UBFC")


def test_one_synthetic_subject_makes_a_data_set_synthetic(fakes: Path, tmp_path: Path) -> None:
    deep = tmp_path / "UBFC" / "DATASET_2"
    for subject in ("subject1", "subject2"):
        shutil.copytree(fakes / "set-ub" / subject, deep / subject)
    (deep / "subject1" / MARKER).unlink()
    found = base.find("ubfc_rppg", tmp_path / "UBFC")
    assert synthetic_stamp.synthetic_flags(found) == (False, True)
    assert synthetic_stamp.stamp_text(synthetic_stamp.synthetic_flags(found)).startswith("FAKE DATA mixed")
    opened = domains.open_dataset(
        "ubfc_rppg", tmp_path / "UBFC", tmp_path / "cache", get_budget("smoke"), 0, lambda _: None
    )
    assert opened.synthetic


@pytest.mark.parametrize("network", ["phasenet", "physnet"])
def test_evaluate_and_reproduce_give_the_same_numbers(
    network: str, fakes: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One comparison: the checkpoint of a cell, evaluated on its own, has the numbers of the cell."""
    assert reproduce("table1", fakes, out, "--model", network, "--convention", "toolbox") == 0
    document = json.loads((out / "table1" / "table1.json").read_text(encoding="utf-8"))
    (cell,) = [cell for cell in document["cells"] if cell["column"] == "pure"]
    checkpoint = out / "cache" / "runs" / cell["training"]["key"] / cell["training"]["checkpoint"]
    capsys.readouterr()
    call = ["evaluate", "pure", str(fakes / "set-pu"), "--window", "3", "--workers", "0", "--json"]
    call += ["--split", "intra", "--convention", "toolbox", "--model", str(checkpoint)]
    assert phase(call) == 0, capsys.readouterr().err
    alone = json.loads(capsys.readouterr().out)
    assert [(r["name"], r["whole"]) for r in alone["recordings"]] == [
        (r["name"], r["whole"]) for r in cell["recordings"]
    ]
    assert "--split intra --convention toolbox" in alone["run"]["command"]
    # On the whole data set, the checkpoint would be tested on a subject that trained it.
    assert phase([word for word in call if word not in ("--split", "intra")]) == 4
    assert "was trained on 1 of the 2 test subjects: pure/01" in capsys.readouterr().err


def test_an_invalid_checkpoint_gives_one_line(
    fakes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "foreign.safetensors")
    (tmp_path / "damaged.safetensors").write_bytes(b"no")
    for file, words in (
        ("foreign.safetensors", "not a checkpoint of phase-rppg"),
        ("damaged.safetensors", "not a safetensors file"),
        ("missing.safetensors", "no such file"),
        ("published.pth", "phase import-weights"),
    ):
        call = ["evaluate", "pure", str(fakes / "set-pu"), "--model", str(tmp_path / file)]
        assert phase(call) == 4
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
