"""Measure the errors of beat intervals, variability and breathing in synthetic worlds and in PURE.

    python benchmarks/beats.py [--n 20] [--pure ROOT] [--cache DIR] [--out benchmarks/results/beats.json]

Recordings of 60 s are generated with a seed that neither the development of the estimators nor training used.
The network measures each of them as a file. Intervals are compared with those of the true beats, RMSSD and
SDNN with those of the true beats during the found ones, and the breathing rate with the true cycles. ROOT is
a folder with `01-01/01-01.json` and `pure_01-01_h264_crf10.mp4`; there the contact PPG is the reference, and
its beats are found by the same estimator.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phase_rppg import registry
from phase_rppg.datasets import base, folder
from phase_rppg.evaluate.beat_agreement import interval_errors_s, variability_ratios
from phase_rppg.evaluate.world_windows import generate
from phase_rppg.fileio import dump_json, read_json, write_json
from phase_rppg.measurement.measure import MeasureOptions, run
from phase_rppg.physics.pulse import PulseConfig, pulse_wave
from phase_rppg.session.results import FaceResult
from phase_rppg.signal import rate
from phase_rppg.signal.beat_timing import refine_beats
from phase_rppg.signal.breathing import Breathing
from phase_rppg.synth.recording import SyntheticRecording
from phase_rppg.types import FloatArray, Frame
from phase_rppg.workers import map_in_order

# name → world, fixed settings, recordings relative to --n
GROUPS: dict[str, tuple[str, dict[str, Any], float]] = {
    "studio": ("studio", {}, 1.0),
    "studio, breathing in the skin": ("studio", {"pulse.breathing_baseline": 0.3}, 0.5),
    "lux": ("lux", {}, 0.5),
    "webcam": ("webcam", {}, 0.5),
}
WITHIN = 0.2  # largest relative error of RMSSD and SDNN
WITHIN_BREATHS = 2.0
DURATIONS_S = (30, 45, 55)


@dataclass(frozen=True)
class Job:
    """One recording."""

    group: str
    index: int
    seconds: float
    seed: int
    cache: Path | None


def evaluate(job: Job) -> dict[str, Any]:
    """Return the figures of one recording, from the cache if they are there."""
    name = re.sub(r"\W+", "-", job.group)
    kept = job.cache / f"beats-{name}-{job.seed}-{job.index}-{job.seconds:g}.json" if job.cache else None
    if kept is not None and kept.exists():
        found: dict[str, Any] = read_json(kept)
        return found
    world, fixed, _ = GROUPS[job.group]
    recording, pictures = generate(world, job.seed, job.index, seconds=job.seconds, fixed=fixed)
    frames = (Frame(rgb, float(t)) for rgb, t in zip(pictures, recording.t_s, strict=False))
    result = run(frames, MeasureOptions(faces="largest"))
    found = {"seen": False} if not result.faces else figures(result.faces[0], recording)
    if kept is not None:
        write_json(kept, found)
    return found


def figures(face: FaceResult, recording: SyntheticRecording) -> dict[str, Any]:
    """Return the errors of beats, variability and breathing of one face."""
    found = beat_figures(face, recording.beats_s())
    reading = face.breathing
    found["breathing"] = None
    if isinstance(reading, Breathing):
        truth = true_breaths_per_minute(recording, float(face.beats_s[0]), float(face.beats_s[-1]))
        found["breathing"] = round(reading.per_minute - truth, 3)
    else:
        found["no_breathing"] = str(reading.reason)
    return found


def beat_figures(face: FaceResult, true_s: FloatArray) -> dict[str, Any]:
    """Return the errors of intervals and variability, and the limits of absent values."""
    errors_s = interval_errors_s(face.beats_s, true_s)
    ratios = variability_ratios(face.hrv, face.beats_s, true_s)
    return {
        "seen": True,
        "beats": len(face.beats_s),
        "true_beats": len(true_s),
        "intervals": len(errors_s),
        "mae_ms": round(1000 * float(np.abs(errors_s).mean()), 3) if len(errors_s) else None,
        **{f"{name[:-3]}_ratio": None if r is None else round(r, 4) for name, r in ratios.items()},
        "limits": {name: limit.name for name, limit in face.hrv_limits.items() if name != "lf_hf"},
    }


def true_breaths_per_minute(recording: SyntheticRecording, start_s: float, end_s: float) -> float:
    """Return the mean rate of the true breathing cycles between two times."""
    pulse = recording.drawn.pulses[0]
    t_s = pulse.t_s - recording.start_s
    inside = (t_s >= start_s) & (t_s <= end_s)
    t_s, x = t_s[inside], pulse.breathing[inside]
    up = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    crossings_s = t_s[up] - x[up] / (x[up + 1] - x[up]) * (t_s[up + 1] - t_s[up])
    return 60 * (len(crossings_s) - 1) / float(crossings_s[-1] - crossings_s[0])


def evaluate_pure(root: Path) -> dict[str, Any]:
    """Return the figures of PURE 01-01 at CRF 10 against the contact PPG."""
    found = folder.pair(root / "pure_01-01_h264_crf10.mp4", root / "01-01" / "01-01.json")
    recording = base.read(registry.load("datasets", "folder"), found)
    face = run(recording.video, MeasureOptions()).faces[0]
    reference = recording.reference
    plain_s = rate.find_beats(reference)
    return {
        "same_estimator": beat_figures(face, refine_beats(reference, plain_s)),
        "maxima_of_the_reference": beat_figures(face, plain_s),
        "rmssd_ms": None if face.hrv is None else face.hrv.rmssd_ms,
        "sdnn_ms": None if face.hrv is None else face.hrv.sdnn_ms,
    }


def sdnn_by_duration(recordings: int = 300, seed: int = 0) -> dict[str, dict[str, Any]]:
    """Return SDNN of the first seconds over that of 60 s, for true beats with the rhythms of `studio`."""
    rng = np.random.default_rng(seed)
    ratios: dict[int, list[float]] = {seconds: [] for seconds in DURATIONS_S}
    for _ in range(recordings):
        config = PulseConfig(
            bpm=rng.uniform(55, 120),
            rsa=rng.uniform(0, 0.08),
            hrv_s=float(np.exp(rng.uniform(np.log(0.006), np.log(0.04)))),
            drift_bpm=float(np.exp(rng.uniform(np.log(0.5), np.log(4.0)))),
            breathing_hz=rng.uniform(0.16, 0.36),
        )
        beats_s = pulse_wave(config, 60.0, 30.0, rng).beat_times_s
        whole = np.diff(beats_s).std(ddof=1)
        for seconds in DURATIONS_S:
            ratios[seconds].append(float(np.diff(beats_s[beats_s < seconds]).std(ddof=1) / whole))
    return {
        str(seconds): {
            "percentile_5": round(float(np.percentile(found, 5)), 3),
            "percentile_95": round(float(np.percentile(found, 95)), 3),
            "within_20_percent": mean([abs(ratio - 1) <= WITHIN for ratio in found]),
        }
        for seconds, found in ratios.items()
    }


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return means over recordings, and the shares of shown and right values."""
    count = len(found)
    errors = [one["mae_ms"] for one in found if one.get("mae_ms") is not None]
    breaths = [one["breathing"] for one in found if one.get("breathing") is not None]
    table: dict[str, Any] = {
        "recordings": count,
        "with_beats": len(errors),
        "interval_mae_ms": mean(errors),
        "interval_mae_ms_worst": max(errors, default=None),
        "breathing": {
            "shown": round(len(breaths) / count, 3),
            "within_2": mean([abs(e) <= WITHIN_BREATHS for e in breaths]),
            "mae": mean([abs(e) for e in breaths]),
            "worst": max((abs(e) for e in breaths), default=None),
        },
    }
    for name in ("rmssd", "sdnn"):
        ratios = [one[f"{name}_ratio"] for one in found if one.get(f"{name}_ratio") is not None]
        limits = [one["limits"][f"{name}_ms"] for one in found if f"{name}_ms" in one.get("limits", {})]
        table[name] = {
            "shown": round(len(ratios) / count, 3),
            "within_20_percent": mean([abs(r - 1) <= WITHIN for r in ratios]),
            "median_ratio": round(float(np.median(ratios)), 3) if ratios else None,
            "absent_because": {limit: limits.count(limit) for limit in sorted(set(limits))},
        }
    return table


def mean(values: list[Any]) -> float | None:
    return round(float(np.mean(values)), 3) if values else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=20, help="recordings of studio; the others have half")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=14641)
    parser.add_argument("--pure", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    jobs = [
        Job(group, index, options.seconds, options.seed, options.cache)
        for index in range(options.n)
        for group, (_, _, share) in GROUPS.items()
        if index < max(round(share * options.n), 1)
    ]
    found = list(map_in_order(evaluate, jobs, options.workers))
    document = {
        "command": f"python benchmarks/beats.py --n {options.n} --seconds {options.seconds:g} "
        f"--seed {options.seed}" + (" --pure ROOT" if options.pure else ""),
        "worlds": {
            group: summary([one for job, one in zip(jobs, found, strict=True) if job.group == group])
            for group in GROUPS
        },
        "sdnn_of_the_first_seconds": sdnn_by_duration(),
    }
    if options.pure is not None:
        document["pure_crf10"] = evaluate_pure(options.pure)
    print(dump_json(document))
    if options.out is not None:
        write_json(options.out, document)


if __name__ == "__main__":
    main()
