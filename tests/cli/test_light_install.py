"""Without SciPy and Matplotlib, measuring works; a command that needs them names the extra to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Read by every Python process that starts with this folder on its path, worker processes included.
BLOCKER = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("matplotlib", "scipy"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""
PLOT = 'error: matplotlib is not installed; run: pip install "phase-rppg[plot]"\n'
RESEARCH = 'error: scipy is not installed; run: pip install "phase-rppg[research]"\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("light")
    (folder / "sitecustomize.py").write_text(BLOCKER)
    made = phase(folder, "demo", "--model", "pos", "--seconds", "4", "--out", "face.mp4")
    assert made.returncode == 3, made.stderr  # too short for a gated reading
    return folder


def phase(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-m", "phase_rppg", *arguments],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_text_json_csv_and_html_need_no_plots(folder: Path) -> None:
    options = "-m pos -q --ungated --window 3 --csv face.csv --report face.html"
    done = phase(folder, "measure", "face.mp4", *options.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert "bpm" in done.stdout
    assert (folder / "face.csv").is_file()
    page = (folder / "face.html").read_text(encoding="utf-8")
    assert "<svg" not in page
    assert "matplotlib is not installed; run: pip install" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("measure face.mp4 --plot face.png", PLOT),
        ("demo --plot demo.png", PLOT),
        ("explain face.mp4 -o masks.png", PLOT),
        ("physics --alpha 4 --omega 7.5 --fps 30 --eps 0.01 --plot oscillator.png", PLOT),
        ("evaluate --video face.mp4 --reference face.csv", RESEARCH),
        ("synth --contact-sheet worlds.png", RESEARCH),
    ],
)
def test_what_needs_more_names_the_extra_in_one_line(folder: Path, arguments: str, message: str) -> None:
    done = phase(folder, *arguments.split())
    assert (done.returncode, done.stderr) == (2, message)


def test_an_import_that_fails_in_a_worker_names_the_extra(folder: Path) -> None:
    arguments = "synth --out fake --as mmpd --n 1 --seconds 1 --size 48 --workers 1"
    done = phase(folder, *arguments.split())
    assert done.returncode == 2
    assert done.stderr.endswith(RESEARCH)
