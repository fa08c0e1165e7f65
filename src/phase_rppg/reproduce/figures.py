"""Plots of a finished plan. The stamp of the data is on every one, across the picture if the data is fake."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..evaluate import data_stamp, plots
from . import printed_numbers
from .plan import HARD_WORLDS, LIGHTS, STUDY_MODULES
from .result_tables import comparisons, label, summaries, values
from .runner import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 110
_PAPER = "#b03a2e"
SHOWN = 2  # recordings per data set in the waves
SECONDS = 10.0


def draw(outcome: Outcome, folder: Path) -> list[Path]:
    """Draw what belongs to the plan; returns the files."""
    plan = outcome.plan
    figures: dict[str, Figure] = {}
    if plan.view == "count":
        if outcome.counts:
            figures[plan.name] = count_bars(outcome)
    elif plan.view == "waves":
        for column in plan.columns:
            if results := outcome.results.get((plan.rows[-1], column)):
                figures[f"waves-{column}"] = waves(results[0], column, folder)
    elif plan.name == "study" and outcome.results:
        variants = [row for row in plan.rows if row in STUDY_MODULES]
        figures[plan.name] = bars(outcome, [row for row in plan.rows if row not in variants], plan.columns)
        if variants:
            figures["ablation"] = bars(outcome, ["phasenet-stream", *variants], list(HARD_WORLDS))
    elif outcome.results:
        figures[plan.name] = bars(outcome, plan.rows, plan.columns)
    best = plan.rows[-1] if plan.name != "study" else "phasenet-stream"
    for column in plan.columns if plan.view in ("table", "condition") else []:
        readings = [
            c
            for result in outcome.results.get((best, column), [])
            for c in comparisons(result, "ours", "whole")
        ]
        if len(readings) >= 3 and plan.name.startswith(("table", "study", "fig")):
            bpm = np.array([c.bpm for c in readings])
            truth = np.array([c.truth_bpm for c in readings])
            title = f"{label(best)} → {label(column)}"
            figures[f"scatter-{column}"] = plots.scatter(bpm, truth, title=title)
            figures[f"bland-altman-{column}"] = plots.bland_altman(bpm, truth, title=title)
    written = []
    for name, figure in figures.items():
        data_stamp.put(figure, outcome.stamp)
        path = folder / f"{_file(name)}.png"
        plots.save(figure, path)
        written.append(path)
    return written


def _file(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)


def bars(outcome: Outcome, rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """The first metric of every row, by column, with the paper's number as a mark.

    In the convention that the paper's numbers are closest to; in ours where there is no paper.
    """
    from matplotlib.figure import Figure

    plan = outcome.plan
    metric = plan.metrics[0]
    convention = "ours" if plan.worlds else "toolbox"
    light = plan.view == "condition"
    columns = LIGHTS if light else columns
    figure = Figure(
        figsize=(max(6.4, 1.1 + 0.24 * len(rows) * len(columns)), 4.4), dpi=_DPI, layout="constrained"
    )
    axes = figure.subplots()
    width = 0.82 / len(rows)
    told = False
    for index, row in enumerate(rows):
        offset = (index - (len(rows) - 1) / 2) * width
        heights, errors = [], []
        for number, column in enumerate(columns):
            results = outcome.results.get((row, "mmpd" if light else column), [])
            keep = ("light", column) if light else None
            found = values(summaries(results, convention, "whole", keep), metric)
            heights.append(float(np.mean(found)) if found else 0.0)
            errors.append(float(np.std(found, ddof=1)) if len(found) > 1 else 0.0)
            printed = printed_numbers.value(plan.name, row, column, metric)
            if printed is not None:
                axes.plot(
                    [number + offset - width / 2, number + offset + width / 2], [printed, printed],
                    color=_PAPER, linewidth=2, label=None if told else "the paper",
                )  # fmt: skip
                told = True
        axes.bar(
            np.arange(len(columns)) + offset, heights, 0.92 * width, yerr=errors if any(errors) else None,
            color=f"C{index % 10}", hatch="//" if index >= 10 else None, label=label(row),
            error_kw={"linewidth": 0.8},
        )  # fmt: skip
    axes.set_xticks(range(len(columns)), [label(c) for c in columns])
    axes.set(ylabel=f"{metric} (bpm)" if metric in ("MAE", "RMSE") else metric)
    axes.set_title(f"{plan.title}\n(whole recordings, convention: {convention})", fontsize=10)
    axes.set_ylim(bottom=0)
    axes.set_axisbelow(True)
    axes.grid(alpha=0.3, axis="y")
    axes.legend(fontsize=7, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def count_bars(outcome: Outcome) -> Figure:
    """Parameters and multiply-accumulates of every network, with the paper's numbers as marks."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 4.4), dpi=_DPI, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    rows = list(outcome.counts)
    for panel, number in zip(panels, range(2), strict=True):
        metric = outcome.plan.metrics[number]
        counted = [outcome.counts[row][number] for row in rows]
        panel.barh(range(len(rows)), counted, 0.7, color="tab:blue", label="counted")
        printed = [(i, printed_numbers.value("table5", row, "clip", metric)) for i, row in enumerate(rows)]
        there = [(i, value) for i, value in printed if value is not None]
        panel.plot(
            [value for _, value in there], [i for i, _ in there], "|", color=_PAPER, markersize=15,
            markeredgewidth=2.5, label="the paper",
        )  # fmt: skip
        for i, value in enumerate(counted):
            clear = max(value, dict(there).get(i, 0.0))  # of the bar and of the mark
            panel.annotate(f"  {value:.3g}", (clear, i), va="center", fontsize=7)
        panel.set_yticks(range(len(rows)), [label(row) for row in rows])
        panel.set(xlabel=metric, xlim=(0, 1.15 * max(counted + [v for _, v in there])))
        panel.set_axisbelow(True)
        panel.grid(alpha=0.3, axis="x")
    panels[0].invert_yaxis()
    panels[1].legend(fontsize=8, loc="lower right")
    figure.suptitle(outcome.plan.title, fontsize=10)
    return figure


