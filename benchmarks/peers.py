"""Measure other packages on the same clip, each in an environment that is removed afterwards."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from . import clips, store
from .processes import run
from .store import Benchmark, Figure, Round

_INSTALL_S = 900


@dataclass(frozen=True, slots=True)
class Peer:
    """Another package: what to install and the program that measures one video."""

    name: str
    package: str
    script: str


PEERS = (
    Peer(
        "open-rppg",
        "open-rppg==0.1.1",
        "import sys, rppg\nprint(rppg.Model().process_video(sys.argv[1]))",
    ),
    Peer(
        "vitallens-pos",
        "vitallens==0.6.2",
        "import sys\nfrom vitallens import Method, VitalLens\n"
        "print(VitalLens(method=Method.POS, export_to_json=False)(sys.argv[1]))",
    ),
)


def run_all(folder: Path) -> None:
    """Measure every peer that can be installed; say which ones cannot."""
    video = clips.clip(folder, 60)
    for peer in PEERS:
        with tempfile.TemporaryDirectory() as temporary:
            python = install(peer, Path(temporary) / "environment")
            if python is None:
                continue

            def measure(_: Path, python: Path = python, peer: Peer = peer) -> Round:
                used = run([python, "-c", peer.script, video], memory=True)
                return {"CPU s": used.cpu_s, "wall s": used.wall_s, "MB": used.peak_mb}

            text = f"{peer.package}, whole process, 60 s, 640×480"
            figures = (Figure("CPU s", "s", "CPU"), Figure("MB", "MB", "peak memory"))
            benchmark = Benchmark(f"peer_{peer.name}", text, measure, figures)
            try:
                store.record(benchmark, [measure(folder)])
            except SystemExit as error:
                print(
                    f"{peer.name}: skipped, it does not run ({str(error).splitlines()[-1]})", file=sys.stderr
                )


def install(peer: Peer, folder: Path) -> Path | None:
    """Install a peer into a new environment; return its Python, or None after a message."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    try:
        done = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", peer.package],
            capture_output=True, text=True, timeout=_INSTALL_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        print(f"{peer.name}: skipped, installing it took more than {_INSTALL_S} s", file=sys.stderr)
        return None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"{peer.name}: skipped, it cannot be installed ({reason})", file=sys.stderr)
        return None
    return python
