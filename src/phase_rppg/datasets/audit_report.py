"""The report of an audit as a self-contained HTML page."""

from __future__ import annotations

import base64
import io
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from ..report.plot_style import BLUE, INK, RED, styled
from ..text import REPORT_POLICY, html_text
from .audit import LOW_COVERAGE, MAX_LAG_S, MAX_SHIFT_S, Audit, RecordingStats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: left } td.n { text-align: right }
img { max-width: 100%; display: block; margin: 1rem 0 } .bad { color: #b3261e } .good { color: #1b6e3c }
"""
_ABOUT_LAGS = (
    "<p>Correlation of the reference with the POS pulse of the video, for shifts of the reference. "
    "A pulse is periodic, so a peak one beat away can be nearly as high. The dot marks the peak nearest to "
    "zero among those that are not significantly below the highest.</p>"
)
_GOOD, _BAD, _INK = BLUE, RED, INK
_ROWS_PER_PLOT = 40  # more rows are not readable


def to_html(audit: Audit) -> str:
    """Return the page."""
    flagged = {f.recording for f in audit.findings}
    verdict = (
        f"<p class=bad>{len(audit.findings)} findings in {len(flagged)} recordings.</p>"
        if audit.findings
        else "<p class=good>No problems were found.</p>"
    )
    parts = [
        f"<h1>Audit of {html_text(audit.dataset)}</h1>",
        f"<p>{html_text(audit.root)}: {len(audit.measured)} recordings of "
        f"{len({m.subject for m in audit.measured})} subjects were measured.</p>",
        verdict,
        _table(["recording", "kind", "what"], [[f.recording, f.kind, f.text] for f in audit.findings])
        if audit.findings
        else "",
    ]
    if audit.measured:
        parts += [
            "<h2>Recordings</h2>", _recordings(audit, flagged),
            "<h2>Frame rates and gaps</h2>", _picture(_frame_rates(audit), "time between frames"),
            "<h2>Face coverage</h2>", _picture(_coverage(audit), "share of frames with a face"),
            "<h2>Heart rates of the references</h2>", _picture(_rates(audit), "histogram of heart rates"),
            "<h2>Lag between reference and video</h2>",
            _ABOUT_LAGS, _picture(_lags(audit), "lag curves"),
            "<h2>References</h2>", _picture(_references(audit), "references with constant intervals"),
            "<h2>Conditions</h2>", _conditions(audit),
        ]  # fmt: skip
    title = f"<title>Audit of {html_text(audit.dataset)}</title>"
    head = (
        f"<!doctype html><html lang=en><meta charset=utf-8>{REPORT_POLICY}{title}"
        f"<style>{_STYLE}</style><body>"
    )
    return head + "\n".join(parts) + "</body></html>\n"


def _recordings(audit: Audit, flagged: set[str]) -> str:
    titles = [
        "recording",
        "subject",
        "frames",
        "s",
        "fps",
        "longest gap s",
        "face",
        "bpm",
        "lag s",
        "agreement",
    ]
    rows = [
        [
            m.name + (" ⚠" if m.name in flagged else ""), m.subject, f"{m.frames}", f"{m.video_s:.1f}",
            f"{m.fps:.2f}", f"{m.longest_gap_s:.3f}", f"{m.coverage:.0%}",
            f"{np.median(m.bpm):.1f}" if len(m.bpm) else "–",
            "–" if m.lag_s is None else f"{m.lag_s:+.2f}", f"{m.agreement:.2f}",
        ]
        for m in audit.measured
    ]  # fmt: skip
    return _table(titles, rows, numbers_from=2)


def _conditions(audit: Audit) -> str:
    counts = Counter((kind, value) for m in audit.measured for kind, value in m.conditions.items())
    rows = [[kind, value, f"{count}"] for (kind, value), count in sorted(counts.items())]
    return (
        _table(["condition", "value", "recordings"], rows, numbers_from=2)
        if rows
        else "<p>The data set states no conditions.</p>"
    )


def _table(titles: list[str], rows: list[list[str]], numbers_from: int = 99) -> str:
    head = "".join(f"<th>{html_text(t)}</th>" for t in titles)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{' class=n' if i >= numbers_from else ''}>{html_text(c)}</td>" for i, c in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _picture(figure: Figure, alt: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html_text(alt)}" src="data:image/png;base64,{data}">'


def _axes(height: float, width: float = 9.0) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    return figure, axes


def _shown(audit: Audit) -> list[RecordingStats]:
    """Return the recordings that get a row; if there are too many, those with findings come first."""
    if len(audit.measured) <= _ROWS_PER_PLOT:
        return list(audit.measured)
    flagged = {f.recording for f in audit.findings}
    first = sorted(audit.measured, key=lambda m: m.name not in flagged)[:_ROWS_PER_PLOT]
    return [m for m in audit.measured if m in first]


def _height(rows: int) -> float:
    return 1.0 + 0.28 * rows


def _label_rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.invert_yaxis()


@styled
def _frame_rates(audit: Audit) -> Figure:
    shown = _shown(audit)
    figure, axes = _axes(_height(len(shown)))
    for row, one in enumerate(shown):
        ms = 1000 * one.steps_s
        low, middle, high = np.percentile(ms, [1, 50, 99])
        axes.plot([low, high], [row, row], color=_GOOD, lw=5, alpha=0.5, solid_capstyle="butt")
        axes.plot(middle, row, "|", color=_INK, ms=10)
        outside = ms[(ms > high) | (ms < low)]
        axes.plot(outside, np.full(len(outside), row), ".", color=_BAD if one.gaps else _GOOD, ms=3)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="x", which="minor", labelsize=7)
    axes.set_xlabel("time between frames in ms (bar: 1–99 %, line: median)")
    _label_rows(axes, [f"{m.name}  {m.fps:.1f} fps" for m in shown])
    return figure


@styled
def _coverage(audit: Audit) -> Figure:
    shown = _shown(audit)
    figure, axes = _axes(_height(len(shown)))
    colours = [_BAD if m.coverage < LOW_COVERAGE else _GOOD for m in shown]
    axes.barh(range(len(shown)), [100 * m.coverage for m in shown], color=colours, height=0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("frames with a face in %")
    _label_rows(axes, [m.name for m in shown])
    return figure


@styled
def _rates(audit: Audit) -> Figure:
    figure, axes = _axes(3.0)
    every = np.concatenate([m.bpm for m in audit.measured])
    axes.hist(every, bins=np.arange(40, 205, 5).tolist(), color=_GOOD, edgecolor="white")
    axes.set_xlabel("heart rate in bpm")
    axes.set_ylabel("windows of 10 s")
    return figure


@styled
def _lags(audit: Audit) -> Figure:
    shown = _shown(audit)
    figure, axes = _axes(1.2 + 0.45 * len(shown))
    for row, one in enumerate(shown):
        axes.plot(one.lags_s, row - 0.9 * one.lag_curve, color=_INK, lw=0.9)
        if one.lag_s is not None:
            bad = abs(one.lag_s) > MAX_SHIFT_S
            axes.plot(one.lag_s, row - 0.9 * one.agreement, "o", color=_BAD if bad else _GOOD, ms=5)
    axes.axvspan(-MAX_SHIFT_S, MAX_SHIFT_S, color=_GOOD, alpha=0.12, lw=0)
    axes.set_xlim(-MAX_LAG_S, MAX_LAG_S)
    axes.set_xlabel("shift of the reference in s (positive: the reference is later)")
    _label_rows(axes, [m.name for m in shown])
    return figure


@styled
def _references(audit: Audit) -> Figure:
    shown = _shown(audit)
    figure, axes = _axes(1.2 + 0.45 * len(shown))
    for row, one in enumerate(shown):
        wave = one.reference
        low, high = np.percentile(wave.values, [2, 98])
        scaled = np.clip((wave.values - low) / (high - low + 1e-12), -0.2, 1.2) - 0.5
        axes.plot(wave.t_s, row - 0.7 * scaled, color=_INK, lw=0.4)
        for start_s, end_s in one.flat:
            axes.plot([start_s, end_s], [row, row], color=_BAD, lw=4, solid_capstyle="butt", alpha=0.7)
    axes.set_xlabel("time in s (red: the reference is constant)")
    _label_rows(axes, [m.name for m in shown])
    return figure
