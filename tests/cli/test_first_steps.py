"""The recorded session in docs/first-steps.md is what the commands print.

Run this file as a program to record the session again.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "first-steps.md"
BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?")
PROGRAM = 'phase() { "$PYTHON" -m phase_rppg "$@"; }; '
MAX_DIFFERENCE = 1.0  # of a number: another machine may round another way
MAX_DIFFERENCE_OF_SHARE = 0.05  # of a number up to 1, such as a probability


def output_of(command: str, folder: Path) -> str:
    """Return what a command prints on both streams."""
    environment = {**os.environ, "PYTHON": sys.executable, "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
    done = subprocess.run(
        ["bash", "-c", PROGRAM + command], cwd=folder, env=environment, text=True, encoding="utf-8",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=120,
    )  # fmt: skip
    return done.stdout


def recorded(page: str, run: Callable[[str], str]) -> str:
    """Return the page with the output of each command below its line."""

    def record(block: re.Match[str]) -> str:
        commands = [line for line in block.group().splitlines() if line.startswith("$ ")]
        return "".join(f"{line}\n{run(line[2:])}" for line in commands)

    return BLOCK.sub(record, page)


def differences(shown: str, printed: str) -> list[str]:
    """Return the lines that differ in more than spaces and small differences of numbers."""
    found = []
    for one, other in zip_longest(shown.splitlines(), printed.splitlines(), fillvalue="(no line)"):
        same_text = NUMBER.sub("N", one).split() == NUMBER.sub("N", other).split()
        numbers = zip(NUMBER.findall(one), NUMBER.findall(other), strict=False)
        if not same_text or not all(is_near(float(a), float(b)) for a, b in numbers):
            found.append(f"shown: {one}\nprinted: {other}")
    return found


def is_near(one: float, other: float) -> bool:
    """Return whether two numbers differ by no more than machines do."""
    allowed = MAX_DIFFERENCE if max(one, other) > 1 else MAX_DIFFERENCE_OF_SHARE
    return abs(one - other) <= allowed


def test_differences_are_found() -> None:
    assert differences("a: 72.0 bpm  (71–73)\n", "a: 72.4 bpm (71–74)\n") == []
    assert differences("a: 72.0 bpm\n", "a: 73.4 bpm\n")
    assert differences("a: 72.0 bpm\n", "a: no reading\n")
    assert differences("0.99,0.9\n", "0.98,0.91\n") == []
    assert differences("0.99,0.9\n", "0.99,0.1\n")
    assert differences("a\n", "a\nb\n")


@pytest.mark.slow
def test_the_session_is_what_the_commands_print(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")  # -o writes a plot
    page = PAGE.read_text(encoding="utf-8")
    assert page.count("\n$ ") >= 15
    assert differences(page, recorded(page, lambda command: output_of(command, tmp_path))) == []


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PAGE.write_text(
            recorded(PAGE.read_text(encoding="utf-8"), lambda command: output_of(command, Path(place))),
            encoding="utf-8",
        )
