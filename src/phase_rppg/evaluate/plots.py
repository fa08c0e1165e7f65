"""Plots of agreement, risk–coverage curves and reliability, independent of pyplot's global state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError
from ..report.plot_style import BLUE, GREEN, QUIET, RED, styled
from ..types import FloatArray
from . import agreement, metrics
from .selective import Reliability, RiskCoverage
from .significance import LEVEL, RankTest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DPI = 110
_MAX_LEGEND = 12  # groups in a legend; the colours of more groups repeat


@styled
def scatter(
    estimate: FloatArray, truth: FloatArray, *, title: str = "", groups: FloatArray | list[str] | None = None
) -> Figure:
    """Return a scatter plot of readings over the reference, with the identity line and the ±5 bpm band."""
    left, right = metrics.paired(estimate, truth)
    figure, axes = _square()
    low, high = _range(np.concatenate([left, right]))
    ends = np.array([low, high])
    axes.fill_between(
        ends, ends - metrics.WITHIN_BPM, ends + metrics.WITHIN_BPM,
        color=GREEN, alpha=0.12, linewidth=0, label=f"within {metrics.WITHIN_BPM:g} bpm",
    )  # fmt: skip
    axes.plot(ends, ends, color="black", linewidth=0.8)
    _points(axes, right, left, groups)
    summary = metrics.summarise(left, right)
    r = "–" if summary.pearson is None else f"{summary.pearson.value:.3f}"
    axes.set(
        xlim=(low, high), ylim=(low, high), xlabel="reference (bpm)", ylabel="reading (bpm)", title=title
    )
    numbers = f"MAE {summary.mae.value:.2f} bpm\nRMSE {summary.rmse.value:.2f} bpm\nr = {r}"
    axes.text(0.03, 0.97, f"n = {summary.count}\n{numbers}", transform=axes.transAxes, va="top", fontsize=9)
    axes.set_aspect("equal")
    _legend(figure, axes, groups)
    return figure


@styled
def bland_altman(
    estimate: FloatArray, truth: FloatArray, *, title: str = "", groups: FloatArray | list[str] | None = None
) -> Figure:
    """Return a Bland–Altman plot with the bias, the limits of agreement and their confidence intervals."""
    means, differences = agreement.means_and_differences(estimate, truth)
    numbers = agreement.bland_altman(estimate, truth)
    figure, axes = _figure((7.2, 4.4))
    for value, interval, colour, name in (
        (numbers.upper, numbers.upper_interval, RED, "+1.96 sd"),
        (numbers.bias, numbers.bias_interval, BLUE, "bias"),
        (numbers.lower, numbers.lower_interval, RED, "−1.96 sd"),
    ):
        axes.axhline(value, color=colour, linewidth=1.1, linestyle="-" if name == "bias" else "--")
        axes.axhspan(interval.low, interval.high, color=colour, alpha=0.12, linewidth=0)
        axes.annotate(
            f"{name}\n{value:+.2f}".replace("-", "−"),
            (1.01, value),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
        )
    axes.axhline(0, color="black", linewidth=0.6)
    _points(axes, means, differences, groups)
    axes.set(xlabel="mean of reading and reference (bpm)", ylabel="reading − reference (bpm)", title=title)
    if groups is not None:
        _legend(figure, axes, groups)
    return figure


@styled
def risk_coverage(curves: Mapping[str, RiskCoverage], *, title: str = "") -> Figure:
    """Return the risk–coverage curves of one or several models."""
    figure, axes = _figure((6.4, 4.4))
    for name, curve in curves.items():
        label = f"{name}: AURC {curve.aurc:.3g} (best order {curve.best_aurc:.3g})"
        axes.plot(curve.coverage, curve.risk, label=label, drawstyle="steps-mid", linewidth=1.4)
    axes.set(
        xlim=(0, 1), xlabel="coverage: share of windows with a reading", ylabel="mean |error| (bpm)",
        title=title,
    )  # fmt: skip
    axes.set_ylim(bottom=0)
    if curves:
        axes.legend(fontsize=8)
    return figure


@styled
def reliability(table: Reliability, *, title: str = "") -> Figure:
    """Return a reliability diagram: observed over stated probability, and the number of readings."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 6.0), dpi=_DPI, layout="constrained")
    axes, counts = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    stated = np.array([b.stated for b in table.bins])
    observed = np.array([b.observed for b in table.bins])
    spread = np.array([[b.observed - b.observed_low, b.observed_high - b.observed] for b in table.bins]).T
    axes.plot([0, 1], [0, 1], color="black", linewidth=0.8, label="perfect calibration")
    axes.errorbar(
        stated, observed, yerr=np.maximum(spread, 0), fmt="o-", color=BLUE, capsize=3, linewidth=1.2,
        label="observed, 95 % interval",
    )  # fmt: skip
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), ylabel="share within 5 bpm", title=title)
    axes.text(
        0.03, 0.97, f"n = {table.count}\nECE {table.ece:.3f}\nBrier {table.brier:.3f}",
        transform=axes.transAxes, va="top", fontsize=9, zorder=5,
        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 2},
    )  # fmt: skip
    axes.legend(loc="lower right", fontsize=8)
    for b in table.bins:
        counts.bar((b.low + b.high) / 2, b.count, width=0.9 * (b.high - b.low), color=QUIET)
    counts.set(xlabel="stated probability", ylabel="readings")
    for panel in (axes, counts):
        panel.set_axisbelow(True)
        panel.grid(alpha=0.3)
    return figure


