"""Run the attacks, one process each, and print a table; the exit code is 1 if one succeeds."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from phase_rppg import guarded

from . import ATTACKS

MAX_S, MAX_MB = 120.0, 1024.0


def run_one(name: str) -> None:
    """Run one attack in this process; print the largest memory in MB and the refusal."""
    with tempfile.TemporaryDirectory() as folder:
        message = ATTACKS[name](Path(folder))
    guarded.close()
    used = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{max(used) / 1024:.0f}\t{message.replace(folder, '…')}")


def run_all() -> int:
    failed = 0
    for name in ATTACKS:
        started_s = time.perf_counter()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "attacks", name],
                capture_output=True, text=True, check=False, timeout=MAX_S,
            )  # fmt: skip
            memory, _, message = done.stdout.strip().partition("\t")
            stopped = done.returncode == 0 and float(memory) <= MAX_MB
            message = message if stopped else (done.stdout + done.stderr).strip().splitlines()[-1]
        except subprocess.TimeoutExpired:
            stopped, memory, message = False, "?", f"still running after {MAX_S:g} s"
        failed += not stopped
        verdict = "refused  " if stopped else "SUCCEEDED"
        print(f"{verdict} {name:22} {time.perf_counter() - started_s:5.1f} s {memory:>5} MB  {message[:120]}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_one(sys.argv[1])
    else:
        sys.exit(run_all())
