"""Measure other packages on the same clip, each in an environment that is removed afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

from . import clips, store
from .cases import network_step
from .processes import run
from .store import Benchmark, Figure, Round

_INSTALL_S = 900


@dataclass(frozen=True, slots=True)
class Peer:
    """Another package: what to install and the program that measures one video."""

    name: str
    package: str
    script: str
    network: str = ""  # a program that prints the CPU time of its network per frame as {"network ms": …}


# Frame by frame, as the package itself calls its default network.
_FACEPHYS = """
import json, time
import numpy as np
import rppg
model, found = rppg.Model(), []
crops = np.random.default_rng(0).integers(0, 256, (300, *model.input), dtype=np.uint8)
for _ in range(3):
    state, before = model.state, time.process_time()
    for crop in crops:
        output, state = model.call(crop, state)
        np.asarray(output["bvp"])
    found.append(1000 * (time.process_time() - before) / len(crops))
print(json.dumps({"network ms": min(found)}))
"""
PEERS = (
    Peer(
        "open-rppg",
        "open-rppg==0.1.1",
        "import sys, rppg\nprint(rppg.Model().process_video(sys.argv[1]))",
        _FACEPHYS,
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
                return {
                    "CPU s": used.cpu_s,
                    "wall s": used.wall_s,
                    "MB": used.peak_mb,
                    **_network(python, peer, folder),
                }

            text = f"{peer.package}, whole process, 60 s, 640×480"
            figures = (Figure("CPU s", "s", "CPU"), Figure("MB", "MB", "peak memory"))
            benchmark = Benchmark(f"peer_{peer.name}", text, measure, figures)
            try:
                store.record(benchmark, [measure(folder)])
            except SystemExit as error:
                print(
                    f"{peer.name}: skipped, it does not run ({str(error).splitlines()[-1]})", file=sys.stderr
                )


def _network(python: Path, peer: Peer, folder: Path) -> Round:
    """Return the CPU time per frame of the network of a peer, and how much faster ours is in the same run."""
    if not peer.network:
        return {}
    ours_ms = network_step(folder)["step of 1"]
    peer_ms = float(json.loads(run([python, "-c", peer.network]).output.splitlines()[-1])["network ms"])
    return {"network ms": peer_ms, "our network ms": ours_ms, "network ratio": peer_ms / ours_ms}


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
