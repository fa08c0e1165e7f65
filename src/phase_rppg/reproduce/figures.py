"""Plots of a finished plan, each with the origin of its data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..evaluate import plots, synthetic_stamp
from ..evaluate.significance import RankTest
from ..report.figure_file import save_figure
from ..report.plot_style import styled
from . import printed_numbers
from .plan import HARD_WORLDS, LIGHTS, MODULES
from .result_tables import comparisons, label, summaries, values
from .runner import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI = 110
_PAPER = "#b03a2e"
SHOWN = 2  # recordings per data set in the waveform plots
SUBJECTS = ("22", "9")  # the paper draws these where the test has them
SECONDS = 10.0  # length of the plotted waveforms


def draw(outcome: Outcome, folder: Path, ranks: RankTest | None = None) -> list[Path]:
    """Write the figures of a plan and return their files."""
    figures = _main_figures(outcome, folder) | _agreement_figures(outcome)
    if ranks is not None:
        title = f"{outcome.plan.title}\n(mean ranks over subjects, convention: {outcome.convention.name})"
        figures["critical-difference"] = plots.critical_difference(ranks, title=title)
    written = []
    for name, figure in figures.items():
        synthetic_stamp.draw_stamp(figure, outcome.stamp)
        path = folder / f"{_file_name(name)}.png"
        save_figure(figure, path)
        written.append(path)
    return written


def _main_figures(outcome: Outcome, folder: Path) -> dict[str, Figure]:
    """Return the bar charts or the waveforms of a plan by name."""
    plan = outcome.plan
    figures: dict[str, Figure] = {}
    if plan.view == "count":
        if outcome.counts:
            figures[plan.name] = count_bars(outcome)
    elif plan.view == "waves":
        for column in plan.columns:
            if results := outcome.results.get((plan.rows[-1], column)):
                figures[f"waves-{column}"] = waveforms(results[0], column, folder)
    elif plan.name == "study" and outcome.results:
        variants = [row for row in plan.rows if row in MODULES]
        figures[plan.name] = bars(outcome, [row for row in plan.rows if row not in variants], plan.columns)
        if variants:
            figures["ablation"] = bars(outcome, ["phasenet-stream", *variants], list(HARD_WORLDS))
    elif plan.name == "ablation-zas" and outcome.results:
        figures[plan.name] = zas_panels(outcome)
    elif outcome.results:
        figures[plan.name] = bars(outcome, plan.rows, plan.columns)
    return figures


def _agreement_figures(outcome: Outcome) -> dict[str, Figure]:
    """Return scatter and Bland–Altman plots of PHASE-Net for every column with three or more recordings."""
    plan = outcome.plan
    figures: dict[str, Figure] = {}
    best = plan.rows[-1] if plan.name != "study" else "phasenet-stream"
    for column in plan.columns if plan.view in ("table", "condition") else []:
        readings = [
            c
            for result in outcome.results.get((best, column), [])
            for c in comparisons(result, outcome.convention.name, "whole")
        ]
        if len(readings) >= 3 and plan.name.startswith(("table", "study", "fig")):
            bpm = np.array([c.bpm for c in readings])
            truth = np.array([c.truth_bpm for c in readings])
            title = f"{label(best)} → {label(column)}"
            figures[f"scatter-{column}"] = plots.scatter(bpm, truth, title=title)
            figures[f"bland-altman-{column}"] = plots.bland_altman(bpm, truth, title=title)
    return figures


def _file_name(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in name)


def bars(outcome: Outcome, rows: Sequence[str], columns: Sequence[str]) -> Figure:
    """Return a bar chart of the first metric of whole recordings, with the numbers of the paper as lines."""
    from matplotlib.figure import Figure

    plan = outcome.plan
    metric = plan.metrics[0]
    convention = outcome.convention.name
    light = plan.view == "condition"
    columns = LIGHTS if light else columns
    figure = Figure(
        figsize=(max(6.4, 1.1 + 0.24 * len(rows) * len(columns)), 4.4), dpi=_DPI, layout="constrained"
    )
    axes = figure.subplots()
    width = 0.82 / len(rows)
    in_legend = False
    for index, row in enumerate(rows):
        offset = (index - (len(rows) - 1) / 2) * width
        heights, errors = [], []
        for number, column in enumerate(columns):
            results = outcome.results.get((row, "mmpd" if light else column), [])
            condition = ("light", column) if light else None
            found = values(summaries(results, convention, "whole", condition), metric)
            heights.append(float(np.mean(found)) if found else 0.0)
            errors.append(float(np.std(found, ddof=1)) if len(found) > 1 else 0.0)
            printed = printed_numbers.value(plan.name, row, column, metric)
            if printed is not None:
                axes.plot(
                    [number + offset - width / 2, number + offset + width / 2], [printed, printed],
                    color=_PAPER, linewidth=2, label=None if in_legend else "paper",
                )  # fmt: skip
                in_legend = True
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


@styled
def zas_panels(outcome: Outcome) -> Figure:
    """Return the ablation of ZAS as the paper draws it: over the block size b, and over the channels p_c."""
    from matplotlib.figure import Figure

    plan = outcome.plan
    figure = Figure(figsize=(8.2, 3.6), dpi=_DPI, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    names = {"b": "block size b", "p_c": "swapped channel groups p_c (of eight)"}
    for panel, (symbol, axis) in zip(panels, names.items(), strict=True):
        rows = [row for row in plan.rows if row.startswith(f"{symbol} = ")]
        places = range(len(rows))
        for metric, style in zip(plan.metrics, ("o-", "s--"), strict=False):
            found = [
                values(summaries(outcome.results.get((row, c), []), outcome.convention.name, "whole"), metric)
                for row in rows
                for c in plan.columns[:1]
            ]
            means = [float(np.mean(v)) if v else np.nan for v in found]
            spread = [float(np.std(v, ddof=1)) if len(v) > 1 else 0.0 for v in found]
            panel.errorbar(places, means, spread, fmt=style, capsize=3, label=metric)
        panel.set_xticks(places, [row.removeprefix(f"{symbol} = ") for row in rows])
        panel.set_xlabel(axis)
        panel.grid(alpha=0.3)
    # After both panels are drawn: a limit that is set earlier would cut off larger errors.
    panels[0].set_ylim(0, max(1.08 * panels[0].dataLim.y1, 1.08 * panels[1].dataLim.y1, 1e-3))
    panels[0].set_ylabel("error (bpm)")
    panels[1].legend(fontsize=8)
    figure.suptitle(f"{plan.title}\n(whole recordings, convention: {outcome.convention.name})", fontsize=10)
    return figure


def count_bars(outcome: Outcome) -> Figure:
    """Return bar charts of parameters and multiply-accumulates, with the numbers of the paper as marks."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 4.4), dpi=_DPI, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    rows = list(outcome.counts)
    for panel, number in zip(panels, range(2), strict=True):
        metric = outcome.plan.metrics[number]
        counted = [outcome.counts[row][number] for row in rows]
        panel.barh(range(len(rows)), counted, 0.7, color="tab:blue", label="counted")
        printed = [(i, printed_numbers.value("table5", row, "clip", metric)) for i, row in enumerate(rows)]
        known = [(i, value) for i, value in printed if value is not None]
        panel.plot(
            [value for _, value in known], [i for i, _ in known], "|", color=_PAPER, markersize=15,
            markeredgewidth=2.5, label="paper",
        )  # fmt: skip
        for i, value in enumerate(counted):
            right = max(value, dict(known).get(i, 0.0))  # the end of the bar or the mark
            panel.annotate(f"  {value:.3g}", (right, i), va="center", fontsize=7)
        panel.set_yticks(range(len(rows)), [label(row) for row in rows])
        panel.set(xlabel=metric, xlim=(0, 1.15 * max(counted + [v for _, v in known])))
        panel.set_axisbelow(True)
        panel.grid(alpha=0.3, axis="x")
    panels[0].invert_yaxis()
    panels[1].legend(fontsize=8, loc="lower right")
    figure.suptitle(outcome.plan.title, fontsize=10)
    return figure


