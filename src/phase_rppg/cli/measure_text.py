"""What `phase measure` prints: lines and tables for people, JSON for programs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .terminal import escaped, open_console

if TYPE_CHECKING:
    from rich.console import Console

    from ..session.results import Result
    from .measure_outputs import Outputs

_MAX_NAME = 48  # characters of a video's name in a table


@dataclass(frozen=True, slots=True)
class Printed:
    """The format on standard output: text, JSON, JSON lines or CSV."""

    as_json: bool = False
    ndjson: bool = False
    full: bool = False  # with waveform and beats
    csv: bool = False
    windows: bool = False  # a line of text per window
    quiet: bool = False

    @property
    def is_json(self) -> bool:
        return self.as_json or self.ndjson

    def check(self) -> None:
        """Refuse combinations that would mix two formats on standard output."""
        from ..errors import UsageError

        if self.as_json + self.ndjson + self.csv > 1:
            raise UsageError("--json, --ndjson and --csv - all use standard output; choose one")
        if self.full and not self.is_json:
            raise UsageError("--full adds to JSON; combine it with --json or --ndjson")

    def document(self, value: Any) -> None:
        """Print a JSON value: with indents, or as one line."""
        from ..fileio import dump_json, json_pieces

        if self.ndjson:
            typer.echo(dump_json(value, indent=None))
            return
        for piece in json_pieces(value):
            typer.echo(piece, nl=False)
        typer.echo()

    @contextlib.contextmanager
    def errors_as_json(self, videos: Sequence[str]) -> Iterator[None]:
        """Print a JSON document for an input that cannot be used, besides the line on stderr."""
        from ..errors import InputError, OutputError
        from ..report.document import error_document

        try:
            yield
        except InputError as error:
            if self.is_json and not isinstance(error, OutputError):
                self.document(error_document(", ".join(videos), str(error)))
            raise

    def repeat(self, stored: dict[str, Any], outputs: Outputs) -> int:
        """Print the stored document of a video that was measured before, and return the exit code."""
        from . import NO_READING

        if self.is_json:
            self.document(self.shortened(stored))
        else:
            name = Path(stored["video"]).name
            table = ResultTable([name], quiet=self.quiet)
            table.add(name, stored, note="measured before")
            self.written(outputs)
        return 0 if document_has_reading(stored) else NO_READING

    def shortened(self, stored: dict[str, Any]) -> dict[str, Any]:
        """Return a stored document with the fields that a new measurement would print."""
        kept = {key: value for key, value in stored.items() if key != "provenance"}
        if not self.full:
            extra = ("wave", "beats")
            kept["faces"] = [{k: v for k, v in face.items() if k not in extra} for face in kept["faces"]]
        return kept

    def written(self, outputs: Outputs) -> None:
        """Print where the files are."""
        from ..errors import MissingPackageError, is_installed

        if outputs.folder is None:
            return
        if not self.quiet and not is_installed("matplotlib"):
            problem = f"warning: no plots were written: {escaped(MissingPackageError('matplotlib'))}"
            stderr().print(problem, style="yellow")
        open_console().print(f"written: {escaped(outputs.folder)}")


def document_has_reading(document: dict[str, Any]) -> bool:
    """Return whether any face of a JSON document has a rate."""
    return any(face["summary"]["bpm"] is not None for face in document.get("faces", []))


def print_result(result: Result, *, windows: bool = False, quiet: bool = False) -> None:
    """Print one line per face; `windows` adds a line per window. Warnings go to stderr."""
    from ..report.document import face_text
    from ..session.reasons import ADVICE
    from ..types import Estimate, Reason

    screen = open_console()
    name = Path(result.video).name
    for face in result.faces:
        place = f" ({face.position})" if face.position else ""
        label = f"{name}, face {face.id}{place}" if len(result.faces) > 1 else name
        style = "bold green" if isinstance(face.summary, Estimate) else "yellow"
        screen.print(f"{escaped(label)}: [{style}]{escaped(face_text(face))}[/{style}]")
        for w in face.windows if windows else ():
            text = f"{w.reading.bpm:6.1f} bpm" if isinstance(w.reading, Estimate) else f"{w.reading.reason}"
            screen.print(f"  {w.start_s:7.1f}–{w.end_s:.1f} s  {text}  p_ok {w.reading.p_ok:.2f}")
    if not result.faces:
        reason = result.reason or Reason.NO_FACE
        screen.print(f"{escaped(name)}: [yellow]no reading: {reason} – {ADVICE[reason]}[/yellow]")
    for warning in () if quiet else result.warnings:
        stderr().print(f"warning: {escaped(warning)}", style="yellow")


class ResultTable:
    """A table that is printed row by row, as the results come; the names set the width of a column."""

    def __init__(self, names: Sequence[str], *, quiet: bool = False, screen: Console | None = None) -> None:
        self._width = min(max(map(_width, names), default=5), _MAX_NAME)
        self._quiet, self._screen = quiet, screen or open_console()
        self._has_header = False

    def add(self, name: str, document: dict[str, Any], note: str = "") -> None:
        """Print the rows of one video from its JSON document."""
        from ..report.document import percent
        from ..text import printable

        if "error" in document:
            problem = document["error"].removeprefix(f"{printable(document['video'])}: ").split("; ")[0]
            self._row(name, "–", "–", "", "", f"[red]{escaped(problem)}[/red]")
            return
        for face in document["faces"]:
            found = face["summary"]
            note_here = _joined(note, face["position"] or "")
            if found["bpm"] is None:
                likely = found["advice"].split("; ")[0] if found["probable_bpm"] else ""
                self._row(name, face["id"], "–", "", "", _joined(found["reason"], likely, note_here))
            else:
                interval = _interval_text(found)
                self._row(
                    name, face["id"], f"{found['bpm']:.1f}", interval, percent(found["p_ok"]), note_here
                )
        if not document["faces"]:
            self._row(name, "–", "–", "", "", _joined(document["reason"], note))
        for warning in () if self._quiet else document["warnings"]:
            self._row("", "", "", "", "", f"[yellow]{escaped(warning)}[/yellow]")

    def _row(self, name: str, face: object, bpm: str, interval: str, confidence: str, note: str) -> None:
        if not self._has_header:
            self._has_header = True
            self._screen.print(
                f"[bold]{self._line('video', 'face', 'bpm', 'interval', 'confidence')} note[/bold]"
            )
        line = self._line(_shortened_name(name, self._width), str(face), bpm, interval, confidence)
        self._screen.print(f"{escaped(line)} {note}".rstrip())

    def _line(self, name: str, face: str, bpm: str, interval: str, confidence: str) -> str:
        return f"{name:<{self._width}} {face:>5} {bpm:>6} {interval:>9} {confidence:>11} "


def _interval_text(summary: dict[str, Any]) -> str:
    """Return the range over time if the rate changes, otherwise the interval."""
    from ..report.document import MIN_CHANGE_BPM

    low, high = summary["low"], summary["high"]
    if summary["range_high"] - summary["range_low"] > max(MIN_CHANGE_BPM, high - low):
        low, high = summary["range_low"], summary["range_high"]
    return f"{low:.0f}–{high:.0f}"


def _width(name: str) -> int:
    from ..text import printable

    return len(printable(name))


def _shortened_name(name: str, width: int) -> str:
    from ..text import printable

    text = printable(name)
    return text if len(text) <= width else f"…{text[-width + 1 :]}"


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def stderr() -> Console:
    """Return the console for progress and warnings."""
    return open_console(stderr=True)
