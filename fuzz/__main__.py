"""Fuzz the parsers and record counts as JSON.

    python -m fuzz [TARGET …] [--seconds 10] [--jobs 1] [--seed 1] [--findings DIR] [--out FILE] [--resume]

The time of a target is split into parts of at most five minutes. The counts are written after every part.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from phase_rppg.fileio import write_json

from .run_target import SLOW_S
from .targets import SEEDS, TARGETS, seeds

EXTRA_S = 120.0  # for the start, and for the last input
PART_S = 300.0
KEY = "parsers"  # of the file of results, which other programs share
LOCK = threading.Lock()


def fuzz(name: str, seconds: float, seed: int, findings: Path) -> dict[str, Any]:
    """Fuzz one target in its own process and return the counts."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [name, str(seconds), str(seed), str(findings), str(report)]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "fuzz.run_target", *words],
                capture_output=True, text=True, errors="replace", check=False, timeout=seconds + EXTRA_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"findings": {"hang": "the process was stopped"}}
        result: dict[str, Any] = json.loads(report.read_text()) if report.exists() else {"findings": {}}
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "ERROR" in line or "Error" in line]
        result["findings"][f"exit code {done.returncode}"] = (lines or ["no message"])[-1][:200]
    if coverage := re.findall(r"cov: (\d+)", done.stderr):
        result["coverage_edges"] = int(coverage[-1])
    return result


def add(total: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of both parts together."""
    out = {**total, **part}
    for key in ("seconds", "runs"):
        out[key] = round(total.get(key, 0) + part.get(key, 0), 1)
    for key in ("slowest_s", "memory_mb", "coverage_edges"):
        if key in out:
            out[key] = max(total.get(key, 0), part.get(key, 0))
    return out | {"findings": total.get("findings", {}) | part["findings"]}


def settle(name: str, total: dict[str, Any]) -> dict[str, Any]:
    """Move the findings of an earlier run whose inputs are seeds now, and pass, to "settled"."""
    known = {f"{name}-{hashlib.sha256(data).hexdigest()[:12]}": data for data in seeds(name)}
    findings, settled = dict(total["findings"]), dict(total.get("settled", {}))
    for place, file in total["findings"].items():
        if file not in known:
            continue
        started_s = time.monotonic()
        with contextlib.suppress(Exception):  # it fails as before
            TARGETS[name](known[file])
            if time.monotonic() - started_s < SLOW_S:
                settled[place] = findings.pop(place)
    return {**total, "findings": findings, "settled": settled}


def read_results(path: Path | None) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}


def record(path: Path, name: str, command: str, result: dict[str, Any]) -> None:
    """Write the counts of one target; other content of the file stays."""
    with LOCK:
        values = read_results(path)
        targets = values.get(KEY, {}).get("targets", {}) | {name: result}
        values[KEY] = {"command": command, "targets": dict(sorted(targets.items()))}
        write_json(path, values)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description="Fuzz the parsers of phase-rppg.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at the same time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--findings", type=Path, default=Path("fuzz-findings"), help="folder for inputs that fail"
    )
    parser.add_argument("--out", type=Path, help="JSON file for the counts")
    parser.add_argument("--resume", action="store_true", help="continue the run that --out records")
    given = parser.parse_args()
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"unknown target {', '.join(sorted(unknown))}; choices: {', '.join(TARGETS)}")
    command = f"python -m fuzz --seconds {given.seconds:g} --seed {given.seed}"
    earlier = read_results(given.out).get(KEY, {}).get("targets", {}) if given.resume else {}

    def run(name: str) -> dict[str, Any]:
        total, part = settle(name, earlier.get(name, {"findings": {}})), 0
        while (left_s := given.seconds - total.get("seconds", 0)) > 0.5 and not total["findings"]:
            seconds = min(PART_S, max(left_s, 1.0))
            seed = given.seed + part + int(total.get("seconds", 0))  # another part, another sequence
            total, part = add(total, fuzz(name, seconds, seed, given.findings)), part + 1
            save(name, total)
        save(name, total)
        return total

    def save(name: str, total: dict[str, Any]) -> None:
        total["regression_seeds"] = sorted(file.name for file in (SEEDS / name).glob("*"))
        if given.out is not None:
            record(given.out, name, command, total)
        print(name, json.dumps(total), flush=True)

    with ThreadPoolExecutor(given.jobs) as pool:
        results = list(pool.map(run, given.targets or list(TARGETS)))
    return 1 if any(result["findings"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
