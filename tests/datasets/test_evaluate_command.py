"""`phase evaluate` from the command line to its files, on fake data sets."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from phase_rppg import infer
from phase_rppg.cli import run as phase
from phase_rppg.evaluate import session_evaluation_files
from phase_rppg.synth.writers import mark

from . import fake_layouts


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    fake_layouts.folder(folder, [fake_layouts.FaceState(i, 60.0 + 15 * i, 12.0, (72, 96)) for i in (1, 2)])
    return folder


def test_the_rates_of_an_easy_data_set_are_found(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--out", str(tmp_path / "out"), "--csv", str(tmp_path / "w.csv")]
    assert (
        phase(
            [
                "evaluate",
                "folder",
                str(root),
                "--model",
                "pos",
                "--workers",
                "0",
                "--json",
                "--ungated",
                *files,
            ]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    assert document["stamp"] == "REAL DATA"
    assert document["overall"]["count"] >= 4
    assert document["overall"]["ungated"]["mae"]["value"] < 1.5
    assert [r["subject"] for r in document["recordings"]] == ["person 1", "person 2"]
    assert document["conditions"]["light"]["daylight"]["found"] == document["overall"]["found"]
    rows = list(csv.DictReader((tmp_path / "w.csv").read_text().splitlines()))
    assert len(rows) == document["overall"]["count"]
    assert all(abs(float(row["bpm"]) - float(row["truth_bpm"])) < 5 for row in rows)
    names = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"evaluation.json", "windows.csv", "scatter.png", "risk-coverage.png"} <= names


def test_a_person_sees_a_table(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    video, label = str(root / "1.mp4"), str(root / "1.csv")
    assert phase(["evaluate", "--video", video, "--reference", label, "--workers", "0"]) == 0
    shown = capsys.readouterr().out
    assert "mean of" in shown
    assert "all windows" in shown.replace("\n", " ") or "all" in shown
    assert "whole recordings" in shown
    assert "toolbox" not in shown  # numbers of another convention are never in the same table
    assert "REAL DATA" in shown


def test_what_the_generator_made_is_called_fake_everywhere(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, out = tmp_path / "REAL recordings", tmp_path / "out"
    shutil.copytree(root, copy)
    mark(copy, "phase synth")
    drawn: list[Figure] = []
    monkeypatch.setattr(session_evaluation_files, "save_figure", lambda figure, path: drawn.append(figure))
    assert (
        phase(["evaluate", "folder", str(copy), "--model", "pos", "--workers", "0", "--out", str(out)]) == 0
    )
    assert "FAKE DATA: made by the generator" in capsys.readouterr().out
    assert json.loads((out / "evaluation.json").read_text())["stamp"].startswith("FAKE DATA")
    rows = csv.DictReader((out / "windows.csv").read_text().splitlines())
    assert all(row["stamp"].startswith("FAKE DATA") for row in rows)
    assert len(drawn) == 4
    assert all("FAKE DATA" in [text.get_text() for text in figure.texts] for figure in drawn)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--model", "pox"], 2, "did you mean 'pos'"),
        (["--window", "0"], 2, "window"),
        (["--step", "20"], 2, "step"),
    ],
)
def test_a_wrong_call_is_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert phase(["evaluate", "folder", str(root), *arguments]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "code", "message"), [("mmpdd", 2, "did you mean 'mmpd'"), ("pure", 4, "expected PURE")]
)
def test_a_wrong_data_set_is_one_line(
    root: Path, capsys: pytest.CaptureFixture[str], name: str, code: int, message: str
) -> None:
    assert phase(["evaluate", name, str(root)]) == code
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_data_set_without_its_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert phase(["evaluate", "pure"]) == 2
    assert "phase evaluate pure ROOT" in capsys.readouterr().err


def test_existing_results_are_kept_without_force(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "windows.csv").write_text("mine")
    for words in (["--out", str(tmp_path)], ["--csv", str(tmp_path / "windows.csv")]):
        assert phase(["evaluate", "folder", str(root), "--model", "pos", *words]) == 4
        assert "--force" in capsys.readouterr().err
    assert (tmp_path / "windows.csv").read_text() == "mine"


def test_neither_or_both_of_folder_and_video_is_refused(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert phase(["evaluate"]) == 2
    assert phase(["evaluate", "folder", str(root), "--video", "x.mp4"]) == 2
    assert phase(["evaluate", "--video", "x.mp4"]) == 2
    assert "accepted" in capsys.readouterr().err


def test_when_no_recording_can_be_measured_the_input_is_at_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_layouts.folder(tmp_path, [fake_layouts.FaceState(1, 70.0, 3.0)])
    assert phase(["evaluate", "folder", str(tmp_path), "--workers", "0"]) == 4
    assert "no window of 10 s has a reference rate" in capsys.readouterr().err


def test_a_cut_video_is_left_out_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fake_layouts.ubfc_rppg(tmp_path, [fake_layouts.FaceState(i, 70.0, 11.0) for i in (1, 2)])
    cut = tmp_path / "subject2" / "vid.avi"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size * 3 // 4])
    arguments = [
        "evaluate",
        "ubfc_rppg",
        str(tmp_path),
        "--workers",
        "0",
        "--json",
        "--window",
        "6",
    ]
    assert phase(arguments) == 0
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert [r["name"] for r in document["recordings"]] == ["subject1"]
    assert [r["name"] for r in document["excluded"]] == ["subject2"]
    assert "excluded: subject2" in said.err


def test_a_model_that_was_trained_on_a_test_subject_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = tmp_path / "net.json"
    shipped = Path(infer.__file__).parent / "weights" / "phasenet-stream.json"
    record = {"train": ["ubfc_rppg/subject1"], "validate": []}
    manifest.write_text(json.dumps({**json.loads(shipped.read_text()), "training": {"subjects": record}}))
    shutil.copy(shipped.with_suffix(".onnx"), tmp_path)
    fake_layouts.ubfc_rppg(tmp_path / "data", [fake_layouts.FaceState(i, 70.0, 11.0) for i in (1, 2)])
    words = ["evaluate", "ubfc_rppg", str(tmp_path / "data"), "--model", str(manifest), "--workers", "0"]
    assert phase(words) == 4
    assert "was trained on 1 of the 2 test subjects: ubfc_rppg/subject1" in capsys.readouterr().err
    out = tmp_path / "out"
    assert phase([*words, "--split", "intra", "--json", "--window", "6", "--out", str(out)]) == 0
    report = (out / "REPORT.md").read_text(encoding="utf-8")
    assert f"- training of {manifest}\n  - train (1): ubfc_rppg/subject1\n" in report
    document = json.loads(capsys.readouterr().out)
    assert [r["name"] for r in document["recordings"]] == ["subject2"]
    assert phase([*words, "--split", "inter"]) == 2
