"""The stored conformance suite is what Python gives; the port is tested with the same files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "conformance"


def check() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SUITE / "write.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_suite_is_current() -> None:
    """After a change of the session run conformance/write.py, and make the port follow."""
    done = check()
    assert done.returncode == 0, done.stderr


def test_every_stage_has_a_file_and_states_its_tolerances() -> None:
    index = json.loads((SUITE / "index.json").read_text(encoding="utf-8"))
    files = {file.relative_to(SUITE).as_posix() for file in (SUITE / "vectors").iterdir()}
    assert {stage["file"] for stage in index["stages"].values()} == files
    used = "".join(file.read_text("utf-8") for file in (ROOT / "web" / "phase-rppg" / "tests").glob("*.ts"))
    for name, stage in index["stages"].items():
        assert f"suite.{name}" in used, f"the port does not run the stage {name}"
        for what in stage["tolerance"]:
            assert f'tolerance("{name}", "{what}")' in used, f"{name}: the tolerance of {what} is not used"
