"""`phase calibrate` writes a calibration that can be read, and states how it was made."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from phase_rppg.cli import run
from phase_rppg.session import calibration


@pytest.mark.slow
def test_a_calibration_is_written_with_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A pulse that is too faint gives wrong windows, which the model of p_ok needs.
    named = ["studio:2", "studio:2,pulse.amplitude=0.0002", "photo:2"]
    worlds = [word for name in named for word in ("--world", name)] + ["--seconds", "10"]
    words = ["calibrate", "--model", "pos", "--out", str(tmp_path), *worlds, "--workers", "0"]
    assert run([*words, "--json", "--quiet"]) == 0
    (said,) = json.loads(capsys.readouterr().out)
    fitted = calibration.read(Path(said["file"]))
    assert Path(said["file"]) == tmp_path / "pos.json"
    assert dataclasses.asdict(fitted.thresholds) == said["thresholds"]
    assert said["command"].startswith("phase calibrate --out OUT --model pos --world studio:2")
    assert run(words) == 4  # refused before any recording is made
    assert "--force" in capsys.readouterr().err
