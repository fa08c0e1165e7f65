"""How long a synthetic clip takes: CPU seconds for 6 s at 30 fps and 96 px, with and without a codec.

    python benchmarks/synth_speed.py [--case h264] [--repeats 3] [--json benchmarks/results/synth_speed.json]

Each measurement runs in a process of its own with one thread, and CPU time is what counts: for each clip the
least of the repeats, because other work on the machine only ever adds to it. Cases that are not measured now
keep their results in the JSON file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

# name → (settings held fast, allowed CPU seconds per clip)
CASES: dict[str, tuple[dict[str, object], float | None]] = {
    "raw": ({"codec.name": "raw", "camera.fps": 30.0}, 0.5),
    "h264": ({"codec.name": "h264", "codec.again": 0.0, "camera.fps": 30.0}, 1.0),
    "wild as it is": ({}, None),
}
_CHILD = """
import json, resource, sys
from phase_rppg.synth import load, sample
fixed, clips, seed, repeats = json.loads(sys.argv[1])
world = load("wild")
sample(world, seed, 10_000, seconds=1, size=96, fixed=fixed)
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def once(index):
    before = cpu()
    sample(world, seed, index, seconds=6, size=96, fixed=fixed)
    return cpu() - before
spent = [min(once(index) for _ in range(repeats)) for index in range(clips)]
print(json.dumps({"seconds": spent, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def measure(fixed: dict[str, object], clips: int, seed: int, repeats: int) -> dict[str, object]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
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
    parser.add_argument("--clips", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--case", action="append", choices=list(CASES), help="default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report: dict[str, object] = {}
    if arguments.json is not None and arguments.json.is_file():
        report = {name: old for name, old in json.loads(arguments.json.read_text()).items() if name in CASES}
    failed = False
    for name in arguments.case or CASES:
        fixed, allowed = CASES[name]
        result = measure(fixed, arguments.clips, arguments.seed, arguments.repeats)
        result["allowed_cpu_s"] = allowed
        failed |= allowed is not None and float(str(result["mean_cpu_s"])) > allowed
        report[name] = result
        print(name, json.dumps(result), flush=True)
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
