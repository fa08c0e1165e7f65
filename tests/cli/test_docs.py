"""The examples of the documentation run as they stand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from phase_rppg.cli import run

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


COMMANDS = [line for block in blocks("measure.md", "console") for line in block.strip().splitlines()]


@pytest.fixture
def place(film: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with face.mp4 in it, and a folder of videos."""
    (tmp_path / "videos").mkdir()
    (tmp_path / "face.mp4").symlink_to(film("face"))
    (tmp_path / "videos" / "a.mp4").symlink_to(film("face"))
    (tmp_path / "videos" / "b.mp4").symlink_to(film("short"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", [c for c in COMMANDS if c != "phase demo"])
def test_commands_run(line: str, place: Path) -> None:
    program, *words = shlex.split(line)
    assert program == "phase"
    assert run(words) == 0


@pytest.mark.parametrize("number", range(len(blocks("python.md", "python"))))
def test_python_runs(number: int, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks("python.md", "python")[number], f"python.md, example {number}", "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--bpm", "180", "--seed", "2"]])
def test_the_demo_reads_its_own_pulse(
    words: list[str], place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", "--keep", "demo.mp4", "--plot", "demo.png", *words]) == 0
    out = capfd.readouterr().out
    truth, found = (float(re.search(r"([\d.]+) bpm", line).group(1)) for line in out.splitlines())  # type: ignore[union-attr]
    assert abs(truth - found) < 3
    assert (place / "demo.mp4").exists()
    assert (place / "demo.png").exists()
