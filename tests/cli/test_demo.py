"""`phase demo` leaves its video where it says and never overwrites a file by chance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from phase_rppg.cli import run
from phase_rppg.video.probe import probe

SHORT = ["demo", "--seconds", "2", "--model", "pos"]  # too short for a reading: exit code 3


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_video_stays_in_the_current_folder_under_a_free_name(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "demo.mp4").write_text("mine")
    assert run(SHORT) == 3
    assert capsys.readouterr().out.startswith("demo-2.mp4: 2 s of a synthetic face")
    assert probe("demo-2.mp4").duration_s == pytest.approx(2, abs=0.1)
    assert (place / "demo.mp4").read_text() == "mine"


def test_out_names_the_video_and_json_states_the_true_rate(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*SHORT, "--out", "sub/face.mp4", "--json"]) == 3
    document = json.loads(capsys.readouterr().out)
    assert document["video"] == "sub/face.mp4"
    assert document["true_bpm"] == pytest.approx(72, abs=3)
    assert [path.name for path in place.iterdir()] == ["sub"]
    assert run([*SHORT, "--out", "sub/face.mp4"]) == 4
    assert "--force" in capsys.readouterr().err
    assert run([*SHORT, "--out", "sub/face.mp4", "--force"]) == 3


def test_a_folder_that_cannot_be_written_is_named(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "file").touch()
    assert run([*SHORT, "--out", "file/demo.mp4"]) == 4
    assert "cannot write file/demo.mp4" in capsys.readouterr().err
