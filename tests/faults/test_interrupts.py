"""Ctrl-C once, Ctrl-C twice and kill -9 in every long command: what was finished stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from datasets import fake_layouts
from faults.table import Row, faults
from phase_rppg.types import ByteArray
from phase_rppg.video.encode import write_video

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
TIMEOUT_S = 240.0  # of one run on a busy machine; a run takes a few seconds
ORPHANS_S = 2.0  # a process whose parent was killed ends within this time


@dataclass(frozen=True)
class Inputs:
    """A folder of videos and a data set of two recordings."""

    videos: Path
    data: Path


@dataclass(frozen=True)
class Long:
    """A long command: its words, and the files that show that it works."""

    words: Callable[[Inputs, Path], list[str]]
    started: str = ""  # glob below the output folder; "" waits for a child process
    module: str = ""  # a package that the command needs
    again: tuple[str, ...] = ()  # words of the next run after kill -9
    ends: int = 0  # exit code of that run


COMMANDS = {
    "measure": Long(
        lambda given, out: ["measure", str(given.videos), "-o", str(out), "--workers", "1", "--model", "pos"],
        "*/result.json", "matplotlib", ("--resume",),
    ),
    "synth": Long(
        lambda given, out: ["synth", "--out", str(out), "--world", "studio", "--n", "20", "--seconds", "1",
                            "--size", "16", "--workers", "1"],
        ".*", "scipy",
    ),
    "prepare": Long(
        lambda given, out: ["prepare", "ubfc_rppg", str(given.data), "--out", str(out), "--size", "16",
                            "--workers", "0"],
        "*/.*",
    ),
    "evaluate": Long(
        lambda given, out: ["evaluate", "ubfc_rppg", str(given.data), "--model", "pos", "--window", "3",
                            "-o", str(out), "--workers", "0"],
    ),
    "audit": Long(
        lambda given, out: ["audit", "ubfc_rppg", str(given.data), "-o", str(out / "audit.html"),
                            "--workers", "0"],
    ),
    "explain": Long(
        lambda given, out: ["explain", str(given.videos / "0.mp4"), "-o", str(out / "mask.png")], "", "torch"
    ),
    "calibrate": Long(
        lambda given, out: ["calibrate", "--out", str(out), "--cache", str(out / "cache"), "--model", "pos",
                            "--world", "studio:2", "--seconds", "10", "--workers", "1"],
        "", "scipy", ends=2,  # it measures both films; four windows are too few to fit a calibration
    ),
    "train": Long(
        lambda given, out: ["train", "smoke", "--out", str(out), "--set", "optimise.epochs=1",
                            "--set", "data.train.0.count=4"],
        "clips/*", "torch", ("--resume",),
    ),
    "reproduce": Long(
        lambda given, out: ["reproduce", "ablation-depth", "--data", str(given.data), "--out", str(out),
                            "--budget", "smoke", "--workers", "0"],
        "cache/runs/*", "torch",
    ),
}  # fmt: skip
WRITE_PARTS = ("measure", "synth", "prepare", "calibrate", "train", "reproduce")  # the next run continues


@pytest.fixture(scope="module")
def inputs(pictures: list[ByteArray], tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    root = tmp_path_factory.mktemp("inputs")
    (root / "videos").mkdir()
    write_video(root / "videos" / "0.mp4", pictures[:255], 30, crf=14, preset="veryfast")
    for number in (1, 2):
        (root / "videos" / f"{number}.mp4").hardlink_to(root / "videos" / "0.mp4")
    fake_layouts.ubfc_rppg(root / "data", fake_layouts.people(2, seconds=4.2))
    return Inputs(root / "videos", root / "data")


def start(words: list[str]) -> subprocess.Popen[str]:
    def restore_interrupts() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, "-m", "phase_rppg", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        text=True, preexec_fn=restore_interrupts, start_new_session=True,
    )  # fmt: skip


def group(leader: int) -> list[int]:
    """Return the living processes of a process group."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):  # not a process, or one that has ended
            continue
        if fields[0] != "Z" and int(fields[2]) == leader:
            found.append(int(folder.name))
    return found


def wait_until(condition: Callable[[], Any], timeout_s: float) -> bool:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.02)
    return True


def start_and_wait(name: str, inputs: Inputs, out: Path) -> subprocess.Popen[str]:
    """Start a command and wait until it works."""
    command = COMMANDS[name]
    if command.module:
        pytest.importorskip(command.module)
    process = start(command.words(inputs, out))

    def works() -> bool:
        assert process.poll() is None, "the command ended before the signal"
        found = next(out.glob(command.started), None) if command.started else None
        return found is not None or (not command.started and len(group(process.pid)) > 1)

    assert wait_until(works, TIMEOUT_S)
    return process


@faults(
    *(Row(f"Ctrl-C in `phase {name}`", "one line, no traceback", 130, "what was finished", case=(name, 1))
      for name in COMMANDS),
    *(Row(f"Ctrl-C twice in `phase {name}`", "one line, no traceback", 130, "what was finished",
          case=(name, 2)) for name in COMMANDS),
)  # fmt: skip
def test_an_interrupt_is_one_line(row: Row, inputs: Inputs, tmp_path: Path) -> None:
    name, times = row.case
    process = start_and_wait(name, inputs, tmp_path)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == row.exit_code, err
    assert "Traceback" not in err
    last_line = err.splitlines()[-1]
    assert last_line == "interrupted" or last_line.startswith("error: stopped at step")
    assert wait_until(lambda: not group(process.pid), ORPHANS_S)


def leftovers(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob(".*"))


@faults(
    *(Row(f"kill -9 in `phase {name}`", "all its processes end within 2 s; the same command continues", -9,
          "what was finished; the next run removes the rest", case=name) for name in WRITE_PARTS),
    *(Row(f"kill -9 in `phase {name}`", "all its processes end within 2 s; the same command starts again", -9,
          "the next run removes the rest", case=name) for name in COMMANDS if name not in WRITE_PARTS),
)  # fmt: skip
def test_a_killed_command_continues(row: Row, inputs: Inputs, tmp_path: Path) -> None:
    name = row.case
    process = start_and_wait(name, inputs, tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == row.exit_code
    assert wait_until(lambda: not group(process.pid), ORPHANS_S)
    done = start([*COMMANDS[name].words(inputs, tmp_path), *COMMANDS[name].again])
    _, err = done.communicate(timeout=TIMEOUT_S)
    assert done.returncode == COMMANDS[name].ends, err
    assert "Traceback" not in err
    assert leftovers(tmp_path) == []
