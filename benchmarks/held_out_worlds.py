"""Measure the error of a method in worlds that were not trained on, by world and by skin type.

    python benchmarks/held_out_worlds.py [--model phasenet-stream] [--n 16] [--cache DIR] [--out FILE]

Recordings of `studio`, `motion`, `lux` and `phone` are generated with a seed that neither training nor
calibration used. Further recordings are generated six times each, with skin types I to VI and everything else
equal. Errors are those of 10 s windows against the true mean rate, for all windows and for those that the
gate shows. The ratio of the worst to the best skin type has a bootstrap interval over recordings. Every lost
recording is listed. With `--cache` an interrupted run resumes.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from phase_rppg import synth
from phase_rppg.evaluate.films import FilmSpec
from phase_rppg.evaluate.fit_calibration import ObservedWindow
from phase_rppg.evaluate.world_windows import observe, replay
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.synth.codec import CodecSpec
from phase_rppg.synth.sample import random_stream
from phase_rppg.types import Estimate, FloatArray, Reading
from phase_rppg.workers import map_in_order

WORLDS = ("studio", "motion", "lux", "phone")
SKINS = (1, 2, 3, 4, 5, 6)
LOST_BPM = 5.0  # a recording with a larger mean error is lost


@dataclass(frozen=True)
class Job:
    """One recording to generate and measure."""

    world: str
    index: int
    skin: int | None  # None: drawn by the world
    method: str
    seconds: float
    seed: int
    cache: Path | None


def evaluate(job: Job) -> list[dict[str, Any]]:
    """Return the error of every window of one recording, and whether the gate shows it."""
    config = MeasureOptions(job.method, faces="largest", gated=False).config()
    settings = (("subject.fitzpatrick", job.skin),) if job.skin else ()
    spec = FilmSpec(job.world, job.seed, job.index, job.seconds, settings)
    found = observe(spec, {"it": config}, cache=job.cache)["it"]
    return [judge(o, reading) for o, reading in zip(found, replay(found, job.method), strict=True)]


def codec(job: Job) -> str:
    """Return the codec of the recording."""
    world = synth.load(job.world)
    return str(world.draw(CodecSpec, random_stream(world, job.seed, job.index, "codec"), None).name)


def judge(o: ObservedWindow, reading: Reading) -> dict[str, Any]:
    truth = float(o.truth_bpm or np.nan)
    return {
        "error_bpm": abs(o.peak.bpm - truth),
        "shown": isinstance(reading, Estimate),
        "inside": isinstance(reading, Estimate) and reading.low <= truth <= reading.high,
    }


def mean_error(recording: list[dict[str, Any]]) -> float:
    """Return the mean error of one recording; nan without a window."""
    return float(np.mean([w["error_bpm"] for w in recording])) if recording else float("nan")


def summary(recordings: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Average errors over recordings, and figures of the gate over all windows."""
    found = [windows for windows in recordings if windows]
    windows = [w for recording in found for w in recording]
    shown = [w for w in windows if w["shown"]]
    return {
        "recordings": len(recordings),
        "without_a_window": len(recordings) - len(found),
        "windows": len(windows),
        "mae_bpm": round(float(np.mean([mean_error(r) for r in found])), 3),
        "within_5": round(float(np.mean([w["error_bpm"] <= 5 for w in windows])), 4),
        "coverage": round(len(shown) / max(len(windows), 1), 4),
        "mae_bpm_of_shown": round(float(np.mean([w["error_bpm"] for w in shown])), 3) if shown else None,
        "interval_holds_truth": round(float(np.mean([w["inside"] for w in shown])), 4) if shown else None,
    }


def worst_over_best(by_skin: dict[str, dict[str, Any]], key: str) -> float | None:
    """Return the largest error of a skin type over the smallest; None if one is unknown."""
    errors = [row[key] for row in by_skin.values()]
    return None if None in errors else round(max(errors) / max(min(errors), 1e-9), 3)


def interval(errors: FloatArray, draws: int = 5000) -> list[float]:
    """Return the 95 % bootstrap interval of worst over best type from errors (skin, recording)."""
    picks = np.random.default_rng(0).integers(errors.shape[1], size=(draws, errors.shape[1]))
    of_types = np.nanmean(errors[:, picks], axis=2)  # (skin, draw)
    ratios = of_types.max(0) / of_types.min(0)
    return [round(float(q), 3) for q in np.quantile(ratios, [0.025, 0.975])]


def lost(job: Job, recording: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the entry of a recording with a large error."""
    return {
        "world": job.world,
        "index": job.index,
        "skin": job.skin,
        "codec": codec(job),
        "mae_bpm": round(mean_error(recording), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", dest="method", default="phasenet-stream")
    parser.add_argument("--n", type=int, default=16, help="recordings of each world")
    parser.add_argument(
        "--skin-n", type=int, default=8, help="recordings of each world for the comparison of skin types"
    )
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=31415)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if min(options.n, options.skin_n) < 1:
        parser.error("--n and --skin-n: at least 1")

    common = (options.method, options.seconds, options.seed, options.cache)
    worlds = {w: [Job(w, i, None, *common) for i in range(options.n)] for w in WORLDS}
    skins = {
        f"{w}/{s}": [Job(w, 1000 + i, s, *common) for i in range(options.skin_n)]
        for s in SKINS
        for w in WORLDS
    }
    jobs = [job for group in (worlds | skins).values() for job in group]
    done = iter(list(track(map_in_order(evaluate, jobs, options.workers), "measuring", total=len(jobs))))
    results = {name: [next(done) for _ in group] for name, group in (worlds | skins).items()}
    errors = np.array(
        [[mean_error(r) for w in WORLDS for r in results[f"{w}/{s}"]] for s in SKINS]
    )  # (skin, recording)
    by_skin = {str(s): summary([r for w in WORLDS for r in results[f"{w}/{s}"]]) for s in SKINS}
    report = {
        "command": f"benchmarks/held_out_worlds.py --model {options.method} --n {options.n} "
        f"--skin-n {options.skin_n} --seconds {options.seconds:g} --seed {options.seed}",
        "worlds": {name: summary(results[name]) for name in WORLDS},
        "phone_by_codec": {
            kind: summary(
                [r for job, r in zip(worlds["phone"], results["phone"], strict=True) if codec(job) == kind]
            )
            for kind in sorted({codec(job) for job in worlds["phone"]})
        },
        "skin": {
            **by_skin,
            "worst_over_best": worst_over_best(by_skin, "mae_bpm"),
            "worst_over_best_95": interval(errors),
            "worst_over_best_of_shown": worst_over_best(by_skin, "mae_bpm_of_shown"),
            "by_world": {w: {str(s): summary(results[f"{w}/{s}"])["mae_bpm"] for s in SKINS} for w in WORLDS},
        },
        "lost": [
            lost(job, recording)
            for name, group in (worlds | skins).items()
            for job, recording in zip(group, results[name], strict=True)
            if mean_error(recording) > LOST_BPM
        ],
    }
    print(dump_json(report))
    if options.out:
        write_json(options.out, report)


if __name__ == "__main__":
    main()
