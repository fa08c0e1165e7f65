"""Commands, folders and checks that the tests of crafted files share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from attacks import crafted_files as crafted

from phase_rppg.datasets import base


def phase(*words: object, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
    """Run a command line; it fails the test if it takes too long or prints a traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "phase_rppg", *map(str, words)],
        capture_output=True, text=True, check=False, timeout=timeout_s,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


def is_refused(done: subprocess.CompletedProcess[str], code: int = 4) -> bool:
    return done.returncode == code and done.stderr.strip().count("\n") == 0 and "error: " in done.stderr


def found(path: Path) -> base.Found:
    return base.Found("s", "s", path, path)


def recording_folder(root: Path, video: str = "v.mp4", reference: str = "v.csv") -> Path:
    root.mkdir(exist_ok=True)
    (root / "manifest.csv").write_text(f"video,reference,subject\n{video},{reference},a\n")
    (root / "v.mp4").write_bytes(b"x")
    (root / "v.csv").write_text(crafted.TABLE)
    return root


def peak_mb(script: str, *words: object) -> tuple[int, str]:
    """Run a Python script; return the largest memory of it and of its children in MB, and its output."""
    tail = (
        "\nfrom phase_rppg import guarded; guarded.close()"
        "\nimport resource as r"
        "\nprint(max(r.getrusage(w).ru_maxrss for w in (r.RUSAGE_SELF, r.RUSAGE_CHILDREN)) // 1024)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script + tail, *map(str, words)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    *text, peak = done.stdout.split("\n")[:-1]
    return int(peak), "\n".join(text)
