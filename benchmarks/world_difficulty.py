"""Measure the difficulty of each world: the share of clips in which POS is within 5 bpm of the truth.

    python benchmarks/world_difficulty.py [--world wild --world studio …] [--n 24] [--json OUT]
    python benchmarks/world_difficulty.py --clips DIR [--n 1000] [--json OUT]

Training data should be neither too hard nor too easy: the aim for `wild` is 40–75 %. POS runs on the mean
colour of the middle of the crop (rows 19–81 %, columns 25–75 %), because the whole crop contains much
background. The truth is the mean of the instantaneous rate. --clips reads clips of `phase synth --as clips`;
otherwise clips are generated. Worlds without a pulse have no true rate and are left out. Results in OUT of
worlds that are not measured are kept.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg import registry
from phase_rppg.fileio import read_json, write_json
from phase_rppg.signal.rate import spectral_bpm
from phase_rppg.synth import ClipJob, Clips
from phase_rppg.types import RgbTrace

WORLDS = ("studio", "motion", "lux", "phone", "webcam", "wild")
AIM = {"webcam": (0.40, 0.75), "wild": (0.40, 0.75)}
CLOSE_BPM = 5.0
SECONDS, SIZE = 10.0, 64
MIDDLE_ROWS, MIDDLE_COLUMNS = (0.19, 0.81), (0.25, 0.75)  # part of the crop that is mostly skin
BY = ("codec", "motion", "light", "skin")

Clip = tuple[np.ndarray, np.ndarray, float, Mapping[str, Any]]  # colours (T,3), bpm (T,), fps, conditions


def colours(pixels: np.ndarray) -> np.ndarray:
    """Return the mean colour (T,3) of the middle of the crop."""
    size = pixels.shape[1]
    (top, bottom), (left, right) = (
        (round(part * size) for part in span) for span in (MIDDLE_ROWS, MIDDLE_COLUMNS)
    )
    return pixels[:, top:bottom, left:right].mean((1, 2))


def stored(folder: Path, n: int) -> Iterator[Clip]:
    """Yield stored clips."""
    clips = Clips(folder)
    for index in range(min(n, len(clips))):
        pixels, _, fps, meta = clips.clip(index)
        yield colours(pixels), clips.bpm(index), fps, meta


def made(world: str, n: int) -> Iterator[Clip]:
    """Generate clips of a world."""
    job = ClipJob(world, SECONDS, SIZE, seed=1)
    for index in range(n):
        one = job.make(index)
        yield colours(one.pixels), one.truth.bpm, one.truth.fps, one.truth.conditions


def measure(clips: Iterator[Clip]) -> dict[str, Any]:
    """Return the share of clips within 5 bpm, in total and by condition."""
    pos = registry.load("methods", "pos")
    errors: list[float] = []
    groups: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in BY}
    for trace_rgb, bpm, fps, conditions in clips:
        trace = RgbTrace(trace_rgb, fps, 0.0, np.ones(len(trace_rgb), bool))
        error = abs(spectral_bpm(pos.extract(trace)) - float(bpm.mean()))
        errors.append(error)
        for name in BY:
            groups[name][str(conditions[name])].append(error)
    return {
        "clips": len(errors),
        "pos_within_5_bpm": share(errors),
        "pos_median_error_bpm": round(float(np.median(errors)), 2),
        "by": {
            name: {
                kind: {"clips": len(found), "pos_within_5_bpm": share(found)}
                for kind, found in sorted(kinds.items())
            }
            for name, kinds in groups.items()
        },
    }


def share(errors: list[float]) -> float:
    return round(float(np.mean(np.array(errors) <= CLOSE_BPM)), 3)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--world", action="append", choices=WORLDS, help="default: all with a pulse")
    parser.add_argument("--clips", type=Path, help="read this folder of clips instead of generating clips")
    parser.add_argument("--n", type=int, default=24, help="clips of each world")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    report: dict[str, Any] = {}
    if arguments.json is not None and arguments.json.is_file():
        report = read_json(arguments.json)
    if arguments.clips is not None:
        job = Clips(arguments.clips).job
        todo = {str(job["world"]): stored(arguments.clips, arguments.n)}
        seed = job["seed"]
    else:
        todo = {world: made(world, arguments.n) for world in arguments.world or WORLDS}
        seed = 1
    failed = False
    for world, clips in todo.items():
        result = {"seed": seed, "seconds": SECONDS, **measure(clips)}
        if aim := AIM.get(world):
            result["aim"] = list(aim)
            failed |= not aim[0] <= result["pos_within_5_bpm"] <= aim[1]
        report[world] = result
        print(f"{world:8} {result['clips']:5} clips, POS within 5 bpm in {result['pos_within_5_bpm']:.0%}")
    if arguments.json is not None:
        write_json(arguments.json, report)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
