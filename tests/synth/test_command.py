"""`phase synth` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from phase_rppg.cli import run
from phase_rppg.synth import Clips
from phase_rppg.synth.contact_sheet import contact_sheet


def test_worlds_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["synth", "--list"]) == 0
    listed = capsys.readouterr().out
    assert "wild" in listed
    assert "no pulse" in listed


def test_clips_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--world", "wall", "--n", "1", "--seconds", "0.5", "--size", "16", "--codec", "raw"]
    assert run(["synth", "--out", str(tmp_path / "out"), *arguments]) == 0
    assert "1 clip of" in capsys.readouterr().out
    assert len(Clips(tmp_path / "out")) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--out", "OUT", "--world", "wold"], 2, "did you mean"),
        (["--out", "OUT", "--as", "ubfc"], 2, "ubfc_rppg"),
        (["--out", "OUT", "--codec", "h265"], 2, "h264"),
        (["--out", "OUT", "--faces", "nowhere", "--n", "1", "--seconds", "0.2"], 4, "nowhere"),
        ([], 2, "no output folder given"),
    ],
)
def test_wrong_calls_are_explained(
    arguments: list[str], code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(tmp_path / "x") if word == "OUT" else word for word in arguments]
    assert run(["synth", *given]) == code
    assert says in capsys.readouterr().err


def test_the_contact_sheet_is_a_picture(tmp_path: Path) -> None:
    contact_sheet(tmp_path / "s.png", ["wall"], columns=1, size=16, workers=0)
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")
