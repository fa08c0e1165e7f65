"""Plots of a result: the waveform with its beats, the spectrum with its peak, the rate over time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..session.results import FaceResult, Result, WindowResult
from ..signal import filters, rate
from ..signal.constants import DISPLAY_BAND_HZ
from ..signal.resample import interpolate_invalid
from ..types import Estimate, FloatArray, Waveform
from .document import face_text
from .figure_file import save_figure
from .plot_style import BEAT, INK, PULSE, QUIET, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_FACES = 4  # columns of the figure
SHOWN_S = 12.0  # length of the plotted waveform
_SETTLE_S = 3.0  # filtered beyond both ends of the plot, so that it shows no edge effects


def save(path: str | Path, result: Result) -> None:
    """Write the figure of a result as PNG, SVG or PDF, by the suffix of the path."""
    save_figure(figure(result), path, dpi=120)


def svg(result: Result) -> str:
    """Return the figure of a result as SVG text."""
    buffer = io.StringIO()
    figure(result).savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


@styled
def figure(result: Result) -> Figure:
    """Return a figure with three panels for each face."""
    from matplotlib.figure import Figure

    faces = result.faces[:MAX_FACES]
    columns = max(len(faces), 1)
    fig = Figure(figsize=(8.5 * columns if columns == 1 else 6.5 * columns, 8.2), layout="constrained")
    fig.suptitle(f"{Path(result.video).name}  ·  {result.method}", fontsize=11, color=INK)
    if not faces:
        axes = fig.add_subplot()
        axes.axis("off")
        axes.text(0.5, 0.5, f"no reading: {result.reason}", ha="center", va="center", fontsize=14, color=INK)
        return fig
    grid = fig.subplots(3, columns, squeeze=False)
    for column, face in enumerate(faces):
        window = best_window(face)
        label = f"face {face.id}: " if len(result.faces) > 1 else ""
        _draw_wave(grid[0, column], face, window, title=label + short_text(face))
        _draw_spectrum(grid[1, column], face, window)
        _draw_rate(grid[2, column], face, result.duration_s)
    return fig


def best_window(face: FaceResult) -> WindowResult | None:
    """Return the window with the highest `p_ok`; windows with a rate have precedence."""
    return max(
        face.windows,
        key=lambda w: (isinstance(w.reading, Estimate), w.reading.p_ok, w.quality.snr_db),
        default=None,
    )


def rate_series(face: FaceResult) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the centre time, bpm, low and high of each window (W,); NaN, a gap in a plot, without a rate."""
    rows = [
        (
            (w.start_s + w.end_s) / 2,
            *(
                (w.reading.bpm, w.reading.low, w.reading.high)
                if isinstance(w.reading, Estimate)
                else (np.nan, np.nan, np.nan)
            ),
        )
        for w in face.windows
    ]
    table = np.array(rows, float).reshape(-1, 4)
    return table[:, 0], table[:, 1], table[:, 2], table[:, 3]


def short_text(face: FaceResult) -> str:
    """Return the summary of a face without the advice."""
    return face_text(face).split(" – ")[0].split("; ")[0]


def _slice(wave: Waveform, start_s: float, end_s: float) -> Waveform:
    first = max(round((start_s - wave.start_s) * wave.fps), 0)
    last = max(round((end_s - wave.start_s) * wave.fps), first)
    return Waveform(
        wave.values[first:last], wave.fps, wave.start_s + first / wave.fps, wave.valid[first:last]
    )


def _draw_wave(axes: Axes, face: FaceResult, window: WindowResult | None, title: str) -> None:
    axes.set_title(title, fontsize=10, color=INK)
    interval_s = plotted_interval(face, window)
    if draw_wave(axes, face, *interval_s):
        axes.legend(loc="upper right", fontsize=8, frameon=False)
    axes.set_xlim(interval_s)


def plotted_interval(face: FaceResult, window: WindowResult | None) -> tuple[float, float]:
    """Return the start and the end of the plotted waveform in seconds, centred on a window if possible."""
    wave = face.wave
    last_s = wave.start_s + len(wave.values) / wave.fps - SHOWN_S
    middle_s = (window.start_s + window.end_s) / 2 if window is not None else wave.start_s
    start_s = max(wave.start_s, min(middle_s - SHOWN_S / 2, last_s))
    return start_s, start_s + SHOWN_S


