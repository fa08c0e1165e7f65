"""Train on two nodes: two network namespaces on this machine, joined by a virtual cable.

    sudo python benchmarks/torchrun_nodes.py --out benchmarks/results/torchrun_nodes.json

Each namespace has its own interfaces and addresses, as two machines have; the processes share no loopback
interface. torchrun starts one process in each, and they meet at the address of the first. The weights after
training must be those of one process with the doubled batch. It needs Linux, root and `ip`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NODES = {"phase-node-0": "10.231.77.1", "phase-node-1": "10.231.77.2"}
CABLES = ("phase0", "phase1")
PORT = 29_571


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def connect() -> None:
    """Make the namespaces and the cable between them."""
    ip("link", "add", CABLES[0], "type", "veth", "peer", "name", CABLES[1])
    for (name, address), cable in zip(NODES.items(), CABLES, strict=True):
        ip("netns", "add", name)
        ip("link", "set", cable, "netns", name)
        ip("-n", name, "addr", "add", f"{address}/24", "dev", cable)
        ip("-n", name, "link", "set", cable, "up")
        ip("-n", name, "link", "set", "lo", "up")


def disconnect() -> None:
    for name in NODES:
        subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["ip", "link", "del", CABLES[0]], check=False, stderr=subprocess.DEVNULL)


def train_words(out: Path, batch: int) -> list[str]:
    # Batch norm sees two clips at once, in one process and in two.
    settings = ["optimise.epochs=2", f"optimise.batch={batch}", "optimise.micro=2"]
    words = ["train", "smoke", "--out", str(out), "--cache", str(out.parent / "clips"), "--device", "cpu"]
    return [*words, "--quiet", *(word for each in settings for word in ("--set", each))]


def run_nodes(out: Path) -> list[int]:
    """Start torchrun in both namespaces and return the exit codes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    started = []
    for rank, (name, cable) in enumerate(zip(NODES, CABLES, strict=True)):
        torchrun = [
            sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(rank),
            "--nproc-per-node", "1", "--master-addr", NODES["phase-node-0"], "--master-port", str(PORT),
            "--no-python", sys.executable, "-m", "phase_rppg",
        ]  # fmt: skip
        words = ["ip", "netns", "exec", name, *torchrun, *train_words(out, 4)]
        started.append(subprocess.Popen(words, env=environment | {"GLOO_SOCKET_IFNAME": cable}))
    return [process.wait(timeout=500) for process in started]


def relative_difference(first: Path, second: Path) -> float:
    """Return how far the trained weights are apart, relative to how far training moved them."""
    sys.path.insert(0, str(ROOT / "src"))
    import torch

    from phase_rppg import nn
    from phase_rppg.train.checkpoint import load_checkpoint
    from phase_rppg.train.recipe import load_stages

    recipe = load_stages("smoke")[0].recipe
    torch.manual_seed(recipe.seed)
    begin = nn.build(**recipe.network).state_dict()
    ends = [load_checkpoint(folder / "last.safetensors").weights for folder in (first, second)]
    names = [name for name, value in begin.items() if value.is_floating_point() and name in ends[0]]
    flat = [torch.cat([each[name].double().flatten() for name in names]) for each in (begin, *ends)]
    moved = (flat[1] - flat[0]).norm()
    print(f"{len(flat[0])} weights, changed by {moved:.3g} of {flat[0].norm():.3g}")
    return float((flat[1] - flat[2]).norm() / moved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if shutil.which("ip") is None or os.geteuid() != 0:
        raise SystemExit("this needs root and the program ip")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="phase-nodes-") as name:
        folder = Path(name)
        alone = [sys.executable, "-m", "phase_rppg", *train_words(folder / "one", 4)]
        subprocess.run(alone, env=environment, check=True)
        try:
            connect()
            codes = run_nodes(folder / "two")
        finally:
            disconnect()
        difference = relative_difference(folder / "one", folder / "two")
    made: dict[str, Any] = {
        "command": "python benchmarks/torchrun_nodes.py",
        "nodes": list(NODES.values()),
        "exit_codes": codes,
        "difference_of_weights_relative_to_their_change": difference,
        "passed": codes == [0, 0] and difference < 0.01,
    }
    text = json.dumps(made, indent=1) + "\n"
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    if not made["passed"]:
        raise SystemExit("the nodes did not give the weights of one process")


if __name__ == "__main__":
    main()