def _figure(size: tuple[float, float]) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=_DPI, layout="constrained")
    axes = figure.subplots()
    axes.grid(alpha=0.3)
    return figure, axes


def _square() -> tuple[Figure, Axes]:
    return _figure((5.4, 5.2))


def _range(values: FloatArray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = max(0.06 * (high - low), metrics.WITHIN_BPM)
    return low - margin, high + margin


def _points(axes: Axes, x: FloatArray, y: FloatArray, groups: FloatArray | list[str] | None) -> None:
    """Draw the points, with one colour for each group."""
    if groups is None:
        axes.scatter(x, y, s=16, alpha=0.7, color=BLUE, edgecolors="none")
        return
    names = np.asarray(groups, dtype=str)
    if names.shape != x.shape:
        raise ArgumentError("groups", f"shape {names.shape}", f"one name per reading, {x.shape}")
    for name in np.unique(names):
        inside = names == name
        axes.scatter(x[inside], y[inside], s=16, alpha=0.7, edgecolors="none", label=str(name))


def _legend(figure: Figure, axes: Axes, groups: FloatArray | list[str] | None) -> None:
    """Draw the legend; with groups it is below the axes, where it covers no points."""
    group_names = set() if groups is None else {str(name) for name in groups}
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    if len(group_names) > _MAX_LEGEND:
        handles = {name: handle for name, handle in handles.items() if name not in group_names}
    if group_names.intersection(handles):
        figure.legend(handles.values(), handles, loc="outside lower center", ncols=4, fontsize=8)
    elif handles:
        axes.legend(handles.values(), handles, loc="lower right", fontsize=8)


@styled
def critical_difference(test: RankTest, *, title: str = "") -> Figure:
    """Return the critical-difference diagram: mean ranks on an axis, bars join models not told apart."""
    from matplotlib.figure import Figure

    count = len(test.names)
    rows = (count + 1) // 2
    height = 1.5 + 0.24 * (rows + len(test.groups))
    figure = Figure(figsize=(7.2, height), dpi=110, layout="constrained")
    axes = figure.subplots()
    axes.set(xlim=(0.2, count + 0.8), ylim=(-(rows + 0.8 + 0.5 * len(test.groups)), 1.6))
    axes.axis("off")
    axes.plot([1, count], [0, 0], color="black", linewidth=1)
    for tick in range(1, count + 1):
        axes.plot([tick, tick], [0, 0.12], color="black", linewidth=1)
        axes.annotate(str(tick), (tick, 0.2), ha="center", fontsize=8)
    axes.plot([1, 1 + test.critical_difference], [0.95, 0.95], color=RED, linewidth=2)
    note = f"critical difference {test.critical_difference:.2f} ({LEVEL:.0%}, {test.subjects} subjects)"
    axes.annotate(note, (1, 1.1), fontsize=8, color=RED)
    below = 0.5 * len(test.groups) + 0.3
    for number, (name, rank) in enumerate(zip(test.names, test.ranks, strict=True)):
        left = number < rows
        row = number if left else count - 1 - number
        level = -(below + 0.8 * row + 0.4)
        side = 0.75 if left else count + 0.25
        axes.plot([rank, rank, side], [0, level, level], color=QUIET, linewidth=0.8)
        axes.annotate(
            f"{name} ({rank:.2f})", (side, level), ha="right" if left else "left", va="center", fontsize=8,
            annotation_clip=False,
        )  # fmt: skip
    for number, group in enumerate(test.groups):
        ranks = [test.ranks[test.names.index(name)] for name in group]
        level = -0.3 - 0.4 * number
        axes.plot([min(ranks) - 0.04, max(ranks) + 0.04], [level, level], color="black", linewidth=3.5)
    axes.set_title(title, fontsize=10)
    return figure
