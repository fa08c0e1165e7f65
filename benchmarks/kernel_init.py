"""Compare TCN kernels initialised as oscillators with random ones.

    python benchmarks/kernel_init.py [--clips DIR] [--clips-seen 640] [--seeds 2] [--out FILE.json]

Trains small `phasenet-stream` runs from both initialisations with equal clips, seeds and budgets. It records
training and validation curves. Before and after training it fits damped oscillators to the impulse response
of the temporal part (R² of the leading components, weighted by their energy). An untrained network passes on
the newest frames, which a strongly damped oscillator explains. Therefore R² is also given for lags of 0.1 s
and more, with the share of the energy there.

The defaults take about a quarter of an hour on one core: 96 clips of `wild` are generated first (kept in
--clips if this folder does not exist yet), then 2 × 2 runs see 640 clips each. The picture is written next to
the JSON file.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

import numpy as np
import torch
from matplotlib.figure import Figure

from phase_rppg import fileio
from phase_rppg.nn import build
from phase_rppg.nn.phasenet.impulse_response import response, still_face_features
from phase_rppg.nn.phasenet.initial_kernels import start_from_oscillators
from phase_rppg.nn.phasenet.model import PhaseNet
from phase_rppg.physics.kernel import components
from phase_rppg.report.figure_file import save_figure
from phase_rppg.synth import ClipJob, write_clips
from phase_rppg.train.checkpoint import describe, save_checkpoint
from phase_rppg.train.export import load_streaming
from phase_rppg.train.loop import train
from phase_rppg.train.recipe import Recipe, from_dict

INITS = ("random", "oscillator")
COLOURS = {"random": "tab:gray", "oscillator": "tab:blue"}
BATCH = 8


def recipe(clips: Path, seed: int, clips_seen: int, validate_clips: int) -> Recipe:
    """The shipped network and its settings, at a small budget."""
    steps = max(clips_seen // BATCH, 1)
    source = {"clips": str(clips)}
    return from_dict(
        {
            "seed": seed,
            "delay_frames": 6,
            "network": {"name": "phasenet-stream"},
            "data": {
                "train": [{**source, "part": [0.0, 0.8]}],
                "validate": [{**source, "part": [0.8, 1.0]}],
                "frames": 160,
                "clips_per_epoch": steps * BATCH,
                "validate_clips": validate_clips,
                "workers": 0,
            },
            "loss": {"auxiliary": "none", "weight": 0.0, "warmup_frames": 30},
            "optimise": {
                "epochs": 1, "batch": BATCH, "lr": 2.5e-3, "schedule": "cosine",
                "warmup_steps": min(20, steps // 4), "weight_decay": 1e-3, "clip_norm": 1.0, "ema": 0.97,
            },
            "watch": {
                "log_every": max(steps // 40, 1), "save_every": 10**6, "validate_every": max(steps // 5, 1),
            },
        }
    )  # fmt: skip


def oscillation(network: PhaseNet, z: torch.Tensor) -> dict[str, Any]:
    """Return how much of the impulse response damped oscillators explain."""
    answer = response(network, z)
    found = components(answer.jacobian, answer.fps)
    share = sum(c.share for c in found)
    return {
        "explained": sum(c.share * c.explained for c in found) / share,
        "memory": sum(c.share * c.memory for c in found) / share,
        "explained_memory": sum(c.share * c.explained_memory for c in found) / share,
        "linear": answer.linear,
        "components": [
            {
                "share": c.share,
                "explained": c.explained,
                "memory": c.memory,
                "explained_memory": c.explained_memory,
                "natural_hz": c.hz,
                "damping_ratio": c.fit.oscillator.damping_ratio,
                "delay_frames": c.delay_frames,
                "effective_frames": c.effective_frames,
            }
            for c in found
        ],
        "leading_kernel": [float(value) for value in found[0].kernel],
    }


def one_run(plan: Recipe, init: str, out: Path) -> dict[str, Any]:
    """Train once; return the curves and the kernels before and after."""
    torch.manual_seed(plan.seed)  # the same initial weights as in the training loop
    name, options = plan.network_options()
    network = build(name, **options)
    assert isinstance(network, PhaseNet)
    if init == "oscillator":
        start_from_oscillators(network.tcn, network.config.fps)
    start = out.with_suffix(".safetensors")
    save_checkpoint(start, describe(name, options, network), network.state_dict())
    before = oscillation(network, still_face_features(network))
    started = time.process_time()
    train(dataclasses.replace(plan, init=str(start)), out)
    cpu_s = time.process_time() - started
    trained, saved = load_streaming(out / "last.safetensors")
    with open(out / "log.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    curve = [(int(row["step"]) * BATCH, float(row["loss"])) for row in rows if row["loss"]]
    valid = [
        (int(row["step"]) * BATCH, float(row["valid_pearson"]), float(row["valid_mae_bpm"]))
        for row in rows
        if row["valid_pearson"]
    ]
    return {
        "init": init,
        "seed": plan.seed,
        "clips_seen": saved.provenance.get("clips_seen"),
        "train_cpu_s": round(cpu_s, 1),
        "loss": curve,
        "validation": valid,  # clips seen, correlation, MAE in bpm
        "before": before,
        "after": oscillation(trained, still_face_features(trained)),
    }


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return mean and range over the seeds for each initialisation."""
    found = {}
    for init in INITS:
        selected = [run for run in runs if run["init"] == init]
        values = {
            "loss_last_fifth": [
                np.mean([v for _, v in r["loss"][-max(len(r["loss"]) // 5, 1) :]]) for r in selected
            ],
            "valid_pearson": [r["validation"][-1][1] for r in selected if r["validation"]],
            "valid_mae_bpm": [r["validation"][-1][2] for r in selected if r["validation"]],
            **{
                f"{name}_{when}": [run[when][name] for run in selected]
                for when in ("before", "after")
                for name in ("explained", "memory", "explained_memory")
            },
        }
        found[init] = {
            name: {"mean": float(np.mean(v)), "low": float(np.min(v)), "high": float(np.max(v))}
            for name, v in values.items()
            if v
        }
    return found


def picture(runs: list[dict[str, Any]], fps: float = 30.0) -> Figure:
    """Draw training curves, R² before and after, and the leading kernels."""
    figure = Figure(figsize=(13, 7), dpi=100, layout="constrained")
    (loss, valid, r2), (first, last, gain) = figure.subplots(2, 3)
    for run in runs:
        colour, style = COLOURS[run["init"]], {0: "-", 1: "--"}.get(run["seed"], ":")
        label = f"{run['init']}, seed {run['seed']}"
        loss.plot(*zip(*run["loss"], strict=True), color=colour, ls=style, lw=1.2, label=label)
        if run["validation"]:
            seen, pearson, _ = zip(*run["validation"], strict=True)
            valid.plot(seen, pearson, "o", color=colour, ls=style, lw=1.2, ms=3, label=label)
        for mark, name in (("o", "explained"), ("s", "explained_memory")):
            # negative values are cut off
            values = [max(run[when][name], -0.15) for when in ("before", "after")]
            r2.plot(
                [0, 1], values, marker=mark, mfc="white" if mark == "s" else colour, color=colour, ls=style
            )
        for axes, when in ((first, "before"), (last, "after")):
            kernel = np.array(run[when]["leading_kernel"])
            lag_s = np.arange(len(kernel)) / fps
            axes.plot(lag_s, kernel / np.abs(kernel).max(), color=colour, ls=style, lw=1.1)
        kernel = np.array(run["after"]["leading_kernel"])
        hz = np.fft.rfftfreq(1024, 1 / fps)
        size = np.abs(np.fft.rfft(kernel, 1024))
        gain.semilogx(hz[1:], 20 * np.log10(size[1:] / size.max()), color=colour, ls=style, lw=1.1)
    loss.set(title="training loss (−r)", xlabel="clips seen")
    valid.set(title="validation: correlation with the true waveform", xlabel="clips seen")
    r2.set(title="R² of the oscillators (squares: lags ≥ 0.1 s)", xticks=[0, 1], ylim=(-0.2, 1))
    r2.set_xlim(-0.2, 1.2)
    r2.set_xticklabels(["before training", "after"])
    first.set(title="leading impulse response before", xlabel="lag (s)")
    last.set(title="leading impulse response after", xlabel="lag (s)")
    gain.axvspan(40 / 60, 200 / 60, color="tab:green", alpha=0.12)
    gain.set(title="its gain after training (green: 40–200 bpm)", xlabel="frequency (Hz)", ylabel="dB")
    gain.set(xlim=(0.2, 15), ylim=(-40, 3))
    loss.legend(fontsize=8)
    for axes in (loss, valid, r2, first, last, gain):
        axes.grid(alpha=0.3)
    return figure


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--clips", type=Path, help="a folder of `phase synth --as clips`; generated if missing"
    )
    parser.add_argument("--make", type=int, default=96, help="number of clips to generate if there are none")
    parser.add_argument("--clips-seen", type=int, default=640, help="clips per run; determines the run time")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--validate-clips", type=int, default=16)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "kernel_init.json")
    options = parser.parse_args()
    runs: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        clips = options.clips or Path(folder) / "clips"
        if not clips.exists():
            write_clips(clips, ClipJob("wild", 8.0, 48, 0, None, {}), options.make)
        for seed in range(options.seeds):
            for init in INITS:
                plan = recipe(clips, seed, options.clips_seen, options.validate_clips)
                runs.append(one_run(plan, init, Path(folder) / f"{init}-{seed}"))
                print(
                    f"{init:10} seed {seed}: R² {runs[-1]['before']['explained']:.2f} → "
                    f"{runs[-1]['after']['explained']:.2f}, validation {runs[-1]['validation'][-1:]}, "
                    f"{runs[-1]['train_cpu_s']} CPU-s",
                    flush=True,
                )
    result = {
        "command": f"python benchmarks/kernel_init.py --clips-seen {options.clips_seen} "
        f"--seeds {options.seeds} --validate-clips {options.validate_clips}"
        + (" --clips DIR" if options.clips else f" --make {options.make}"),
        "torch": torch.__version__,
        "summary": summary(runs),
        "runs": runs,
    }
    fileio.write_json(options.out, result)
    save_figure(picture(runs), options.out.with_suffix(".png"))
    print(fileio.dump_json(result["summary"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
