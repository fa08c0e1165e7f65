"""The examples of the documentation run without changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from phase_rppg.cli import run

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


COMMANDS = [line for block in blocks("measure.md", "console") for line in block.strip().splitlines()]


@pytest.fixture
def place(film: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with face.mp4, a colour trace and a subfolder of videos."""
    (tmp_path / "videos").mkdir()
    (tmp_path / "face.mp4").symlink_to(film("face"))
    (tmp_path / "videos" / "a.mp4").symlink_to(film("face"))
    (tmp_path / "videos" / "b.mp4").symlink_to(film("short"))
    t_s = np.arange(900) / 30
    pulse = np.sin(2 * np.pi * 1.2 * t_s)[:, None] * [0.4, 1.0, 0.7]
    noise = np.random.default_rng(0).normal(0, 0.05, (900, 3))
    table = np.column_stack([t_s, [150, 100, 80] - pulse + noise])
    np.savetxt(tmp_path / "trace.csv", table, delimiter=",", header="t_s,r,g,b", comments="", fmt="%.5f")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", [c for c in COMMANDS if c != "phase demo"])
def test_commands_run(line: str, place: Path) -> None:
    program, *words = shlex.split(line)
    assert program == "phase"
    assert run(words) == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--bpm", "180", "--seed", "2"]])
def test_the_demo_measures_its_true_rate(
    words: list[str], place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", "--out", "demo.mp4", "--plot", "demo.png", *words]) == 0
    out = capfd.readouterr().out
    truth, found = (float(re.search(r"([\d.]+) bpm", line).group(1)) for line in out.splitlines())  # type: ignore[union-attr]
    assert abs(truth - found) < 3
    if not words:  # the README shows this output
        readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
        shown = readme.partition("$ phase demo\n")[2].partition("\n\n")[0]
        without_numbers = [re.sub(r"[\d.]+", "N", text) for text in (out, shown)]
        assert without_numbers[0].split() == without_numbers[1].split()
    assert (place / "demo.mp4").exists()
    assert (place / "demo.png").exists()