def drawn_recordings(recordings: Sequence[dict[str, Any]]) -> list[int]:
    """Return the recordings to draw: subjects 22 and 9, or the first ones instead of absent subjects."""
    by_subject: dict[str, int] = {}
    for number, recording in enumerate(recordings):
        by_subject.setdefault("".join(filter(str.isdigit, recording["subject"])).lstrip("0"), number)
    chosen = [by_subject[subject] for subject in SUBJECTS if subject in by_subject]
    others = [number for number in range(len(recordings)) if number not in chosen]
    return [*chosen, *others][: min(SHOWN, len(recordings))]


def waveforms(result: dict[str, Any], column: str, folder: Path) -> Figure:
    """Return a figure of predicted and reference waveforms with their spectra, for a few recordings."""
    from matplotlib.figure import Figure
    from scipy.signal import periodogram

    from .store import Store

    stored = Store(folder.parent / "cache").waves(result["key"])
    numbers = drawn_recordings(result["recordings"])
    shown = len(numbers)
    figure = Figure(figsize=(9.0, 2.3 * shown + 0.6), dpi=_DPI, layout="constrained")
    panels = figure.subplots(shown, 2, squeeze=False, width_ratios=(2, 1))
    fps = 30.0
    for place, number in enumerate(numbers):
        recording = result["recordings"][number]
        left, right = panels[place]
        for name, kind, style in (("reference", "reference", "-"), ("prediction", "wave", "--")):
            wave = stored[f"{kind}{number}"].astype(float)
            wave = (wave - wave.mean()) / (wave.std() or 1.0)
            part = wave[: round(SECONDS * fps)]
            colour = "black" if kind == "reference" else "tab:blue"
            left.plot(np.arange(len(part)) / fps, part, style, color=colour, linewidth=1.1, label=name)
            hz, power = periodogram(wave, fps, nfft=max(4096, len(wave)), window="hann")
            inside = (hz >= 0.5) & (hz <= 4.0)
            peak = float(power[inside].max()) or 1.0
            right.plot(60 * hz[inside], power[inside] / peak, style, color=colour, linewidth=1.1, label=name)
        left.set(title=f"{label(column)}, {recording['name']}", xlabel="time (s)", ylabel="standardised")
        right.set(xlabel="bpm", ylabel="power / peak", title="spectrum")
        for panel in (left, right):
            panel.grid(alpha=0.3)
    panels[0][0].legend(fontsize=8, loc="upper right")
    return figure