def draw_wave(axes: Axes, face: FaceResult, start_s: float, end_s: float) -> int:
    """Draw the waveform of a face between two times, with its beats; returns the number of beats."""
    count = 0
    wider = _slice(face.wave, start_s - _SETTLE_S, end_s + _SETTLE_S)
    smooth = Waveform(display_filter(wider), wider.fps, wider.start_s, wider.valid)
    wave = _slice(smooth, start_s, end_s)
    if len(wave.values) > 2:
        peak = float(np.max(np.abs(wave.values[wave.valid]), initial=0.0)) or 1.0
        values = np.where(wave.valid, wave.values / peak, np.nan)
        has_rate = isinstance(face.summary, Estimate)
        axes.plot(wave.t_s, values, color=PULSE if has_rate else QUIET, lw=1.3)
        beats_s = face.beats_s[(face.beats_s >= wave.t_s[0]) & (face.beats_s <= wave.t_s[-1])]
        count = len(beats_s)
        axes.plot(*beat_markers(wave.t_s, values, beats_s), "o", color=BEAT, ms=4, label=f"{count} beats")
    axes.set_ylim(-1.25, 1.35)
    axes.set_yticks([])
    _label(axes, "time (s)", "pulse waveform")
    return count


def beat_markers(t_s: FloatArray, values: FloatArray, beats_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the times and heights of the beat markers: the maximum of the curve near each beat.

    Beat detection uses a narrower band than the curve, so their maxima differ slightly.
    """
    reach_s = 0.25 * float(np.median(np.diff(beats_s))) if len(beats_s) > 1 else 0.15
    near = (np.abs(t_s - beats_s[:, None]) <= reach_s) & np.isfinite(values)  # (N,T)
    near = near[near.any(1)]
    top = np.argmax(np.where(near, values, -np.inf), axis=1)
    return t_s[top], values[top]


def _draw_spectrum(axes: Axes, face: FaceResult, window: WindowResult | None) -> None:
    wave = _slice(face.wave, window.start_s, window.end_s) if window is not None else None
    if wave is not None and wave.valid.any() and len(wave.values) > 2:
        spec = rate.spectrum(wave)
        inside = (spec.hz >= 0.5) & (spec.hz <= 4.0)
        top = float(spec.power[spec.band].max()) or 1.0
        axes.fill_between(60 * spec.hz[inside], spec.power[inside] / top, color=QUIET, alpha=0.45, lw=0)
        axes.plot(60 * spec.hz[inside], spec.power[inside] / top, color=INK, lw=0.9)
        peak = window.peak if window is not None else None
        if peak is not None and window is not None:
            shown = isinstance(window.reading, Estimate)
            text = f"{peak.bpm:.1f} bpm{', refused' * (not shown)}"
            axes.axvline(peak.bpm, color=PULSE, lw=1.2, ls="-" if shown else ":")
            side = -1 if peak.bpm > 150 else 1
            axes.annotate(
                text, (peak.bpm, 1.0), xytext=(5 * side, 2), textcoords="offset points",
                color=PULSE, fontsize=9, ha="left" if side > 0 else "right", va="bottom",
            )  # fmt: skip
            axes.set_title(f"spectrum of {window.start_s:.0f}–{window.end_s:.0f} s", fontsize=9, color=INK)
    axes.set_xlim(30, 240)
    axes.set_ylim(0, 1.2)
    axes.set_yticks([])
    _label(axes, "rate (bpm)", "power")


def _draw_rate(axes: Axes, face: FaceResult, duration_s: float) -> None:
    t_s, bpm, low, high = rate_series(face)
    if np.isfinite(bpm).any():
        axes.fill_between(t_s, low, high, color=PULSE, alpha=0.18, lw=0)
        axes.plot(t_s, bpm, "-o", color=PULSE, ms=3, lw=1.2)
        bottom, top = float(np.nanmin(low)), float(np.nanmax(high))
        axes.set_ylim(bottom - 8, top + 8)
        axes.locator_params(axis="y", integer=True)
    else:
        axes.set_ylim(40, 180)
        axes.text(
            0.5, 0.5, "no reading", transform=axes.transAxes, ha="center", va="center", color=QUIET, size=13
        )
    bottom = axes.get_ylim()[0]
    gaps = np.isnan(bpm)
    if gaps.any() and not gaps.all():
        axes.plot(t_s[gaps], np.full(int(gaps.sum()), bottom), "|", color=QUIET, ms=9, label="no reading")
        axes.legend(loc="upper right", fontsize=8, frameon=False)
    axes.set_xlim(0, max(duration_s, 1.0))
    _label(axes, "time (s)", "heart rate (bpm)")


def display_filter(wave: Waveform) -> FloatArray:
    """Return the waveform filtered for display, without drift and fast noise."""
    return filters.pulse_band(interpolate_invalid(wave.values, wave.valid), wave.fps, DISPLAY_BAND_HZ)


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
