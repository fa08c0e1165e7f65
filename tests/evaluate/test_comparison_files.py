"""`phase compare` reads evaluations, refuses what cannot be compared, and names the better model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phase_rppg.cli import run as phase


def evaluation(
    folder: Path, model: str, errors: list[float], convention: str = "toolbox", dataset: str = "pure"
) -> str:
    recordings = [
        {"name": f"r{i}", "subject": f"s{i}", "whole": {convention: {"bpm": 70 + e, "truth_bpm": 70.0}}}
        for i, e in enumerate(errors)
    ]
    document = {
        "stamp": "REAL DATA", "dataset": dataset, "model": model, "convention": {"name": convention},
        "recordings": recordings,
    }  # fmt: skip
    target = folder / f"{model}-{convention}-{dataset}"
    target.mkdir()
    (target / "evaluation.json").write_text(json.dumps(document))
    return str(target)


def test_models_are_compared_by_subject(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [evaluation(tmp_path, m, [b + k for k in range(6)]) for m, b in (("a", 1), ("b", 2), ("c", 9))]
    assert phase(["compare", *folders, "--out", str(tmp_path / "out"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(one["first"], one["second"], one["better"]) for one in document["pairs"]] == [
        ("a", "b", "a"), ("a", "c", "a"), ("b", "c", "b"),
    ]  # fmt: skip
    assert document["ranks"]["ranks"] == {"a": 1.0, "b": 2.0, "c": 3.0}
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"comparison.json", "critical-difference.png"}
    assert phase(["compare", *folders]) == 0
    shown = capsys.readouterr().out
    assert "6 subjects" in shown
    assert "REAL DATA" in shown
    assert "Friedman test: p =" in shown


def test_a_comparison_without_ranks_says_so_and_leaves_no_old_diagram(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [evaluation(tmp_path, m, [b, b + 1]) for m, b in (("a", 1), ("b", 2), ("c", 9))]
    old = tmp_path / "out" / "critical-difference.png"
    old.parent.mkdir()
    old.write_bytes(b"of another comparison")
    assert phase(["compare", *folders, "--out", str(old.parent), "--force"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "three or more models and three or more subjects" in shown
    assert {p.name for p in old.parent.iterdir()} == {"comparison.json"}


def test_what_cannot_be_compared_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = evaluation(tmp_path, "a", [1, 2, 3])
    other = evaluation(tmp_path, "b", [1, 2, 3], convention="ours")
    elsewhere = evaluation(tmp_path, "b", [1, 2, 3], dataset="mmpd")
    single = evaluation(tmp_path, "c", [1])
    (tmp_path / "session.json").write_text('{"dataset": "pure", "overall": {}}')
    for second, words, code in (
        (other, "mixed conventions in one table", 4),
        (elsewhere, "mixed data sets in one table", 4),
        (mine, "is compared twice", 4),
        (single, "share 1 subjects", 4),
        (str(tmp_path / "session.json"), "not an evaluation in a convention", 4),
        (str(tmp_path / "absent.json"), "absent.json", 4),
    ):
        assert phase(["compare", mine, second]) == code
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
    assert phase(["compare", mine]) == 2
