"""Every name from the command line to its files, on tiny fake data sets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")

from phase_rppg.cli import run as phase
from phase_rppg.datasets import base
from phase_rppg.evaluate import data_stamp
from phase_rppg.reproduce import domains, names, plan_of
from phase_rppg.reproduce.budget import budget_of
from phase_rppg.synth.writers import MARKER, is_synthetic

# Table 1 and the ablations run whole, and with them every network; the other tables need not all do it again.
FEW = {
    "table2": "pos,physnet,phasenet",
    "table3": "green,physformer,phasenet",
    "table4": "green,physformer,phasenet",
    "table5": "physnet,phasenet",
    "study": "pos,efficientphys,phasenet-stream",
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
def test_it_runs_whole(name: str, fakes: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--models", FEW[name]] if name in FEW else []
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
        assert len(document["cells"]) == len(plan_of(name, FEW.get(name, "").replace(",", " ").split()).cells)
    if name == "fig-lighting":
        titles = [table["title"] for table in document["tables"]]
        assert any("MMPD by light" in title for title in titles)
        assert any("MMPD by motion" in title for title in titles)


def test_a_missing_data_set_is_named_with_what_can_still_run(
    fakes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = tmp_path / "some"
    for name in ("set-ub", "set-pu"):
        shutil.copytree(fakes / name, some / name)
    assert reproduce("table1", some, tmp_path / "out", "--models", "green") == 4
    said = capsys.readouterr().err
    assert f"mmpd: not found; looked in {some}; expected MMPD" in said
    assert "2 of 4 cells can still run: green → ubfc_rppg, green → pure" in said
    assert "2 of 4 cells are missing: green → buaa_mihr; green → mmpd" in said.splitlines()[-1]
    assert "no data" in (tmp_path / "out" / "table1" / "table1.md").read_text(encoding="utf-8")
    assert reproduce("table3", some, tmp_path / "out") == 4
    assert "no cell can run; mmpd: not found" in capsys.readouterr().err
    assert reproduce("table3", some / "absent", tmp_path / "out") == 4
    assert f"looked in {some / 'absent'} (no such folder)" in capsys.readouterr().err
    (some / "more").mkdir()
    (some / "set-ub").rename(some / "more" / "a")
    shutil.copytree(some / "more" / "a", some / "more" / "b")
    assert reproduce("table1", some / "more", tmp_path / "out") == 4
    assert "both hold ubfc_rppg" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tabel1"], "did you mean 'table1'? choices: ablation-depth, ablation-lambda"),
        ([], "choices: ablation-depth"),
        (["table1", "--budget", "huge"], "choices: paper, smoke"),
        (["table1", "--seeds", "0,x"], "different whole numbers"),
        (["table1", "--models", "physnot"], "did you mean 'physnet'"),
        (["table1", "--data", "mmpdd=/nowhere"], "did you mean 'mmpd'"),
        (["ablation-depth", "--models", "physnet"], "with ablation-depth only phasenet"),
    ],
)
def test_a_wrong_call_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert phase(["reproduce", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("folder", ["set-ub", "set-pu", "set-bu", "set-mm"])
def test_a_folder_may_be_a_data_set_or_hold_several(folder: str, fakes: Path) -> None:
    (alone,) = domains.locate([str(fakes / folder)]).found.values()
    assert alone == fakes / folder
    assert alone in domains.locate([str(fakes)]).found.values()
    assert domains.locate([str(fakes), str(alone)]).found == domains.locate([str(fakes)]).found


def test_a_method_cannot_be_counted_and_that_is_a_failed_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert phase(["reproduce", "table5", "--models", "pos", "--out", str(tmp_path)]) == 4
    assert "failed: pos → clip, seed 0: unknown network 'pos'" in capsys.readouterr().err


def test_the_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert phase(["reproduce", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in names())


def test_synthetic_data_is_known_by_its_marker_not_by_its_name(fakes: Path, tmp_path: Path) -> None:
    assert is_synthetic(fakes / "set-pu")
    shutil.copytree(
        fakes / "set-ub" / "subject1", tmp_path / "REAL UBFC" / "subject1"
    )  # without the root's marker
    assert is_synthetic(tmp_path / "REAL UBFC")
    (tmp_path / "REAL UBFC" / "subject1" / MARKER).unlink()
    assert not is_synthetic(tmp_path / "REAL UBFC")


def test_one_fake_subject_deep_in_a_data_set_makes_it_fake(fakes: Path, tmp_path: Path) -> None:
    deep = tmp_path / "UBFC" / "DATASET_2"
    for subject in ("subject1", "subject2"):
        shutil.copytree(fakes / "set-ub" / subject, deep / subject)
    (deep / "subject1" / MARKER).unlink()
    found = base.find("ubfc_rppg", tmp_path / "UBFC")
    assert data_stamp.synthetic(found) == (False, True)
    assert data_stamp.words(data_stamp.synthetic(found)).startswith("FAKE DATA mixed")
    opened = domains.open_dataset(
        "ubfc_rppg", tmp_path / "UBFC", tmp_path / "cache", budget_of("smoke"), 0, lambda _: None
    )
    assert opened.synthetic


@pytest.mark.parametrize("network", ["phasenet", "physnet"])
def test_a_checkpoint_of_a_cell_can_be_evaluated(
    network: str, fakes: Path, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce("table1", fakes, out, "--models", network)
    capsys.readouterr()
    runs = [p for p in (out / "cache" / "runs").iterdir() if (p / "run.json").is_file()]
    name = f'"name": "{network}"'
    checkpoint = next(p for p in runs if name in (p / "run.json").read_text()) / "last.safetensors"
    call = ["evaluate", str(fakes / "set-pu"), "-d", "pure", "--window", "3", "--workers", "0", "--json"]
    assert phase([*call, "--model", str(checkpoint)]) == 0, capsys.readouterr().err
    document = json.loads(capsys.readouterr().out)
    assert len(document["recordings"]) == 2


def test_a_file_that_is_no_checkpoint_is_one_line(
    fakes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch
    from safetensors.torch import save_file

    save_file({"a": torch.zeros(2)}, tmp_path / "foreign.safetensors")
    (tmp_path / "damaged.safetensors").write_bytes(b"no")
    for file, words in (
        ("foreign.safetensors", "neither a checkpoint of phase train nor"),
        ("damaged.safetensors", "not a safetensors file"),
        ("missing.safetensors", "no such file"),
        ("published.pth", "phase import-weights"),
    ):
        call = ["evaluate", str(fakes / "set-pu"), "-d", "pure", "--model", str(tmp_path / file)]
        assert phase(call) == 4
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
