"""Train the shipped network without one of its parts at a time, and compare the errors.

    python benchmarks/ablation.py train --runs DIR [--cache DIR] [--seen 40000] [--seeds 1] [--only NAME]
    python benchmarks/ablation.py judge --runs DIR [--n 24] [--real ubfc_rppg=DIR] [--out FILE.json]

All variants are trained by the first stage of the recipe with equal clips, seeds and steps. `train` resumes
an interrupted run, and several processes can train different variants (`--only`).

`judge` measures every film of the held-out worlds once for each trained variant: the waveform of the network
alone, read by a plain estimator in windows of 10 s. Errors are means over films. The difference to the whole
network has a 95 % bootstrap interval over films, which are paired. `--real` adds the windows of a data set,
without the gate.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

import numpy as np
from rich.progress import track

from phase_rppg.errors import UsageError
from phase_rppg.evaluate import films
from phase_rppg.evaluate.films import FilmSpec
from phase_rppg.evaluate.world_windows import sampled_film
from phase_rppg.fileio import dump_json, read_json, write_json
from phase_rppg.measurement.measure import MeasureOptions
from phase_rppg.signal.rate import spectral_bpm
from phase_rppg.types import FloatArray
from phase_rppg.workers import map_in_order

# Settings of the recipe for each variant. The oscillator bank replaces the gated TCN.
VARIANTS: dict[str, tuple[str, ...]] = {
    "whole": (),
    "no-zas": ("network.zas=false",),
    "no-asf": ("network.asf=false",),
    "no-derivative": ("network.derivative=false",),
    "no-gtcn": ("network.gtcn=false",),
    "oscillators": ("network.name=phasenet-oscillators",),
}
WHOLE = "whole"
WORLDS = ("studio", "motion", "lux", "phone", "handheld", "laptop", "talk")
WINDOW_S, STEP_S = 10.0, 1.0
DRAWS = 5000


@dataclass(frozen=True)
class Job:
    """One film, and the manifests of the networks that measure it."""

    spec: FilmSpec
    manifests: tuple[tuple[str, Path], ...]  # name of the run, its manifest
    cache: Path | None


def run_name(variant: str, seed: int) -> str:
    return f"{variant}-{seed}"


def train_variant(options: argparse.Namespace, variant: str, seed: int) -> None:
    """Train one variant, or continue its training, and export it."""
    from phase_rppg.train.compute import Compute
    from phase_rppg.train.export import export
    from phase_rppg.train.loop import train
    from phase_rppg.train.recipe import load_stages

    out = options.runs / run_name(variant, seed)
    if (out / "last.json").exists():
        return
    recipe = load_stages(options.recipe, VARIANTS[variant])[0].recipe
    clips = sum(int(s.count * (s.part[1] - s.part[0])) for s in recipe.data.train)
    epochs = math.ceil(options.seen / clips)
    watch = dataclasses.replace(recipe.watch, validate_every=10**6)
    recipe = dataclasses.replace(
        recipe, seed=seed, optimise=dataclasses.replace(recipe.optimise, epochs=epochs), watch=watch
    )
    print(f"{run_name(variant, seed)}: {epochs} epochs of {clips} clips", flush=True)
    compute = Compute(precision=options.precision)
    train(recipe, out, resume=out.exists(), cache=options.cache or options.runs, compute=compute)
    export(out / "last.safetensors", out / "last.onnx", name=f"phasenet-{variant}")


def judge_film(job: Job) -> dict[str, float]:
    """Return the mean error of the windows of one film by run; empty without a window."""
    film = sampled_film(job.spec, job.cache)
    found: dict[str, float] = {}
    for name, manifest in job.manifests:
        config = MeasureOptions(str(manifest), faces="largest", gated=False, alone=True).config()
        errors = []
        if len(film.rows):
            state = films.state_of(film, config.model)
            length, step = (round(seconds * config.fps) for seconds in (WINDOW_S, STEP_S))
            for start in range(0, len(film.rows) - length + 1, step):
                first = film.first_tick + start
                samples = state.samples(first, first + length)
                wave = samples.without_motion(state.wave(first, first + length))
                truth = float(np.mean(film.truth_bpm[start : start + length]))
                errors.append(abs(spectral_bpm(wave) - truth))
        if errors:
            found[name] = float(np.mean(errors))
    return found


def difference(errors: FloatArray, whole: FloatArray) -> dict[str, Any]:
    """Return the mean difference (bpm) of paired errors, with its 95 % bootstrap interval."""
    gaps = errors - whole
    picks = np.random.default_rng(0).integers(len(gaps), size=(DRAWS, len(gaps)))
    low, high = np.quantile(gaps[picks].mean(1), [0.025, 0.975])
    return {"mean": round(float(gaps.mean()), 3), "low": round(float(low), 3), "high": round(float(high), 3)}


def compare(by_run: dict[str, list[float]]) -> dict[str, Any]:
    """Return the error of every variant, and its difference to the whole network, over the same films."""
    errors = {
        variant: np.mean([by_run[run] for run in by_run if run.rpartition("-")[0] == variant], axis=0)
        for variant in dict.fromkeys(run.rpartition("-")[0] for run in by_run)
    }
    table: dict[str, Any] = {}
    for variant, own in errors.items():
        seeds = {run: round(float(np.mean(by_run[run])), 3) for run in by_run if run.startswith(variant)}
        table[variant] = {"mae_bpm": round(float(own.mean()), 3), "by_seed": seeds}
        if variant != WHOLE and WHOLE in errors:
            table[variant]["difference_bpm"] = difference(own, errors[WHOLE])
    return table


def judge(options: argparse.Namespace) -> dict[str, Any]:
    """Measure the held-out films and the real recordings with every trained variant."""
    known = {p.parent.name: p for p in sorted(options.runs.glob("*/last.json"))}
    order = [run_name(v, s) for v in VARIANTS for s in range(options.seeds)]
    manifests = tuple((name, known[name]) for name in order if name in known)
    if not manifests:
        raise UsageError(f"{options.runs}: no trained variant")
    jobs = [
        Job(FilmSpec(world, options.seed, index, options.seconds), manifests, options.cache)
        for world in WORLDS
        for index in range(options.n)
    ]
    found = list(track(map_in_order(judge_film, jobs, options.workers), "measuring", total=len(jobs)))
    worlds: dict[str, Any] = {}
    for group in (*WORLDS, "all"):
        rows = [f for job, f in zip(jobs, found, strict=True) if group in (job.spec.world, "all")]
        rows = [row for row in rows if row]
        worlds[group] = {"films": len(rows), **compare({n: [r[n] for r in rows] for n, _ in manifests})}
    real = {name: judge_real(name, root, manifests) for name, root in options.real}
    training = {name: read_json(path)["training"] for name, path in manifests}
    keep = ("clips_seen", "commit")
    return {
        "command": f"python benchmarks/ablation.py judge --n {options.n} --seconds {options.seconds:g} "
        f"--seed {options.seed}",
        "training": {name: {k: facts[k] for k in keep if k in facts} for name, facts in training.items()},
        "worlds": worlds,
        "real": real,
    }


def judge_real(dataset: str, root: str, manifests: tuple[tuple[str, Path], ...]) -> dict[str, Any]:
    """Return the errors of the recordings of a data set, without the gate."""
    by_run: dict[str, dict[str, float]] = {}
    for name, manifest in track(manifests, f"measuring {dataset}"):
        command = [sys.executable, "-m", "phase_rppg", "evaluate", dataset, root, "--model", str(manifest),
                   "--alone", "--ungated", "--json", "--quiet"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        by_run[name] = {
            one["name"]: one["ungated"]["mae"]["value"]
            for one in json.loads(done.stdout)["recordings"]
            if one["ungated"]
        }
    shared = sorted(set.intersection(*(set(rows) for rows in by_run.values())))
    table = compare({run: [rows[name] for name in shared] for run, rows in by_run.items()})
    return {"recordings": len(shared), **table}


def named_root(text: str) -> tuple[str, str]:
    name, separator, root = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError("accepted: DATASET=FOLDER")
    return name, root


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("train", "judge"))
    parser.add_argument("--runs", type=Path, required=True, help="folder of the training runs")
    parser.add_argument("--cache", type=Path, help="folder of generated clips (train) or films (judge)")
    parser.add_argument("--recipe", default="stream", help="its first stage is trained")
    parser.add_argument("--seen", type=int, default=40_000, help="least number of clips that a run sees")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", choices=VARIANTS, action="append", help="train only this variant")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--n", type=int, default=24, help="films of each world")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=27182, help="of the films; not used elsewhere")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--real", type=named_root, action="append", default=[], metavar="DATASET=DIR")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "ablation.json")
    options = parser.parse_args()
    if options.what == "train":
        for seed in range(options.seeds):
            for variant in options.only or VARIANTS:
                train_variant(options, variant, seed)
        return
    document = judge(options)
    print(dump_json(document))
    write_json(options.out, document)


if __name__ == "__main__":
    main()
