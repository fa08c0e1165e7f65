"""Store the output of the commands, and compare it after a change.

    python benchmarks/readings.py --work DIR --out before.json [--real ROOT]
    python benchmarks/readings.py --work DIR --out after.json [--real ROOT] --compare before.json

Measures the demo clip, two recordings of every world and, with --real, every video below ROOT, each with the
network, POS and CHROM (`phase measure --json --ungated`). Trains the smoke recipe and stores its losses. The
recordings are kept in --work, so that both runs read the same files. With --compare it lists every number
that differs and exits with 1 if there is one.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METHODS = ("phasenet-stream", "pos", "chrom")
SUFFIXES = (".mp4", ".avi")
PHASE = [sys.executable, "-c", "from phase_rppg.cli import main; main()"]


def phase(*arguments: str | Path, cwd: Path) -> str:
    """Return the output of a `phase` command; exit codes 0 (reading) and 3 (no reading) are accepted."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "300"}
    done = subprocess.run(
        [*PHASE, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=environment
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"phase {' '.join(map(str, arguments))}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def make_films(work: Path) -> list[Path]:
    """Generate the demo clip and two recordings of every world, once."""
    if not (work / "demo.mp4").exists():
        phase("demo", "--out", work / "demo.mp4", cwd=work)
    worlds = [line.split()[0] for line in phase("synth", "--list", cwd=work).splitlines() if line.strip()]
    for world in worlds:
        if not (folder := work / world).exists():
            phase(
                "synth",
                "--out",
                folder,
                "--as",
                "video",
                "--world",
                world,
                "--n",
                "2",
                "--seconds",
                "14",
                cwd=work,
            )
    return sorted(path for path in work.rglob("*") if path.suffix in SUFFIXES)


def readings(videos: list[Path], root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for video in videos:
        for method in METHODS:
            text = phase("measure", video, "--model", method, "--json", "--ungated", "--quiet", cwd=root)
            document = json.loads(text)
            document.pop("video")
            found[f"{video.relative_to(root)} {method}"] = document
            print(f"{video.relative_to(root)} {method}", file=sys.stderr)
    return found


def smoke_losses(work: Path) -> list[dict[str, str]]:
    run = work / f"run-{os.getpid()}"
    phase("train", "smoke", "--out", run, "--set", "optimise.epochs=4", "--quiet", cwd=work)
    with open(run / "log.csv", newline="") as file:
        timed = ("seconds", "clips_per_s", "elapsed_s", "time_s")
        return [{k: v for k, v in row.items() if k not in timed} for row in csv.DictReader(file)]


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """Yield every difference between two JSON values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key), new.get(key), f"{where}/{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, f"{where}/{index}")
    elif old != new:
        yield f"{where}: {old} -> {new}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--compare", type=Path)
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    stored: dict[str, Any] = {"films": readings(make_films(work), work)}
    if options.real:
        videos = sorted(path for path in options.real.resolve().rglob("*") if path.suffix in SUFFIXES)
        stored["real"] = readings(videos, options.real.resolve())
    stored["smoke"] = smoke_losses(work)
    options.out.write_text(json.dumps(stored, indent=1) + "\n")
    if options.compare:
        found = list(differences(json.loads(options.compare.read_text()), stored))
        print("\n".join(found[:200]) or "equal to the last digit")
        raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
