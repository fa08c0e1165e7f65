"""Write the recordings, the plots and the record of an evaluation in a convention."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..report.figure_file import save_figure
from ..text import csv_cell
from . import metrics, plots, synthetic_stamp
from .convention_evaluation import ConventionEvaluation, mae_interval, summaries
from .leaks import training_record
from .run_report import RunRecord, model_digest

CSV_COLUMNS = (
    "recording", "subject", "convention", "start_s", "truth_bpm", "bpm", "snr_db", "macc", "stamp",
)  # fmt: skip


def table_csv(evaluation: ConventionEvaluation) -> str:
    """Return CSV text: one row per recording, without a start, and one per window."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for one in evaluation.results:
        rows: list[tuple[str, metrics.Comparison | None]] = [("", one.whole)]
        rows += [(f"{start_s:.3f}", found) for start_s, found in one.windows]
        for start, found in rows:
            if found is not None:
                numbers = [found.truth_bpm, found.bpm, found.snr_db, found.macc]
                writer.writerow(
                    [csv_cell(one.name), csv_cell(one.subject), evaluation.convention.name, start,
                     *(f"{number:.4f}" for number in numbers), evaluation.stamp]
                )  # fmt: skip
    return text.getvalue()


def write_plots(folder: Path, evaluation: ConventionEvaluation) -> None:
    """Write the scatter and the Bland–Altman plot of whole recordings, if there are at least two."""
    found = evaluation.comparisons()
    if len(found) < 2:
        return
    bpm, truth = np.array([c.bpm for _, c in found]), np.array([c.truth_bpm for _, c in found])
    title = f"{evaluation.model} on {evaluation.dataset}, convention {evaluation.convention.name}"
    for name, draw in (("scatter", plots.scatter), ("bland-altman", plots.bland_altman)):
        figure = draw(bpm, truth, title=title)
        synthetic_stamp.draw_stamp(figure, evaluation.stamp)
        save_figure(figure, folder / f"{name}.png")


def record(evaluation: ConventionEvaluation, command: str, provenance: Mapping[str, Any]) -> RunRecord:
    """Return what REPORT.md states about the run; `provenance` is the training record of the model."""
    trained, notes = training_record(evaluation.model, provenance)
    lines = ["| | n | MAE | RMSE | MAPE | R | SNR | MACC |", "|---|---:|---:|---:|---:|---:|---:|---:|"]
    for name, found in summaries(evaluation).items():
        if found is not None:
            scores = (found.mae, found.rmse, found.mape, found.pearson, found.snr_db, found.macc)
            cells = ["–" if s is None else f"{s.value:.2f} ± {s.error:.2f}" for s in scores]
            unit = "recordings" if name == "whole" else f"windows of {evaluation.window_s:g} s"
            lines.append(f"| {unit} | {found.count} | {' | '.join(cells)} |")
    lines += ["", "± is the standard error."]
    if (interval := mae_interval(evaluation)) is not None:
        lines.append(
            f"The 95 % interval of the MAE over subjects is {interval.low:.2f} to {interval.high:.2f}."
        )
    return RunRecord(
        f"{evaluation.model} on {evaluation.dataset}",
        evaluation.stamp,
        command,
        evaluation.convention.describe(),
        lines,
        models={evaluation.model: model_digest(evaluation.model)},
        splits={
            **trained,
            evaluation.dataset: {"test": list(dict.fromkeys(one.subject for one in evaluation.results))},
        },
        recordings={one.name: one.key for one in evaluation.results},
        excluded={problem.recording: problem.problem for problem in evaluation.problems},
        notes=notes,
    )
