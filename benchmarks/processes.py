"""Run a program in a new process and measure the CPU time, wall time and memory of it and its children."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PHASE = [sys.executable, "-m", "phase_rppg"]
_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process and its children used."""

    cpu_s: float
    wall_s: float
    peak_mb: float  # largest sum of proportional set sizes: shared pages count once
    output: str
    exit_code: int


def environment() -> dict[str, str]:
    """Return the environment of a measured process: one thread, compiled modules, these sources."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    compiled = Path(tempfile.gettempdir()) / "phase-benchmarks" / "compiled"
    return {
        **kept,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "PYTHONPYCACHEPREFIX": str(compiled),
    }


def run(command: Sequence[str | Path], *, memory: bool = False, accepted: Sequence[int] = (0, 3)) -> Usage:
    """Run a command and return its usage; `memory` also samples the memory, which costs some CPU time.

    Other exit codes than the accepted ones raise an error.
    """
    started_s = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([str(word) for word in command], stdout=out, stderr=err, env=environment())
        peaks = [0.0]
        sampler = threading.Thread(target=_sample_memory, args=(child.pid, peaks), daemon=True)
        if memory:
            sampler.start()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.monotonic() - started_s
        out.seek(0), err.seek(0)
        output, errors = out.read().decode(), err.read().decode()
    if child.returncode not in accepted:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {child.returncode}\n{errors}")
    return Usage(used.ru_utime + used.ru_stime, wall_s, max(peaks), output, child.returncode)


def run_script(script: str, *arguments: str | Path, memory: bool = False) -> Usage:
    """Run Python code in a new process."""
    return run([sys.executable, "-c", script, *arguments], memory=memory)


def _sample_memory(pid: int, peaks: list[float]) -> None:
    while total := sum(map(_proportional_mb, _process_tree(pid))):
        peaks.append(total)
        time.sleep(_POLL_S)


def _process_tree(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [each for word in task.read_text().split() for each in _process_tree(int(word))]
        except OSError:  # the process has ended
            continue
    return found


def _proportional_mb(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def machine() -> dict[str, Any]:
    """Return the facts of this machine and of the libraries that decide the speed."""
    names = ("numpy", "onnxruntime", "av")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in names},
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def commit() -> str:
    """Return the commit of the sources, with + if they were changed."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src")
    return git("rev-parse", "--short=10", "HEAD") + ("+" if changed else "")
