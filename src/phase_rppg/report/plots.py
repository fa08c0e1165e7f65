"""Pictures of a result: the wave with its beats, the spectrum with the chosen line, the rate over time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..fileio import atomic_path
from ..session.results import FaceResult, Result, WindowResult
from ..signal import filters, rate
from ..signal.constants import DISPLAY_BAND_HZ
from ..signal.resample import bridge
from ..types import Estimate, FloatArray, Waveform
from .document import line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_FACES = 4  # columns of one picture
SHOWN_S = 12.0  # of the wave
_SETTLE_S = 3.0  # more on both sides, so that the filter has no ends in the picture
INK, PULSE, QUIET, BEAT = "#1b1f24", "#c0392b", "#9aa4af", "#2c3e50"
_STYLE: dict[str, Any] = {"size": 9, "color": INK}


def save_png(path: str | Path, result: Result) -> None:
    """Write the picture as PNG; whole or not at all."""
    with atomic_path(path) as temporary:
        figure(result).savefig(temporary, format="png", dpi=120)


def svg(result: Result) -> str:
    """The picture as SVG text, for a page."""
    buffer = io.StringIO()
    figure(result).savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def figure(result: Result) -> Figure:
    """Three panels for each face."""
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
        window = clearest(face)
        _draw_wave(grid[0, column], face, window, title=f"face {face.id}: {short(face)}")
        _draw_spectrum(grid[1, column], face, window)
        _draw_rate(grid[2, column], face, result.duration_s)
    return fig


def clearest(face: FaceResult) -> WindowResult | None:
    """The window to show: the one most likely right, among those with a reading if there are any."""
    return max(
        face.windows,
        key=lambda w: (isinstance(w.reading, Estimate), w.reading.p_ok, w.quality.snr_db),
        default=None,
    )


def rate_series(face: FaceResult) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Middle of each window, bpm, low and high, with nan where there is no reading: plots draw a gap
    there.
    """
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


def short(face: FaceResult) -> str:
    """The reading of a face, without the advice."""
    return line(face).split(" – ")[0]


def _cut(wave: Waveform, start_s: float, end_s: float) -> Waveform:
    first = max(round((start_s - wave.start_s) * wave.fps), 0)
    last = max(round((end_s - wave.start_s) * wave.fps), first)
    return Waveform(
        wave.values[first:last], wave.fps, wave.start_s + first / wave.fps, wave.valid[first:last]
    )


def _draw_wave(axes: Axes, face: FaceResult, window: WindowResult | None, title: str) -> None:
    axes.set_title(title, fontsize=10, color=INK)
    draw_wave(axes, face, *shown_span(face, window))


def shown_span(face: FaceResult, window: WindowResult | None) -> tuple[float, float]:
    """The part of the wave that one picture shows: from, to, in seconds."""
    middle_s = (window.start_s + window.end_s) / 2 if window is not None else face.wave.start_s
    start_s = max(face.wave.start_s, middle_s - SHOWN_S / 2)
    return start_s, start_s + SHOWN_S


def draw_wave(axes: Axes, face: FaceResult, start_s: float, end_s: float) -> None:
    """The wave of a face between two times, with its beats."""
    wider = _cut(face.wave, start_s - _SETTLE_S, end_s + _SETTLE_S)
    smooth = Waveform(display_filter(wider), wider.fps, wider.start_s, wider.valid)
    wave = _cut(smooth, start_s, end_s)
    if len(wave.values) > 2:
        spread = float(np.max(np.abs(wave.values[wave.valid]), initial=0.0)) or 1.0
        values = np.where(wave.valid, wave.values / spread, np.nan)
        believed = isinstance(face.summary, Estimate)
        axes.plot(wave.t_s, values, color=PULSE if believed else QUIET, lw=1.3)
        beats_s = face.beats_s[(face.beats_s >= wave.t_s[0]) & (face.beats_s <= wave.t_s[-1])]
        axes.plot(*crests(wave.t_s, values, beats_s), "o", color=BEAT, ms=4, label=f"{len(beats_s)} beats")
        if len(beats_s):
            axes.legend(loc="upper right", fontsize=8, frameon=False)
    axes.set_ylim(-1.25, 1.35)
    axes.set_yticks([])
    _label(axes, "time (s)", "pulse wave")


def crests(t_s: FloatArray, values: FloatArray, beats_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where to draw the beats, times and heights: on the crest of the drawn line next to each beat.

    Beats are timed in a narrower band than the line is drawn in, so their crests lie a little apart.
    """
    reach_s = 0.25 * float(np.median(np.diff(beats_s))) if len(beats_s) > 1 else 0.15
    near = (np.abs(t_s - beats_s[:, None]) <= reach_s) & np.isfinite(values)  # (N,T)
    near = near[near.any(1)]
    top = np.argmax(np.where(near, values, -np.inf), axis=1)
    return t_s[top], values[top]


def _draw_spectrum(axes: Axes, face: FaceResult, window: WindowResult | None) -> None:
    wave = _cut(face.wave, window.start_s, window.end_s) if window is not None else None
    if wave is not None and wave.valid.any() and len(wave.values) > 2:
        spec = rate.spectrum(wave)
        inside = (spec.hz >= 0.5) & (spec.hz <= 4.0)
        top = float(spec.power[spec.band].max()) or 1.0
        axes.fill_between(60 * spec.hz[inside], spec.power[inside] / top, color=QUIET, alpha=0.45, lw=0)
        axes.plot(60 * spec.hz[inside], spec.power[inside] / top, color=INK, lw=0.9)
        peak = window.peak if window is not None else None
        if peak is not None and window is not None:
            shown = isinstance(window.reading, Estimate)
            word = f"{peak.bpm:.1f} bpm{', not believed' * (not shown)}"
            axes.axvline(peak.bpm, color=PULSE, lw=1.2, ls="-" if shown else ":")
            side = -1 if peak.bpm > 150 else 1
            axes.annotate(
                word, (peak.bpm, 1.0), xytext=(5 * side, 2), textcoords="offset points",
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
    floor = axes.get_ylim()[0]
    silent = np.isnan(bpm)
    if silent.any() and not silent.all():
        axes.plot(t_s[silent], np.full(int(silent.sum()), floor), "|", color=QUIET, ms=9, label="no reading")
        axes.legend(loc="upper right", fontsize=8, frameon=False)
    axes.set_xlim(0, max(duration_s, 1.0))
    _label(axes, "time (s)", "heart rate (bpm)")


def display_filter(wave: Waveform) -> FloatArray:
    """The wave without drift and fast noise, for the eye."""
    return filters.pulse_band(bridge(wave.values, wave.valid), wave.fps, DISPLAY_BAND_HZ)


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x, **_STYLE)
    axes.set_ylabel(y, **_STYLE)
    axes.tick_params(labelsize=8, colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
