"""Measure the response to a step of the heart rate, to ectopic beats and to an irregular rhythm.

    python benchmarks/rhythm.py [--n 6] [--cache DIR] [--out FILE] [--plot FILE.png]

Recordings of 60 s in the world `studio`. The rate changes within 2 s at 25 s. The response time ends with the
first window from which on all shown rates are within 5 bpm of the new mean rate. It is measured as from a
camera, without later frames, and as from a file. For ectopic beats and an irregular rhythm (each interval
changes independently, as in atrial fibrillation), shown rates are compared with the mean rate of the window.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg.evaluate import films
from phase_rppg.evaluate.films import FilmSpec, SampledFilm
from phase_rppg.evaluate.fit_calibration import ObservedWindow
from phase_rppg.evaluate.world_windows import replay, sampled_film
from phase_rppg.fileio import dump_json, write_json
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.synth.sample import CLIP_FPS
from phase_rppg.types import Estimate, Reading
from phase_rppg.workers import map_in_order

STEP_S, SECONDS = 25.0, 60.0
STEPS: dict[str, dict[str, Any]] = {
    "80 to 120 bpm": {"pulse.bpm": 80.0, "pulse.step_factor": 1.5, "pulse.step_s": STEP_S},
    "80 to 40 bpm": {"pulse.bpm": 80.0, "pulse.step_factor": 0.5, "pulse.step_s": STEP_S},
}
RHYTHMS: dict[str, dict[str, Any]] = {
    "ectopic beats (10 %)": {"pulse.ectopic_rate": 0.1},
    "irregular (atrial fibrillation)": {"pulse.irregular": 0.2, "pulse.rsa": 0.0},
}
GROUPS = STEPS | RHYTHMS
SETTLED_S = 4.0  # after the step, until two seconds contain the new rate only
WITHIN_BPM = 5.0
MARKERS = (("camera", "tab:blue", 9), ("file", "tab:orange", 4))  # mode, colour and size in the figure
SURE = 0.9  # p_ok of a confident reading


@dataclass(frozen=True)
class Job:
    """One recording."""

    group: str
    index: int
    seed: int
    method: str
    cache: Path | None


def evaluate(job: Job) -> dict[str, list[dict[str, Any]]]:
    """Return the windows of one recording as from a camera and as from a file."""
    settings = tuple(sorted({"pulse.drift_bpm": 0.5, **GROUPS[job.group]}.items()))
    spec = FilmSpec("studio", job.seed, job.index, SECONDS, settings)
    film = sampled_film(spec, job.cache)
    config = MeasureOptions(job.method, faces="largest", gated=False).config()
    state = films.state_of(film, config.model)
    rows: dict[str, list[dict[str, Any]]] = {}
    for mode, its in (("camera", config.for_camera()), ("file", config)):
        found = [
            ObservedWindow(w.peak, w.quality, w.truth_bpm, spec.group, w.end_s, mode)
            for w in films.windows(film, its, state)
            if w.peak is not None
        ]
        readings = replay(found, job.method, hindsight=False)
        rows[mode] = [row(o, reading, film) for o, reading in zip(found, readings, strict=True)]
    return rows


def row(window: ObservedWindow, reading: Reading, film: SampledFilm) -> dict[str, Any]:
    """Return one window with the mean true rate and the true rate at its end."""
    shown = isinstance(reading, Estimate)
    stop = round((window.end_s - film.frame_times_s[0]) * CLIP_FPS) - film.first_tick
    return {
        "end_s": round(window.end_s, 3),
        "bpm": round(window.peak.bpm, 2),
        "low": reading.low if isinstance(reading, Estimate) else None,
        "high": reading.high if isinstance(reading, Estimate) else None,
        "p_ok": round(reading.p_ok, 4),
        "shown": shown,
        "truth": round(window.truth_bpm or 0.0, 2),
        "current": round(float(np.mean(film.truth_bpm[stop - 2 * round(CLIP_FPS) : stop])), 2),
    }


def response_s(windows: list[dict[str, Any]]) -> float | None:
    """Return the time after the step from which on all shown rates are within 5 bpm; None if never.

    The new rate is the mean after the step, because breathing changes the rate of single beats by more.
    """
    after = [w for w in windows if w["shown"] and w["end_s"] > STEP_S]
    new_bpm = float(np.mean([w["current"] for w in windows if w["end_s"] >= STEP_S + SETTLED_S]))
    right = [abs(w["bpm"] - new_bpm) <= WITHIN_BPM for w in after]
    if not right or not right[-1]:
        return None
    last_wrong = max((i for i, ok in enumerate(right) if not ok), default=-1)
    return float(after[last_wrong + 1]["end_s"]) - STEP_S


def step_summary(recordings: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the response times of all recordings."""
    times_s = [response_s(windows) for windows in recordings]
    known = [t for t in times_s if t is not None]
    wrong = [
        w["shown"] and w["p_ok"] >= SURE and abs(w["bpm"] - w["truth"]) > WITHIN_BPM
        for windows in recordings
        for w in windows
    ]
    return {
        "recordings": len(recordings),
        "response_s": [None if t is None else round(t, 2) for t in times_s],
        "median_s": round(float(np.median(known)), 2) if known else None,
        "within_12_s": round(float(np.mean([t is not None and t <= 12 for t in times_s])), 3),
        "confident_and_wrong": round(float(np.mean(wrong)), 4),
    }


