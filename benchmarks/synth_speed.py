"""Measure the CPU time of a training clip of 6 s at 30 fps and 64 px, with and without a codec.

    python benchmarks/synth_speed.py [--case h264] [--repeats 3] [--json benchmarks/results/synth_speed.json]
    python benchmarks/synth_speed.py --former OTHER/src

Each measurement runs in its own process with one thread. The figure for each clip is the smallest CPU time of
the repeats, because other programs only add to it. Cases that are not measured keep their results in the JSON
file. `half` is the number of clips per CPU-second if half of them pass a codec. `--former` measures the
sources of an earlier version in the same run; `ratio` is their CPU time over the present one.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

# name → (fixed settings, allowed CPU seconds per clip)
CASES: dict[str, tuple[dict[str, object], float | None]] = {
    "raw": ({"codec.name": "raw", "camera.fps": 30.0}, 0.15),
    "h264": ({"codec.name": "h264", "codec.again": 0.0, "camera.fps": 30.0}, 0.4),
    "wild as it is": ({}, None),
}
WANTED = 4.0
_CHILD = """
import json, resource, sys
from phase_rppg.synth import load, sample
fixed, clips, seed, repeats = json.loads(sys.argv[1])
world = load("wild")
sample(world, seed, 10_000, seconds=1, size=64, fixed=fixed)
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def once(index):
    before = cpu()
    sample(world, seed, index, seconds=6, size=64, fixed=fixed)
    return cpu() - before
spent = [min(once(index) for _ in range(repeats)) for index in range(clips)]
print(json.dumps({"seconds": spent, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def measure(
    fixed: dict[str, object], clips: int, seed: int, repeats: int, sources: Path | None = None
) -> dict[str, Any]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if sources is not None:
        environment["PYTHONPATH"] = str(sources)
    command = [sys.executable, "-c", _CHILD, json.dumps([fixed, clips, seed, repeats])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    spent = sorted(result["seconds"])
    return {
        "clips": clips,
        "repeats": repeats,
        "mean_cpu_s": round(sum(spent) / clips, 3),
        "median_cpu_s": round(spent[clips // 2], 3),
        "max_cpu_s": round(spent[-1], 3),
        "peak_mb": round(result["peak_mb"]),
        "machine": platform.processor() or platform.machine(),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--former", type=Path, help="folder with the package of an earlier version")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report: dict[str, Any] = {}
    if arguments.json is not None and arguments.json.is_file():
        report = {name: old for name, old in json.loads(arguments.json.read_text()).items() if name in CASES}
    failed = False
    for name in arguments.case or CASES:
        fixed, allowed = CASES[name]
        result = measure(fixed, arguments.clips, arguments.seed, arguments.repeats)
        result["allowed_cpu_s"] = allowed
        if arguments.former is not None:
            former = measure(fixed, arguments.clips, arguments.seed, arguments.repeats, arguments.former)
            result["former_mean_cpu_s"] = former["mean_cpu_s"]
            result["ratio"] = round(former["mean_cpu_s"] / result["mean_cpu_s"], 2)
        failed |= allowed is not None and result["mean_cpu_s"] > allowed
        report[name] = result
        print(name, json.dumps(result), flush=True)
    if {"raw", "h264"} <= set(report):
        spent = sum(report[name]["mean_cpu_s"] for name in ("raw", "h264"))
        report["half"] = {"clips_per_cpu_s": round(2 / spent, 2), "wanted_clips_per_cpu_s": WANTED}
        if all("former_mean_cpu_s" in report[name] for name in ("raw", "h264")):
            former_spent = sum(report[name]["former_mean_cpu_s"] for name in ("raw", "h264"))
            report["half"]["former_clips_per_cpu_s"] = round(2 / former_spent, 2)
            report["half"]["ratio"] = round(former_spent / spent, 2)
        failed |= 2 / spent < WANTED
        print("half", json.dumps(report["half"]))
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
