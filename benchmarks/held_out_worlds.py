"""How far off a method is in worlds it never saw: per world, and per skin type with all else equal.

    python benchmarks/held_out_worlds.py [--method phasenet-stream] [--n 16] [--cache DIR] [--out FILE]

Recordings of `studio`, `motion`, `lux` and `phone` are filmed with a seed that neither training nor
calibration used. Then recordings of each are filmed six times over, with nothing changed but the skin, from
Fitzpatrick I to VI. Errors are of 10 s windows against the true mean rate, at full coverage and of the
windows that the gate shows. How many times the best type's error the worst type has is said with an interval
(the recordings drawn again, each with all of its skins), and every recording that is lost is named.
With `--cache` an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from phase_rppg import synth
from phase_rppg.evaluate.fit_calibration import Observed
from phase_rppg.evaluate.world_windows import from_json, observe, replay
from phase_rppg.fileio import dump_json, read_json, write_json
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.synth.codec import CodecSpec
from phase_rppg.synth.sample import stream
from phase_rppg.types import Estimate, FloatArray, Reading
from phase_rppg.workers import map_in_order

WORLDS = ("studio", "motion", "lux", "phone")
SKINS = (1, 2, 3, 4, 5, 6)
LOST_BPM = 5.0  # a recording whose mean error is above this is lost


@dataclass(frozen=True)
class Job:
    """One recording to film and to measure."""

    world: str
    index: int
    skin: int | None  # None: as the world draws it
    method: str
    seconds: float
    seed: int
    cache: Path | None


def watch(job: Job) -> list[dict[str, Any]]:
    """Every window of one recording: its number, its truth, and what the gate makes of it."""
    config = MeasureOptions(job.method, faces="largest", gated=False).config()
    sha256 = getattr(getattr(config.model, "manifest", None), "sha256", "")[:8]
    by = f"{job.method}-{sha256}-{config.second}"
    name = f"{job.world}-{job.seed}-{job.index}-{job.skin}-{job.seconds:g}s-{by}.json"
    kept = job.cache / name if job.cache else None
    if kept is not None and kept.exists():
        found = [from_json(row) for row in read_json(kept)]
    else:
        fixed = {"subject.fitzpatrick": job.skin} if job.skin else None
        found = observe(job.world, job.seed, job.index, {"it": config}, seconds=job.seconds, fixed=fixed)[
            "it"
        ]
        if kept is not None:
            write_json(kept, [dataclasses.asdict(o) for o in found])
    return [judge(o, reading) for o, reading in zip(found, replay(found, job.method), strict=True)]


def codec(job: Job) -> str:
    """How the recording was stored."""
    world = synth.load(job.world)
    return str(world.draw(CodecSpec, stream(world, job.seed, job.index, "codec"), None).name)


def judge(o: Observed, reading: Reading) -> dict[str, Any]:
    truth = float(o.truth_bpm or np.nan)
    return {
        "error_bpm": abs(o.peak.bpm - truth),
        "shown": isinstance(reading, Estimate),
        "inside": isinstance(reading, Estimate) and reading.low <= truth <= reading.high,
    }


def mean_error(recording: list[dict[str, Any]]) -> float:
    """Of all windows of one recording; nan without a window."""
    return float(np.mean([w["error_bpm"] for w in recording])) if recording else float("nan")


def summary(recordings: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Errors averaged over recordings; the gate over all windows."""
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
    """How many times the least error of a skin type the largest one is; None if one of them is not known."""
    errors = [row[key] for row in by_skin.values()]
    return None if None in errors else round(max(errors) / max(min(errors), 1e-9), 3)


def interval(errors: FloatArray, draws: int = 5000) -> list[float]:
    """Worst over best type in 95 % of the draws of as many recordings from (skin, recording) errors."""
    picks = np.random.default_rng(0).integers(errors.shape[1], size=(draws, errors.shape[1]))
    of_types = np.nanmean(errors[:, picks], axis=2)  # (skin, draw)
    ratios = of_types.max(0) / of_types.min(0)
    return [round(float(q), 3) for q in np.quantile(ratios, [0.025, 0.975])]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", default="phasenet-stream")
    parser.add_argument("--n", type=int, default=16, help="recordings of each world")
    parser.add_argument(
        "--skin-n", type=int, default=8, help="recordings of each world that change their skin"
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
    done = iter(list(track(map_in_order(watch, jobs, options.workers), "filming", total=len(jobs))))
    results = {name: [next(done) for _ in group] for name, group in (worlds | skins).items()}
    errors = np.array(
        [[mean_error(r) for w in WORLDS for r in results[f"{w}/{s}"]] for s in SKINS]
    )  # (skin, recording)
    by_skin = {str(s): summary([r for w in WORLDS for r in results[f"{w}/{s}"]]) for s in SKINS}
    report = {
        "command": f"benchmarks/held_out_worlds.py --method {options.method} --n {options.n} "
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
            {
                "world": job.world,
                "index": job.index,
                "skin": job.skin,
                "codec": codec(job),
                "mae_bpm": round(mean_error(r), 2),
            }
            for name, group in (worlds | skins).items()
            for job, r in zip(group, results[name], strict=True)
            if mean_error(r) > LOST_BPM
        ],
    }
    print(dump_json(report))
    if options.out:
        write_json(options.out, report)


if __name__ == "__main__":
    main()