def rhythm_summary(recordings: list[list[dict[str, Any]]]) -> dict[str, Any]:
    """Return coverage, errors and intervals over all windows."""
    windows = [w for recording in recordings for w in recording]
    shown = [w for w in windows if w["shown"]]
    errors = [abs(w["bpm"] - w["truth"]) for w in shown]
    sure = [w for w in shown if w["p_ok"] >= SURE]
    inside = [w["low"] <= w["truth"] <= w["high"] for w in shown]
    widths = [w["high"] - w["low"] for w in shown]

    def rounded(values: list[Any]) -> float | None:
        return round(float(np.mean(values)), 4) if values else None

    return {
        "recordings": len(recordings),
        "windows": len(windows),
        "coverage": round(len(shown) / max(len(windows), 1), 4),
        "mae_bpm_of_shown": rounded(errors),
        "within_5_of_shown": rounded([e <= WITHIN_BPM for e in errors]),
        "confident_and_wrong": rounded([abs(w["bpm"] - w["truth"]) > WITHIN_BPM for w in sure]),
        "interval_holds_truth": rounded(inside),
        "interval_width_bpm": rounded(widths),
    }


def draw(path: Path, found: dict[str, list[dict[str, list[dict[str, Any]]]]]) -> None:
    """Draw the shown rates after a step against the true rate."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharex=True, layout="constrained")
    for axis, name in zip(axes, STEPS, strict=True):
        for recording in found[name]:
            truth = recording["camera"]
            axis.plot([w["end_s"] for w in truth], [w["current"] for w in truth], color="0.6", lw=1)
            for mode, colour, size in MARKERS:
                shown = [w for w in recording[mode] if w["shown"]]
                axis.plot([w["end_s"] for w in shown], [w["bpm"] for w in shown], ".", color=colour, ms=size)
        axis.axvline(STEP_S, color="k", lw=0.8, ls=":")
        axis.axvline(STEP_S + 12, color="k", lw=0.8, ls="--")
        axis.set(title=name, xlabel="end of the window (s)", ylabel="heart rate (bpm)")
    handles = [plt.Line2D([], [], color="0.6", label="true rate")]
    handles += [
        plt.Line2D([], [], color=colour, marker=".", ms=size, ls="", label=mode)
        for mode, colour, size in MARKERS
    ]
    axes[0].legend(handles=handles, frameon=False, loc="upper left")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", dest="method", default="phasenet-stream")
    parser.add_argument("--n", type=int, default=6, help="recordings of each rhythm")
    parser.add_argument("--seed", type=int, default=14641)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path, help="store the films here")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    jobs = [Job(g, i, options.seed, options.method, options.cache) for i in range(options.n) for g in GROUPS]
    results = list(map_in_order(evaluate, jobs, options.workers))
    found = {g: [r for job, r in zip(jobs, results, strict=True) if job.group == g] for g in GROUPS}
    document = {
        "command": f"python benchmarks/rhythm.py --model {options.method} --n {options.n} "
        f"--seed {options.seed}",
        "steps": {
            g: {mode: step_summary([r[mode] for r in found[g]]) for mode in ("camera", "file")} for g in STEPS
        },
        "rhythms": {
            g: {mode: rhythm_summary([r[mode] for r in found[g]]) for mode in ("camera", "file")}
            for g in RHYTHMS
        },
    }
    print(dump_json(document))
    if options.out is not None:
        write_json(options.out, document)
    if options.plot is not None:
        draw(options.plot, found)


if __name__ == "__main__":
    main()
