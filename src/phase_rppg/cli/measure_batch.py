"""`phase measure` for several videos: each result is written and shown as soon as it is complete."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from ..text import counted
from ..workers import LOCAL, Engine
from .measure_outputs import Outputs, VideoWriter, write_common, write_summary
from .measure_text import Printed, ResultTable, document_has_reading, stderr

if TYPE_CHECKING:
    from rich.console import Console

    from ..errors import OutputError
    from ..measurement.batch import FaceChoice, Failure, VideoInput
    from ..measurement.measure import MeasureOptions
    from ..session.results import Result


@dataclass
class Batch:
    """One run of the command on several videos."""

    options: MeasureOptions
    face: FaceChoice
    outputs: Outputs
    printed: Printed
    results: dict[int, Result] = field(default_factory=dict)  # by position; only those still needed
    failures: list[Failure] = field(default_factory=list)
    documents: dict[int, dict[str, Any]] = field(default_factory=dict)  # by position
    unwritten: list[OutputError] = field(default_factory=list)

    def run(
        self,
        videos: Sequence[VideoInput],
        failures: Sequence[Failure],
        workers: int | None,
        engine: Engine = LOCAL,
    ) -> int:
        """Measure the videos and return the exit code. `failures` are folders without videos."""
        self.outputs.check_targets(videos)
        screen = self._screen()
        labels = [video.label for video in videos] + [failure.video for failure in failures]
        table = ResultTable(labels, quiet=self.printed.quiet, screen=screen)
        try:
            with contextlib.closing(self._outcomes(videos, failures, (workers, engine), screen)) as outcomes:
                for position, note in outcomes:
                    if self.printed.ndjson:
                        self.printed.document(self.documents[position])
                    elif not self.printed.as_json and not self.printed.csv:
                        table.add(labels[position], self.documents[position], note)
        finally:  # also after an interruption, so that finished videos are not lost
            self._write()
        self._print_end(screen)
        if self.unwritten:
            raise self.unwritten[0]  # after the results, so that they are not lost
        return self._exit_code()

    def _outcomes(
        self,
        videos: Sequence[VideoInput],
        failures: Sequence[Failure],
        where: tuple[int | None, Engine],
        screen: Console,
    ) -> Generator[tuple[int, str], None, None]:
        """Yield the position of each video and a note, as it ends; its document is then in `documents`."""
        from rich.progress import Progress

        from ..measurement.batch import Failure, measure_many

        for position, failure in enumerate(failures, len(videos)):
            self._add_failure(position, failure)
            yield position, ""
        waiting: list[int] = []
        for position, video in enumerate(videos):
            if (stored := self.outputs.stored(video, self.options, self.face)) is None:
                waiting.append(position)
            else:
                self.documents[position] = self.printed.shortened(stored)
                yield position, "measured before"
        writer = VideoWriter(self.outputs, self.options, self.face)
        hidden = self.printed.quiet or not screen.file.isatty()
        progress = Progress(
            console=screen, transient=True, disable=hidden, redirect_stdout=False, redirect_stderr=False
        )
        chosen = [videos[position] for position in waiting]
        measuring = measure_many(chosen, self.options, where[0], face=self.face, save=writer, engine=where[1])
        with progress, contextlib.closing(measuring) as outcomes:
            task = progress.add_task(f"{len(waiting)} videos", total=len(waiting))
            for index, outcome, unwritten in outcomes:
                position = waiting[index]
                self.unwritten += unwritten
                if isinstance(outcome, Failure):
                    self._add_failure(position, outcome)
                else:
                    self._add_result(position, outcome)
                progress.advance(task)
                yield position, ""

    def _screen(self) -> Console:
        """Return the console of the progress bar: that of the table, if both are on the terminal."""
        from .terminal import open_console

        return open_console() if sys.stdout.isatty() or not sys.stderr.isatty() else stderr()

    def _add_failure(self, position: int, failure: Failure) -> None:
        from ..report.document import error_document

        self.failures.append(failure)
        self.documents[position] = error_document(failure.video, failure.problem)

    def _add_result(self, position: int, result: Result) -> None:
        from ..report.document import document

        if self.outputs.csv is not None or self.outputs.report is not None:
            self.results[position] = result
        convert: Any = list if self.printed.ndjson else iter  # one line needs all values at once
        found = document(result, windows=convert, full=self.printed.full)
        if not self.printed.is_json:
            for face in found["faces"]:
                del face["windows"]  # not needed any more; it would keep the whole result in memory
        self.documents[position] = found

    def _write(self) -> None:
        """Write the files that hold all videos measured so far."""
        if self.documents:
            results = [self.results[position] for position in sorted(self.results)]
            self.unwritten += write_common(self.outputs, results, self.failures)
            self.unwritten += write_summary(self.outputs, self._in_order())

    def _in_order(self) -> list[dict[str, Any]]:
        return [self.documents[position] for position in sorted(self.documents)]

    def _print_end(self, screen: Console) -> None:
        if self.printed.as_json:
            self.printed.document(self._in_order())
        elif self.printed.csv:
            from ..report.document import csv_text

            typer.echo(csv_text([self.results[i] for i in sorted(self.results)]), nl=False)
        elif not self.printed.ndjson:
            total, failed = len(self.documents), len(self.failures)
            readings = sum(map(document_has_reading, self.documents.values()))
            text = f"{counted(total, 'video')}: {readings} with a reading, "
            text += f"{total - failed - readings} without"
            screen.print(text + (f", {failed} could not be measured" if failed else ""))
            self.printed.written(self.outputs)

    def _exit_code(self) -> int:
        from . import NO_READING

        if any(map(document_has_reading, self.documents.values())):
            return 0
        if len(self.failures) < len(self.documents):
            return NO_READING
        return 1 if any(failure.internal for failure in self.failures) else 4
