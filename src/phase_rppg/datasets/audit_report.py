"""The audit as one HTML page that needs nothing beside it."""

from __future__ import annotations

import base64
import html
import io
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from .audit import LOW_COVERAGE, MAX_LAG_S, SHIFTED_S, Audit, Measured

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
    "<p>Correlation of the label with the pulse that POS finds in the video, for shifts of the label. "
    "A pulse repeats itself, so a peak one beat away can be nearly as high; marked is the one nearest to "
    "zero among those that chance cannot tell from the highest.</p>"
)
_GOOD, _BAD, _INK = "#2a7f9e", "#c8402f", "#444444"
_ROWS_PER_PLOT = 40  # beyond it a plot with one row per recording is no longer readable


def to_html(audit: Audit) -> str:
    """The whole page."""
    flagged = {f.recording for f in audit.findings}
    verdict = (
        f"<p class=bad>{len(audit.findings)} findings in {len(flagged)} recordings.</p>"
        if audit.findings
        else "<p class=good>Nothing was found to be wrong.</p>"
    )
    parts = [
        f"<h1>Audit of {html.escape(audit.dataset)}</h1>",
        f"<p>{html.escape(audit.root)}: {len(audit.measured)} recordings of "
        f"{len({m.subject for m in audit.measured})} subjects were measured.</p>",
        verdict,
        _table(["recording", "kind", "what"], [[f.recording, f.kind, f.text] for f in audit.findings])
        if audit.findings
        else "",
    ]
    if audit.measured:
        parts += [
            "<h2>Recordings</h2>", _recordings(audit, flagged),
            "<h2>Frame rates and gaps</h2>", _picture(_frame_rates(audit), "time from frame to frame"),
            "<h2>Face coverage</h2>", _picture(_coverage(audit), "share of frames with a face"),
            "<h2>Heart rates of the references</h2>", _picture(_rates(audit), "histogram of heart rates"),
            "<h2>Label against video</h2>",
            _ABOUT_LAGS, _picture(_lags(audit), "lag curves"),
            "<h2>References</h2>", _picture(_references(audit), "references with flat stretches"),
            "<h2>Conditions</h2>", _conditions(audit),
        ]  # fmt: skip
    title = f"<title>Audit of {html.escape(audit.dataset)}</title>"
    head = f"<!doctype html><html lang=en><meta charset=utf-8>{title}<style>{_STYLE}</style><body>"
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
        _table(["condition", "value", "recordings"], rows, numbers_from=2) if rows else "<p>None stated.</p>"
    )


def _table(titles: list[str], rows: list[list[str]], numbers_from: int = 99) -> str:
    head = "".join(f"<th>{html.escape(t)}</th>" for t in titles)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{' class=n' if i >= numbers_from else ''}>{html.escape(c)}</td>" for i, c in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _picture(figure: Figure, alt: str) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{data}">'


def _axes(height: float, width: float = 9.0) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _shown(audit: Audit) -> list[Measured]:
    """The recordings that get a row of their own: those with findings first, when there are too many."""
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
    axes.set_xlabel("time from frame to frame in ms (bar: 1–99 %, line: median)")
    _label_rows(axes, [f"{m.name}  {m.fps:.1f} fps" for m in shown])
    return figure


def _coverage(audit: Audit) -> Figure:
    shown = _shown(audit)
    figure, axes = _axes(_height(len(shown)))
    colours = [_BAD if m.coverage < LOW_COVERAGE else _GOOD for m in shown]
    axes.barh(range(len(shown)), [100 * m.coverage for m in shown], color=colours, height=0.6)
    axes.set_xlim(0, 100)
    axes.set_xlabel("frames with a face in %")
    _label_rows(axes, [m.name for m in shown])
    return figure


def _rates(audit: Audit) -> Figure:
    figure, axes = _axes(3.0)
    every = np.concatenate([m.bpm for m in audit.measured])
    axes.hist(every, bins=np.arange(40, 205, 5).tolist(), color=_GOOD, edgecolor="white")
    axes.set_xlabel("heart rate in bpm")
    axes.set_ylabel("windows of 10 s")
    return figure


def _lags(audit: Audit) -> Figure:
    shown = _shown(audit)
    figure, axes = _axes(1.2 + 0.45 * len(shown))
    for row, one in enumerate(shown):
        axes.plot(one.lags_s, row - 0.9 * one.lag_curve, color=_INK, lw=0.9)
        if one.lag_s is not None:
            bad = abs(one.lag_s) > SHIFTED_S
            axes.plot(one.lag_s, row - 0.9 * one.agreement, "o", color=_BAD if bad else _GOOD, ms=5)
    axes.axvspan(-SHIFTED_S, SHIFTED_S, color=_GOOD, alpha=0.12, lw=0)
    axes.set_xlim(-MAX_LAG_S, MAX_LAG_S)
    axes.set_xlabel("shift of the label in s (positive: the label comes later)")
    _label_rows(axes, [m.name for m in shown])
    return figure


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
    axes.set_xlabel("time in s (red: the reference stands still)")
    _label_rows(axes, [m.name for m in shown])
    return figure
