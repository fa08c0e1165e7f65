"""Simulated cross-domain study: four worlds, each left out once, PHASE-Net against other networks.

Every network sees the same number of clips from three worlds and is tested on the fourth. The modules of
PHASE-Net are removed one at a time. The baseline is a constant: the median rate of the three other worlds.
An interrupted run with the same --out resumes, seed by seed.

    python benchmarks/cross_domain.py --out ~/study                 about an hour on one core
    python benchmarks/cross_domain.py --out ~/study --kept          only report finished cells
    python benchmarks/cross_domain.py --out /tmp/study --smoke      a quick check of one or two minutes

Writes cross_domain.json, cross_domain.md and cross_domain*.png into benchmarks/results (--results).
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

import numpy as np  # noqa: E402

from phase_rppg.fileio import read_json, write_json, write_text  # noqa: E402
from phase_rppg.reproduce import domains, make_plan, report, runner  # noqa: E402
from phase_rppg.reproduce.result_tables import comparisons  # noqa: E402
from phase_rppg.reproduce.store import Store  # noqa: E402
from phase_rppg.reproduce.training_settings import get_budget  # noqa: E402
from phase_rppg.synth.clips import GENERATOR  # noqa: E402

RESULTS = Path(__file__).parent / "results"
NAME = "cross_domain"


def brief(recording: dict[str, Any]) -> list[Any]:
    """Return [name, true rate, estimated rate] in our convention; None if the reference has no rate."""
    found = recording["whole"]["ours"]
    rates = [None, None] if found is None else [round(found[k], 2) for k in ("truth_bpm", "bpm")]
    return [recording["name"], *rates]


def constant_errors(outcome: runner.Outcome) -> dict[str, float]:
    """Return the mean absolute error of the constant: the median rate of the other worlds."""
    rates: dict[str, list[float]] = {}
    for (_, world), results in outcome.results.items():
        if world not in rates:
            rates[world] = [c.truth_bpm for c in comparisons(results[0], "ours", "whole")]
    found = {}
    for world, own in rates.items():
        others = [bpm for name, values in rates.items() if name != world for bpm in values]
        if own and others:
            found[world] = round(float(np.mean(np.abs(np.array(own) - np.median(others)))), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="working folder: clips, runs, cache")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--seed", dest="seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument(
        "--model", dest="models", nargs="+", default=[], help="only these networks and methods"
    )
    parser.add_argument("--clips", type=int, help="clips per world")
    parser.add_argument("--clips-seen", type=int, help="clips that every network sees")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument(
        "--kept", action="store_true", help="train nothing; cells without a result are missing"
    )
    options = parser.parse_args()

    plan = make_plan("study", options.models)
    budget = get_budget("smoke" if options.smoke else "paper", worlds=True)
    changes = {"clips": options.clips, "clips_per_epoch": options.clips_seen}
    budget = dataclasses.replace(budget, **{k: v for k, v in changes.items() if v})
    started_s = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - started_s:7.0f} s  {line}", file=sys.stderr, flush=True)

    worlds = {
        name: domains.open_world(name, options.out / "clips" / f"{budget.clips}", budget, 0, say)
        for name in plan.domains
    }
    last = ""

    def watch(told: runner.Progress) -> None:
        nonlocal last
        if told.label != last:
            last = told.label
            say(f"{int(told.done)}/{told.cells}  {told.label}")

    outcome = runner.run(
        plan, budget, worlds, Store(options.out / "cache"), options.seeds, on_progress=watch, log=say,
        only_stored=options.kept,
    )  # fmt: skip
    files = report.write(outcome, options.out / "study")
    write_results(options.out / "study", options.results, outcome, files)


def write_results(study: Path, results: Path, outcome: runner.Outcome, files: Sequence[Path]) -> None:
    """Write the study as JSON, Markdown and plots to the folder of results, and print it."""
    budget = outcome.budget
    results.mkdir(parents=True, exist_ok=True)
    document = read_json(study / "study.json")
    document["command"] = "python benchmarks/cross_domain.py"
    document["settings"] = {
        "clips_per_world": budget.clips, "seconds": budget.seconds, "stored_px": budget.size,
        "clips_seen": budget.clips_per_epoch * budget.epochs, "batch": budget.batch, "lr": budget.lr,
        "clips_tested": budget.test_clips or budget.clips, "frames": budget.frames, "generator": GENERATOR,
        "networks": {k: dict(v) for k, v in budget.options.items()},
    }  # fmt: skip
    for cell in document["cells"]:  # keeps the file small; the recipe is in `settings`
        cell["training"].pop("recipe", None)
        cell["recordings"] = [brief(recording) for recording in cell["recordings"]]
    document["constant_mae_bpm"] = constant = constant_errors(outcome)
    document["cpu_s"] = round(sum(cell["cpu_s"] for cell in document["cells"]), 1)
    write_json(results / f"{NAME}.json", document)
    text = (study / "study.md").read_text(encoding="utf-8")
    text += "\nMAE of the median rate of the other worlds: " + ", ".join(
        f"{value:.1f} ({world})" for world, value in constant.items()
    )
    text += f" bpm.\nCPU time of all cells: {document['cpu_s'] / 60:.0f} minutes.\n"
    for path in (path for path in files if path.suffix == ".png"):
        kept = f"{NAME}.png" if path.stem == "study" else f"{NAME}_{path.name}"
        if path.stem in ("study", "ablation"):
            shutil.copyfile(path, results / kept)
            text = text.replace(f"![{path.name}]({path.name})", f"![{kept}]({kept})")
        else:
            text = text.replace(f"\n![{path.name}]({path.name})\n", "")
    write_text(results / f"{NAME}.md", text)
    print((results / f"{NAME}.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
