"""The live view in a terminal: the rate, its state, the guidance, the waveform and the rate over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..measurement.live import LiveSession
from ..measurement.live_state import FaceReadout, LiveState, Shown
from .document import confidence_text

if TYPE_CHECKING:
    from ..types import FloatArray, Quality, Waveform

WIDTH = 76  # of the panel, in characters
_PLOT_WIDTH = WIDTH - 16
_WAVE_S = 8.0  # length of the waveform plot
_RATE_S = (30.0, 120.0)  # shortest and longest time axis of the rate plot
_STYLES = {
    LiveState.STEADY: "green", LiveState.UNSURE: "yellow", LiveState.MEASURING: "cyan", LiveState.NONE: "red",
    LiveState.SEARCHING: "red",
}  # fmt: skip
# Each digit is three rows of block characters.
_DIGITS = {
    "0": ("█▀█", "█ █", "▀▀▀"), "1": ("▀█ ", " █ ", "▀▀▀"), "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", " ▀█", "▀▀▀"), "4": ("█ █", "▀▀█", "  ▀"), "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"), "7": ("▀▀█", "  █", "  ▀"), "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"), "–": ("   ", "▀▀▀", "   "),
}  # fmt: skip


def render(live: LiveSession, device: str) -> RenderableType:
    """Return the current state of a live session as one panel."""
    shown, main = live.readout.shown, live.readout.main
    parts: list[RenderableType] = [_head(live, shown), Text()]
    parts.append(_labelled("pulse", _wave(live), "bright_black" if shown.state is LiveState.NONE else "red"))
    parts.append(_labelled("rate", _rates(main, live.t_s), "magenta", _rate_range(main, live.t_s)))
    parts += [Text(), _quality_line(live, main.quality if main is not None else None)]
    for number, face in list(live.readout.faces.items())[1:4]:
        parts.append(Text(f"face {number}: {_short(face.shown)}", style=_STYLES[face.shown.state]))
    title = Text(f" camera {device} · {live.config.method} · {_clock(live.t_s)} ")
    return Panel(
        Group(*parts),
        title=title,
        title_align="left",
        subtitle=Text(" stop with Ctrl+C · not a medical device ", style="dim"),
        width=WIDTH,
        padding=(1, 2),
    )


def _head(live: LiveSession, shown: Shown) -> RenderableType:
    """Return the rate in large digits next to its state, interval and guidance."""
    if live.interruption is not None:
        state = Text("● camera lost", style="bold red")
        retry = f"Next attempt in {live.interruption.retry_in_s:.0f} s."
        return _side_by_side(
            _large_digits("–", "red"), state, Text(f"The camera {live.interruption.problem}."), Text(retry)
        )
    style = _STYLES[shown.state]
    state = Text(f"● {shown.state.value}", style=f"bold {style}")
    detail = Text()
    if shown.reading is not None:
        detail = Text(f"{shown.reading.low:.0f}–{shown.reading.high:.0f} bpm, {confidence_text(shown.share)}")
    elif shown.state is LiveState.MEASURING:
        detail = Text("━" * round(30 * shown.share), style=style)
        detail.append("━" * (30 - round(30 * shown.share)), style="bright_black")
    number = "–" if shown.reading is None else f"{shown.reading.bpm:.0f}"
    return _side_by_side(_large_digits(number, style), state, detail, Text(shown.guidance))


def _side_by_side(number: Text, *lines: Text) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(width=16)
    table.add_column()
    table.add_row(number, Group(*lines))
    return table


def _large_digits(number: str, style: str) -> Text:
    rows = [" ".join(_DIGITS[digit][row] for digit in number) for row in range(3)]
    rows[-1] += " bpm"
    return Text("\n".join(rows), style=f"bold {style}", no_wrap=True)


def _labelled(name: str, plot: list[str], style: str, ends: tuple[str, str] = ("", "")) -> Table:
    """Return a plot with its name and the ends of its vertical axis on the left."""
    left = [f"{name:<5}{ends[0]:>4}"] + [""] * (len(plot) - 2) + [f"{ends[1]:>9}"]
    table = Table.grid(padding=(0, 1))
    table.add_row(Text("\n".join(left), style="dim"), Text("\n".join(plot), style=style, no_wrap=True))
    return table


def _wave(live: LiveSession) -> list[str]:
    wave = live.wave(_WAVE_S)
    if wave is None or not wave.valid.any():
        return braille(np.zeros(0), np.zeros(0), _PLOT_WIDTH, 3)
    return braille(np.linspace(0, 1, len(wave.values)), (_unit_wave(wave) + 1) / 2, _PLOT_WIDTH, 3)


def _rates(face: FaceReadout | None, now_s: float) -> list[str]:
    if face is None:
        return braille(np.zeros(0), np.zeros(0), _PLOT_WIDTH, 4)
    t_s, bpm = _recent_rates(face, now_s)
    low, high = _limits(bpm)
    span_s = _span_s(face, now_s)
    return braille(1 - (now_s - t_s) / span_s, (bpm - low) / (high - low), _PLOT_WIDTH, 4)


def _rate_range(face: FaceReadout | None, now_s: float) -> tuple[str, str]:
    if face is None:
        return "", ""
    bpm = _recent_rates(face, now_s)[1]
    if not np.isfinite(bpm).any():
        return "", ""
    low, high = _limits(bpm)
    return f"{high:.0f}", f"{low:.0f}"


def _recent_rates(face: FaceReadout, now_s: float) -> tuple[FloatArray, FloatArray]:
    since_s = now_s - _span_s(face, now_s)
    rows = [(t, np.nan if bpm is None else bpm) for t, bpm in face.rates if t >= since_s]
    table = np.array(rows, float).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _span_s(face: FaceReadout, now_s: float) -> float:
    return float(np.clip(now_s - face.visible_since_s, *_RATE_S))


def _limits(bpm: FloatArray) -> tuple[float, float]:
    """Return axis limits around the rates in multiples of 5 bpm, at least 20 bpm apart."""
    known = bpm[np.isfinite(bpm)]
    if not len(known):
        return 60.0, 80.0
    middle = (known.min() + known.max()) / 2
    half = max(10.0, (known.max() - known.min()) / 2 + 3)
    return float(5 * np.floor((middle - half) / 5)), float(5 * np.ceil((middle + half) / 5))


def _quality_line(live: LiveSession, quality: Quality | None) -> Text:
    """Return the signal-to-noise ratio, the brightness, the face size and the frame rate."""
    text = Text(style="dim")
    if quality is not None:
        filled = round(min(max((quality.snr_db + 10) / 25, 0.0), 1.0) * 8)
        text.append(f"SNR {quality.snr_db:+.0f} dB ")
        text.append("█" * filled, style="green" if quality.snr_db > 0 else "yellow")
        text.append("█" * (8 - filled), style="bright_black")
        text.append(f" · brightness {quality.luma:.0f} · face {quality.face_px:.0f} px · ")
    text.append(f"{live.fps:.1f} frames/s")
    if live.interruptions:
        text.append(f" · camera lost {live.interruptions}×")
    return text


def _short(shown: Shown) -> str:
    if shown.reading is None:
        return shown.guidance
    return f"{shown.reading.bpm:.0f} bpm, {shown.state.value}"


def _clock(t_s: float) -> str:
    return f"{int(t_s) // 60}:{int(t_s) % 60:02d}"


def braille(x: FloatArray, y: FloatArray, columns: int, rows: int) -> list[str]:
    """Return a line through points (N,), (N,) from 0 to 1 as rows of braille characters; NaN is a gap."""
    dots = np.zeros((4 * rows, 2 * columns), bool)
    across = np.clip(np.rint(x * (2 * columns - 1)), 0, 2 * columns - 1)
    before: tuple[float, float] | None = None
    for column, height in zip(across, np.clip(y, 0, 1) * (4 * rows - 1), strict=True):
        if np.isnan(height):
            before = None
            continue
        now = (float(column), 4 * rows - 1 - float(height))
        steps = 1 + round(max(abs(now[0] - before[0]), abs(now[1] - before[1]))) if before else 1
        for share in np.linspace(0, 1, steps + 1)[1:] if before else (1.0,):
            start = before or now
            at = [round(a + share * (b - a)) for a, b in zip(start, now, strict=True)]
            dots[at[1], at[0]] = True
        before = now
    weights = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
    cells = dots.reshape(rows, 4, columns, 2).transpose(0, 2, 1, 3)  # (rows, columns, 4, 2)
    codes = (cells * weights).sum((2, 3)) + 0x2800
    return ["".join(map(chr, line)) for line in codes.tolist()]


def _unit_wave(wave: Waveform) -> np.ndarray:
    """Scale a waveform to the range −1 to 1; NaN where the face was not visible."""
    from .plots import display_filter

    if wave.valid.sum() < 3:
        return np.full(len(wave.values), np.nan)
    values = display_filter(wave)
    top = float(np.max(np.abs(values[wave.valid]))) or 1.0
    return np.where(wave.valid, np.clip(values / top, -1, 1), np.nan)
