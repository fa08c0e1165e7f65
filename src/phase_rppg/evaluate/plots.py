"""Pictures of agreement and trust, as figures that no other plot can disturb."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError
from ..fileio import atomic_path
from ..types import FloatArray
from . import agreement, metrics
from .selective import Calibration, RiskCoverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
_DPI = 110
_NAMED = 12  # groups; of more the colours repeat and names say nothing


def scatter(
    estimate: FloatArray, truth: FloatArray, *, title: str = "", groups: FloatArray | list[str] | None = None
) -> Figure:
    """Readings over the truth, with the line they should lie on and the ±5 bpm around it."""
    left, right = metrics.paired(estimate, truth)
    figure, axes = _square()
    low, high = _range(np.concatenate([left, right]))
    ends = np.array([low, high])
    axes.fill_between(
        ends, ends - metrics.WITHIN_BPM, ends + metrics.WITHIN_BPM,
        color="tab:green", alpha=0.12, linewidth=0, label=f"within {metrics.WITHIN_BPM:g} bpm",
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


def bland_altman(
    estimate: FloatArray, truth: FloatArray, *, title: str = "", groups: FloatArray | list[str] | None = None
) -> Figure:
    """Differences over means, with the bias, the limits of agreement and how sure we are of them."""
    means, differences = agreement.means_and_differences(estimate, truth)
    numbers = agreement.bland_altman(estimate, truth)
    figure, axes = _figure((7.2, 4.4))
    for value, interval, colour, name in (
        (numbers.upper, numbers.upper_interval, "tab:red", "+1.96 sd"),
        (numbers.bias, numbers.bias_interval, "tab:blue", "bias"),
        (numbers.lower, numbers.lower_interval, "tab:red", "−1.96 sd"),
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


def risk_coverage(
    curves: Mapping[str, RiskCoverage], *, title: str = "", risk_label: str = "mean |error| (bpm)"
) -> Figure:
    """How wrong the readings are that we keep, over how many we keep, for one or several systems."""
    figure, axes = _figure((6.4, 4.4))
    for name, curve in curves.items():
        label = f"{name}: AURC {curve.aurc:.3g} (best order {curve.best_aurc:.3g})"
        axes.plot(curve.coverage, curve.risk, label=label, drawstyle="steps-mid", linewidth=1.4)
    axes.set(xlim=(0, 1), xlabel="coverage: share of windows with a reading", ylabel=risk_label, title=title)
    axes.set_ylim(bottom=0)
    if curves:
        axes.legend(fontsize=8)
    return figure


def reliability(table: Calibration, *, title: str = "") -> Figure:
    """How often readings were right, over how sure they claimed to be, and how many claimed it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 6.0), dpi=_DPI, layout="constrained")
    axes, counts = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    stated = np.array([b.stated for b in table.bins])
    observed = np.array([b.observed for b in table.bins])
    spread = np.array([[b.observed - b.observed_low, b.observed_high - b.observed] for b in table.bins]).T
    axes.plot([0, 1], [0, 1], color="black", linewidth=0.8, label="comes true as stated")
    axes.errorbar(
        stated, observed, yerr=np.maximum(spread, 0), fmt="o-", color="tab:blue", capsize=3, linewidth=1.2,
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
        counts.bar((b.low + b.high) / 2, b.count, width=0.9 * (b.high - b.low), color="tab:grey")
    counts.set(xlabel="stated probability", ylabel="readings")
    for panel in (axes, counts):
        panel.set_axisbelow(True)
        panel.grid(alpha=0.3)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure as PNG, SVG or PDF, whole or not at all."""
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ArgumentError("plot", path, f"a file name that ends in {', '.join(SUFFIXES)}")
    with atomic_path(path) as temporary:
        figure.savefig(temporary)


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
    """The points, one colour per group if there are groups."""
    if groups is None:
        axes.scatter(x, y, s=16, alpha=0.7, color="tab:blue", edgecolors="none")
        return
    names = np.asarray(groups, dtype=str)
    if names.shape != x.shape:
        raise ArgumentError("groups", f"shape {names.shape}", f"one name per reading, {x.shape}")
    for name in np.unique(names):
        inside = names == name
        axes.scatter(x[inside], y[inside], s=16, alpha=0.7, edgecolors="none", label=str(name))


def _legend(figure: Figure, axes: Axes, groups: FloatArray | list[str] | None) -> None:
    """What the marks are; names of groups stand below the picture, where they hide nothing."""
    named = set() if groups is None else {str(name) for name in groups}
    marks = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    if len(named) > _NAMED:
        marks = {name: mark for name, mark in marks.items() if name not in named}
    if named.intersection(marks):
        figure.legend(marks.values(), marks, loc="outside lower center", ncols=4, fontsize=8)
    elif marks:
        axes.legend(marks.values(), marks, loc="lower right", fontsize=8)
