"""Ctrl-C gives exit code 130 and no traceback, once or twice; children end with a killed parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from phase_rppg import cli

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
# Runs a command whose cleanup takes a while, as the end of a worker pool does.
SLOW_CLEANUP = """
import sys, time
from phase_rppg import cli
def run(argv):
    try:
        print("ready", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        for _ in range({steps}):
            time.sleep(0.01)
        print("cleaned", flush=True)
        return 130
cli.run = run
cli.main([])
"""


def start(*command: str) -> subprocess.Popen[str]:
    """Start a Python process that receives Ctrl-C, also if the tests run in the background of a shell."""

    def restore_interrupts() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    return subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=restore_interrupts,
    )


def wait_for_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_interrupt_does_not_break_the_cleanup() -> None:
    process = start("-c", SLOW_CLEANUP.format(steps=50))
    assert wait_for_line(process) == "ready"
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    assert (process.returncode, out, err) == (130, "cleaned\n", "")


def test_a_later_interrupt_ends_a_cleanup_that_hangs() -> None:
    process = start("-c", SLOW_CLEANUP.format(steps=6000))
    assert wait_for_line(process) == "ready"
    process.send_signal(signal.SIGINT)
    time.sleep(cli._PATIENCE_S + 0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=5)
    assert (process.returncode, out, err) == (130, "", "")


def test_an_interrupt_while_the_interpreter_ends_is_ignored() -> None:
    script = (
        "import atexit, os, signal\n"
        "from phase_rppg import cli\n"
        "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "cli.main(['--version'])\n"
    )
    process = start("-c", script)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert out.startswith("phase-rppg")
    assert err == ""


def test_an_ignored_interrupt_stays_ignored() -> None:
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from phase_rppg import cli\n"
        "cli.run = lambda argv: os.kill(os.getpid(), signal.SIGINT) or 7\n"
        "cli.main([])\n"
    )
    process = start("-c", script)
    process.communicate(timeout=20)
    assert process.returncode == 7


@linux
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupted_batch_exits_with_130(film: Callable[[str], Path], tmp_path: Path, times: int) -> None:
    for number in range(8):
        (tmp_path / f"{number}.mp4").symlink_to(film("face"))
    process = start("-m", "phase_rppg", "measure", str(tmp_path), "--workers", "2", "--json")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline_s = time.monotonic() + 30
    while len(children.read_text().split()) < 3 and time.monotonic() < deadline_s:
        time.sleep(0.05)  # the resource tracker of multiprocessing, and two workers
    time.sleep(1.0)
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err == "interrupted\n"
    assert out == ""


@linux
def test_a_decoder_that_is_busy_ends_within_two_seconds_of_a_killed_parent(tmp_path: Path) -> None:
    """The decoder waits for a pipe that nobody writes, as it would in a long call of its library."""
    os.mkfifo(tmp_path / "endless.mp4")
    script = (
        "import sys\n"
        "from phase_rppg.video.guard import GuardedDecoder\n"
        "decoder = GuardedDecoder('x', {'video': sys.argv[1]})\n"
        "print(decoder._child.pid, flush=True)\n"
        "decoder.facts()\n"
    )
    parent = start("-c", script, str(tmp_path / "endless.mp4"))
    child = Path(f"/proc/{int(wait_for_line(parent))}")
    time.sleep(1.0)  # the decoder has opened the pipe
    assert is_running(child)
    parent.kill()
    parent.communicate()
    deadline_s = time.monotonic() + 2
    while is_running(child) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not is_running(child)


def is_running(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


INTERRUPTED_IMPORT = """
import importlib.abc, sys
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "phase_rppg.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from phase_rppg.__main__ import main
main()
"""


def test_ctrl_c_while_modules_are_imported_prints_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
