"""Write the windows and the plots of an evaluation."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets import cache
from ..datasets.base import Found
from ..fileio import write_text
from ..report.figure_file import save_figure
from ..text import csv_cell
from . import metrics, plots, selective, synthetic_stamp
from .leaks import training_record
from .run_report import RunRecord, model_digest
from .session_evaluation import Evaluation, score

CSV_COLUMNS = (
    "recording", "subject", "start_s", "end_s", "truth_bpm", "bpm", "p_ok", "shown", "reason", "stamp",
)  # fmt: skip


def write_csv(path: Path, evaluation: Evaluation, *, ungated: bool) -> None:
    """Write one row per window; without `ungated`, rates that the gate refused are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for result in evaluation.results:
        for row in result.rows:
            bpm = f"{row.bpm:.3f}" if row.bpm is not None and (row.shown or ungated) else ""
            times = [f"{row.start_s:g}", f"{row.end_s:g}", f"{row.truth_bpm:.3f}"]
            writer.writerow(
                [csv_cell(result.name), csv_cell(result.subject), *times, bpm, f"{row.p_ok:.4f}",
                 int(row.shown), row.reason, csv_cell(evaluation.stamp)]
            )  # fmt: skip
    write_text(path, text.getvalue())


def write_plots(folder: Path, evaluation: Evaluation) -> None:
    """Write the scatter, Bland–Altman, risk–coverage and reliability plots as PNG files."""
    found = [
        (result.name, row) for result in evaluation.results for row in result.rows if row.bpm is not None
    ]
    if not found:
        return
    names = [name for name, _ in found]
    estimate = np.array([row.bpm for _, row in found], float)
    truth = np.array([row.truth_bpm for _, row in found])
    p_ok = np.array([row.p_ok for _, row in found])
    title = f"{evaluation.model} on {evaluation.dataset}"
    figures = {"scatter": plots.scatter(estimate, truth, title=title, groups=names)}
    if len(found) > 2:
        figures["bland-altman"] = plots.bland_altman(estimate, truth, title=title, groups=names)
    error = np.abs(estimate - truth)
    curve = selective.risk_coverage(error, p_ok, windows=len(evaluation.rows()))
    figures["risk-coverage"] = plots.risk_coverage({evaluation.model: curve}, title=title)
    table = selective.reliability(p_ok, error <= metrics.WITHIN_BPM)
    figures["reliability"] = plots.reliability(table, title=title)
    for name, figure in figures.items():
        synthetic_stamp.draw_stamp(figure, evaluation.stamp)
        save_figure(figure, folder / f"{name}.png")


def session_record(
    evaluation: Evaluation, found: Sequence[Found], command: str, provenance: Mapping[str, Any]
) -> RunRecord:
    """Return what REPORT.md states about complete sessions; `provenance` is the record of the model."""
    trained, notes = training_record(evaluation.model, provenance)
    scores = score(evaluation.rows())
    lines = ["| | n | MAE | RMSE | within 5 bpm |", "|---|---:|---:|---:|---:|"]
    for name, summary in (("all rates", scores.ungated), ("rates that pass the gate", scores.gated)):
        if summary is not None:
            numbers = f"{summary.mae.value:.2f} | {summary.rmse.value:.2f} | {summary.within.value:.0%}"
            lines.append(f"| {name} | {summary.count} | {numbers} |")
    names = {result.name for result in evaluation.results}
    return RunRecord(
        f"{evaluation.model} on {evaluation.dataset}",
        evaluation.stamp,
        command,
        f"session: {evaluation.window_s:g} s windows every {evaluation.step_s:g} s, with the gate",
        lines,
        models={evaluation.model: model_digest(evaluation.model)},
        splits={
            **trained,
            evaluation.dataset: {"test": list(dict.fromkeys(r.subject for r in evaluation.results))},
        },
        recordings={
            one.name: f"{cache.fingerprint(one.video)[:16]} {cache.fingerprint(one.reference)[:16]}"
            for one in found
            if one.name in names
        },
        excluded={problem.recording: problem.problem for problem in evaluation.problems},
        notes=notes,
    )
