"""`phase measure --camera`: a live measurement in the terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import typer

from . import NO_READING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..measurement.live import LiveSession
    from ..measurement.measure import MeasureOptions
    from ..session.results import Event, WindowResult

_REFRESH_S = 0.125


def measure_camera(device: str, order: MeasureOptions, *, as_json: bool, quiet: bool) -> int:
    """Measure until Ctrl-C and return the exit code: 0 when there was a reading, 3 when there was none."""
    from rich.console import Console

    from ..measurement.live import LiveSession
    from ..video.camera import named

    live = LiveSession(named(device), order.config())
    console = Console(highlight=False)
    try:
        if as_json:
            _lines(live, json_lines=True, quiet=quiet)
        elif quiet:
            for _ in live.run():
                pass
        elif console.is_terminal:
            _view(live, device, console)
        else:
            _lines(live, json_lines=False, quiet=quiet)
    except KeyboardInterrupt:
        if not live.begun:
            raise
    _say_summary(live, Console(stderr=True, highlight=False) if as_json else console)
    return 0 if live.readout.any_reading else NO_READING


def _view(live: LiveSession, device: str, console: Any) -> None:
    """Draw the live view, a few times a second."""
    from rich.live import Live

    from ..report.terminal_view import render

    drawn_s = 0.0
    with Live(render(live, device), console=console, auto_refresh=False, transient=True) as screen:
        for _ in live.run():
            if time.monotonic() - drawn_s >= _REFRESH_S:
                screen.update(render(live, device), refresh=True)
                drawn_s = time.monotonic()


def _lines(live: LiveSession, *, json_lines: bool, quiet: bool) -> None:
    """One line per window, for programs and for files; losses go to stderr."""
    lost = False
    for events in live.run():
        if live.loss is not None and not lost and not quiet:
            print(f"warning: camera lost: {live.loss.problem}; trying again", file=sys.stderr)
        lost = live.loss is not None
        for window in _windows(events):
            typer.echo(_json_line(live, window) if json_lines else _text_line(live, window))


def _windows(events: Sequence[Event]) -> list[WindowResult]:
    from ..session.results import WindowResult

    return [event for event in events if isinstance(event, WindowResult)]


def _json_line(live: LiveSession, window: WindowResult) -> str:
    from ..fileio import dump_json
    from ..report.document import window_row

    face = live.readout.faces.get(window.face)
    state = face.shown.mood.value if face is not None else None
    return dump_json({"face": window.face, **window_row(window), "state": state}, indent=None)


def _text_line(live: LiveSession, window: WindowResult) -> str:
    from ..types import Estimate

    reading = window.reading
    face = live.readout.faces.get(window.face)
    if isinstance(reading, Estimate):
        state = face.shown.mood.value if face is not None else ""
        return (
            f"{window.end_s:7.1f} s  face {window.face}  {reading.bpm:5.1f} bpm "
            f"({reading.low:.0f}–{reading.high:.0f})  {state}"
        )
    return f"{window.end_s:7.1f} s  face {window.face}  no reading: {reading.reason}"


def _say_summary(live: LiveSession, console: Any) -> None:
    """What was measured, in one line."""
    from ..report.document import sentence
    from ..types import Estimate, NoReading, Reason

    reading = live.finish() or NoReading(Reason.NO_FACE, 0.0, live.t_s)
    style = "bold green" if isinstance(reading, Estimate) else "yellow"
    lost = f", camera lost {live.losses}×" if live.losses else ""
    console.print(f"camera, {live.t_s:.0f} s{lost}: [{style}]{sentence(reading)}[/{style}]", soft_wrap=True)
