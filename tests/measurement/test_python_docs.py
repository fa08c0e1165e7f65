"""The programs of docs/python.md run unchanged, each in a process of its own, and print what they promise."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from drawing import Actor, Film, clock, still
from phase_rppg.errors import is_installed
from phase_rppg.infer import onnx
from phase_rppg.video.encode import write_video

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
BPM = 84.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with face.mp4, and a network of one's own."""
    folder = tmp_path_factory.mktemp("programs")
    film = Film((Actor(still(104, 84), 80, BPM),), clock(14, 30), 160, 208)
    write_video(folder / "face.mp4", (frame.rgb for frame in film.frames()), 30, crf=14, preset="veryfast")
    shutil.copy(onnx.WEIGHTS / "phasenet-stream.onnx", folder / "own.onnx")
    manifest = json.loads((onnx.WEIGHTS / "phasenet-stream.json").read_text())
    (folder / "own.json").write_text(json.dumps({**manifest, "file": "own.onnx", "name": "own"}))
    return folder


def run(text: str, folder: Path) -> str:
    """Run the only program that contains this text, and return its output."""
    (program,) = [program for program in PROGRAMS if text in program]
    for package in ("cv2", "neurokit2", "pandas"):
        if f"import {package}" in program or (package == "pandas" and "to_frame" in program):
            need(package)
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "PhaseWarning" not in done.stderr
    return done.stdout


def need(package: str) -> None:
    """Skip the test without this package, but fail where all packages are expected."""
    if not is_installed(package):
        assert not os.environ.get("PHASE_TESTS_COMPLETE"), f"{package} is missing: scripts/install --all"
        pytest.skip(f"{package} is missing: scripts/install --all")


def rates(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"bpm=([\d.]+)", text)]


def near(values: list[float], count: int) -> bool:
    return len(values) == count and all(abs(value - BPM) < 2 for value in values)


def test_every_program_has_a_test() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    texts = re.findall(r'run\("(.*?)", folder\)', source)
    assert sorted(program for text in texts for program in PROGRAMS if text in program) == sorted(PROGRAMS)


def test_a_file(folder: Path) -> None:
    assert re.fullmatch(r"8[345]\.\d bpm, 8\d to 8\d\n", run("no reading:", folder))


def test_arrays(folder: Path) -> None:
    assert near(rates(run("by_times", folder)), 3)


def test_tables(folder: Path) -> None:
    out = run("to_frame", folder)
    assert float(re.search(r"([\d.]+) s between beats", out).group(1)) == pytest.approx(60 / BPM, abs=0.02)  # type: ignore[union-attr]
    assert "HrvLimit(name='duration_s'" in out
    wave = np.genfromtxt(folder / "wave.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    assert wave.dtype.names == ("t_s", "value", "valid")
    assert len(wave) == pytest.approx(14 * 30, abs=10)
    beats = (folder / "beats.csv").read_text().splitlines()
    assert beats[0] == "t_s,ibi_s"
    assert beats[1].endswith(",")  # the first beat has no interval
    assert (folder / "face.png").stat().st_size > 10_000


def test_neurokit(folder: Path) -> None:
    bpm, peaks = map(float, run("import neurokit2", folder).split())
    assert bpm == pytest.approx(BPM, abs=4)
    assert peaks == pytest.approx(14 * BPM / 60, abs=2)


def test_opencv(folder: Path) -> None:
    out = run("import cv2", folder)
    assert re.search(r"\d s: 8[345] bpm", out)
    import cv2

    picture = cv2.imread(str(folder / "pulse.png"))
    green = (picture == (0, 255, 0)).all(-1)
    rows, columns = np.nonzero(green[25:])  # below the text
    assert rows.size > 100
    assert 40 < columns.max() - columns.min() < 120  # the box of a face that is 80 pixels wide
    assert abs((columns.max() + columns.min()) / 2 - 104) < 12


def test_asyncio(folder: Path) -> None:
    out = run("import asyncio", folder)
    assert out.count("\n") == 5
    assert rates(out)


def test_threads_and_processes(folder: Path) -> None:
    assert near(rates(run("ProcessPoolExecutor", folder)), 2)


def test_own_network(folder: Path) -> None:
    out = run("own.onnx", folder)
    assert out.startswith("own ")
    assert near(rates(out), 1)


def test_colour_traces(folder: Path) -> None:
    assert "TOO_SHORT" in run("measure_trace", folder)


def test_single_steps(folder: Path) -> None:
    assert len(run("toolbox_bpm", folder).split()) == 2


def test_errors(folder: Path) -> None:
    assert run("missing.mp4", folder) == "missing.mp4: does not exist; check the spelling of the path\n"
