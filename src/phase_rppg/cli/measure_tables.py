"""`phase measure --parquet`: measure many videos into Parquet tables and print a summary."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from ..text import counted
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from ..measurement.batch import Failure, VideoInput
    from ..report.tables import Measured, TableJob, TableStore
    from ..workers import Engine, Outcome

_LINE_S = 30.0  # between two lines of progress when stderr is not a terminal


@dataclass
class Tally:
    """What a run has done so far."""

    measured: int = 0
    kept: int = 0
    readings: int = 0
    video_s: float = 0.0
    silent: Counter[str] = field(default_factory=Counter)  # videos without a reading, by reason
    failed: Counter[str] = field(default_factory=Counter)  # videos that could not be measured, by problem
    internal: bool = False  # whether a failure was a defect of this software
    start_s: float = field(default_factory=time.monotonic)

    @property
    def total(self) -> int:
        return self.readings + sum(self.silent.values()) + sum(self.failed.values())

    @property
    def speed(self) -> float:
        """Seconds of video per second of this run."""
        return self.video_s / max(time.monotonic() - self.start_s, 1e-9)

    def add(self, found: Measured) -> None:
        """Count a video that was measured now or before."""
        from ..report.tables import VIDEOS

        if (known := found.known) is not None:
            self.kept += 1
            readings, error, reason = known.readings, known.error, "measured before"
        else:
            [row] = found.rows[VIDEOS]
            self.measured += 1
            self.video_s += row.get("duration_s") or 0.0
            readings, error = row["readings"], row.get("error")
            faces = found.rows.get("faces", ())
            reason = str(row.get("reason") or next((face["reason"] for face in faces), None))
        if error is not None:
            self.failed[error] += 1
        elif readings:
            self.readings += 1
        else:
            self.silent[reason] += 1

    def document(self, out: str) -> dict[str, Any]:
        """Return the summary for `--json`."""
        return {
            "videos": self.total, "measured": self.measured, "measured_before": self.kept,
            "with_reading": self.readings, "without_reading": dict(self.silent), "failed": dict(self.failed),
            "video_hours": round(self.video_s / 3600, 4), "times_real_time": round(self.speed, 2), "out": out,
        }  # fmt: skip

    def exit_code(self) -> int:
        """Return 0 with a reading, 3 without, 4 if no video could be measured, 1 after a defect."""
        from . import NO_READING

        if self.readings:
            return 0
        if sum(self.silent.values()):
            return NO_READING
        return 1 if self.internal else 4


@dataclass(frozen=True)
class TableRun:
    """One run of the command: what is measured, where, and where the tables are."""

    job: TableJob
    store: TableStore
    engine: Engine
    workers: int | None
    quiet: bool = False
    as_json: bool = False

    def prepare(self, *, resume: bool, force: bool) -> dict[str, Any]:
        """Return what is stored already; refuse tables that are there without `resume` or `force`."""
        from ..errors import OutputError

        if force and not resume:
            self.store.clear()
        elif not resume and not self.store.is_empty:
            raise OutputError(
                self.store.root, "holds results; continue with --resume, or replace them with --force"
            )
        self.store.remove_incomplete()
        return self.store.known()

    def run(self, videos: Sequence[VideoInput], failures: Sequence[Failure], stored: dict[str, Any]) -> int:
        """Measure the videos, print the summary and return the exit code."""
        from ..workers import Job, run_jobs

        tally = Tally()
        for failure in failures:
            tally.failed[failure.problem.removeprefix(f"{failure.video}: ")] += 1
        # One row per name: a name that is given twice is measured once.
        unique = {video.name: video.absolute() for video in videos}
        jobs = (Job(name, (video, stored.get(name, ()))) for name, video in unique.items())
        running = run_jobs(self.job, jobs, self.workers, engine=self.engine)
        try:
            with progress(len(unique), tally, self.quiet) as advance, contextlib.closing(running) as outcomes:
                for outcome in outcomes:
                    self._take(outcome, tally)
                    advance()
        finally:  # also after an interruption, so that finished videos are not lost
            self.store.flush()
        self._print(tally)
        return tally.exit_code()

    def _take(self, outcome: Outcome, tally: Tally) -> None:
        from ..errors import InternalError, OutputError, UsageError
        from ..report.tables import problem_of

        if isinstance(outcome.error, (OutputError, UsageError)):
            raise outcome.error  # the next video would fail as well
        if outcome.error is not None:
            tally.failed[problem_of(outcome.error)] += 1
            tally.internal |= isinstance(outcome.error, InternalError)
            return
        tally.add(outcome.result)
        if outcome.result.known is None:
            self.store.add(outcome.result.rows)

    def _print(self, tally: Tally) -> None:
        if self.as_json:
            from ..fileio import dump_json

            typer.echo(dump_json(tally.document(self.store.root)))
            return
        console = open_console()
        silent, failed = sum(tally.silent.values()), sum(tally.failed.values())
        text = f"{counted(tally.total, 'video')}: {tally.readings} with a reading, "
        text += f"{silent} without"
        text += f", {failed} could not be measured" * bool(failed)
        console.print(text + f" ({tally.kept} measured before)" * bool(tally.kept))
        for title, counts in (("no reading", tally.silent), ("not measured", tally.failed)):
            for reason, count in counts.most_common():
                console.print(f"  {title}: {count} × {escaped(reason)}", soft_wrap=True)
        hours = tally.video_s / 3600
        console.print(f"{hours:.2f} hours of video, {tally.speed:.1f} × real time")
        console.print(f"written: {escaped(self.store.root)}", soft_wrap=True)


@contextlib.contextmanager
def progress(total: int, tally: Tally, quiet: bool) -> Iterator[Any]:
    """Show count, rate and time left: a bar on a terminal, otherwise a line on stderr every 30 s."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = open_console(stderr=True)
    columns = (
        BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    bar = Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)
    last_s = time.monotonic()
    with bar:
        task = bar.add_task("", total=total, rate="")
        done = 0

        def advance() -> None:
            nonlocal done, last_s
            done += 1
            now_s = time.monotonic()
            per_s = done / max(now_s - tally.start_s, 1e-9)
            rate = f"{per_s:.2f} videos/s, {tally.speed:.1f} × real time"
            bar.update(task, completed=done, rate=rate)
            if bar.disable and not quiet and (now_s - last_s >= _LINE_S or done == total):
                last_s = now_s
                typer.echo(f"{done} of {total}, {rate}, {(total - done) / per_s:.0f} s left", err=True)

        yield advance
