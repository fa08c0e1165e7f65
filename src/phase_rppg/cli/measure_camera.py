"""`phase measure --camera`: measure live and show the result in the terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import typer

from . import NO_READING
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..measurement.live import LiveSession
    from ..measurement.measure import MeasureOptions
    from ..session.results import Event, WindowResult

_REFRESH_S = 0.125


def measure_camera(device: str, options: MeasureOptions, *, as_json: bool, quiet: bool) -> int:
    """Measure until Ctrl+C and return the exit code: 0 if there was a reading, otherwise 3."""

    from ..measurement.live import LiveSession
    from ..video.camera import parse_camera

    live = LiveSession(parse_camera(device), options.config())
    console = open_console(soft_wrap=False)
    try:
        if as_json:
            _print_windows(live, as_json=True, quiet=quiet)
        elif quiet:
            for _ in live.run():
                pass
        elif console.is_terminal:
            _show_view(live, device, console)
        else:
            _print_windows(live, as_json=False, quiet=quiet)
    except KeyboardInterrupt:
        if not live.started:
            raise
    _print_summary(live, open_console(stderr=True) if as_json else console)
    return 0 if live.readout.any_reading else NO_READING


def _show_view(live: LiveSession, device: str, console: Any) -> None:
    """Show the live view and refresh it every `_REFRESH_S` seconds."""
    from rich.live import Live

    from ..report.terminal_view import render

    drawn_s = 0.0
    with Live(render(live, device), console=console, auto_refresh=False, transient=True) as screen:
        for _ in live.run():
            if time.monotonic() - drawn_s >= _REFRESH_S:
                screen.update(render(live, device), refresh=True)
                drawn_s = time.monotonic()


def _print_windows(live: LiveSession, *, as_json: bool, quiet: bool) -> None:
    """Print one line per window; warnings about a lost camera go to stderr."""
    lost = False
    for events in live.run():
        if live.interruption is not None and not lost and not quiet:
            print(f"warning: camera lost: {live.interruption.problem}; reconnecting", file=sys.stderr)
        lost = live.interruption is not None
        for window in _windows(events):
            typer.echo(_json_line(live, window) if as_json else _text_line(live, window))


def _windows(events: Sequence[Event]) -> list[WindowResult]:
    from ..session.results import WindowResult

    return [event for event in events if isinstance(event, WindowResult)]


def _json_line(live: LiveSession, window: WindowResult) -> str:
    from ..fileio import dump_json
    from ..report.document import window_row

    face = live.readout.faces.get(window.face)
    state = face.shown.state.value if face is not None else None
    return dump_json({"face": window.face, **window_row(window), "state": state}, indent=None)


def _text_line(live: LiveSession, window: WindowResult) -> str:
    from ..types import Estimate

    reading = window.reading
    face = live.readout.faces.get(window.face)
    if isinstance(reading, Estimate):
        state = face.shown.state.value if face is not None else ""
        return (
            f"{window.end_s:7.1f} s  face {window.face}  {reading.bpm:5.1f} bpm "
            f"({reading.low:.0f}–{reading.high:.0f})  {state}"
        )
    return f"{window.end_s:7.1f} s  face {window.face}  no reading: {reading.reason}"


def _print_summary(live: LiveSession, console: Any) -> None:
    """Print the result of the whole measurement as one line."""
    from ..report.document import reading_text
    from ..types import Estimate, NoReading, Reason

    reading = live.finish() or NoReading(Reason.NO_FACE, 0.0, live.t_s)
    style = "bold green" if isinstance(reading, Estimate) else "yellow"
    lost = f", camera lost {live.interruptions}×" if live.interruptions else ""
    console.print(
        f"camera, {live.t_s:.0f} s{lost}: [{style}]{escaped(reading_text(reading))}[/{style}]", soft_wrap=True
    )