def waves(result: dict[str, Any], column: str, folder: Path) -> Figure:
    """Predicted and true wave, and their spectra, of the first test recordings."""
    from matplotlib.figure import Figure
    from scipy.signal import periodogram

    from .store import Store

    kept = Store(folder.parent / "cache").waves(result["key"])
    shown = min(SHOWN, len(result["recordings"]))
    figure = Figure(figsize=(9.0, 2.3 * shown + 0.6), dpi=_DPI, layout="constrained")
    panels = figure.subplots(shown, 2, squeeze=False, width_ratios=(2, 1))
    fps = 30.0
    for number in range(shown):
        recording = result["recordings"][number]
        left, right = panels[number]
        for name, kind, style in (("reference", "reference", "-"), ("prediction", "wave", "--")):
            wave = kept[f"{kind}{number}"].astype(float)
            wave = (wave - wave.mean()) / (wave.std() or 1.0)
            part = wave[: round(SECONDS * fps)]
            colour = "black" if kind == "reference" else "tab:blue"
            left.plot(np.arange(len(part)) / fps, part, style, color=colour, linewidth=1.1, label=name)
            hz, power = periodogram(wave, fps, nfft=max(4096, len(wave)), window="hann")
            inside = (hz >= 0.5) & (hz <= 4.0)
            peak = float(power[inside].max()) or 1.0
            right.plot(60 * hz[inside], power[inside] / peak, style, color=colour, linewidth=1.1, label=name)
        left.set(title=f"{label(column)}, {recording['name']}", xlabel="seconds", ylabel="standardised")
        right.set(xlabel="bpm", ylabel="power / peak", title="spectrum")
        for panel in (left, right):
            panel.grid(alpha=0.3)
    panels[0][0].legend(fontsize=8, loc="upper right")
    return figure
