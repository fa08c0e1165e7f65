"""`phase measure`: a heart rate from face videos."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..registry import DEFAULT_METHOD

if TYPE_CHECKING:
    from rich.console import Console

    from ..measurement.batch import Failure
    from ..measurement.measure import MeasureOptions
    from ..session.results import Result

NAME = "measure"


def command(
    videos: list[Path] = typer.Argument(None, metavar="VIDEO…", help="Video files, or folders of videos."),
    camera: str = typer.Option(
        None,
        "--camera",
        metavar="N",
        help="Measure live: the number of a camera (0 is the first), or its name.",
    ),
    method: str = typer.Option(
        DEFAULT_METHOD,
        "--method",
        "-m",
        help="The network, a method (pos, chrom, green, ica, pca, lgi, pbv, omit, 2sr), or a manifest.",
    ),
    window_s: float = typer.Option(10.0, "--window", help="Length of the windows in seconds."),
    step_s: float = typer.Option(1.0, "--step", help="Seconds between two windows."),
    face: str = typer.Option("all", "--face", help="Whom to measure: largest or all."),
    fps: float = typer.Option(None, "--fps", help="True frame rate, when the file's timestamps are wrong."),
    ungated: bool = typer.Option(False, "--ungated", help="Show every window's number with its p_ok."),
    as_json: bool = typer.Option(
        False, "--json", help="Print a JSON document (a list for several videos; a line per window, live)."
    ),
    csv_file: Path = typer.Option(None, "--csv", metavar="FILE", help="Write one row per window."),
    plot: Path = typer.Option(
        None, "--plot", metavar="FILE.png", help="Draw wave, spectrum and rate over time."
    ),
    report: Path = typer.Option(
        None, "--report", metavar="FILE.html", help="Write a page that explains the result."
    ),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and no warnings."),
    jobs: int = typer.Option(0, "--jobs", "-j", help="Processes for several videos; 0 takes one per core."),
) -> None:
    """Measure the heart rate of every face in a video, or say why there is none.

    A window gets a number only if it can be trusted; `--ungated` shows all of them. Exit code: 0 a reading,
    3 no reading, 4 the video cannot be read. Of several videos, 0 means that at least one has a reading.
    With `--camera` it runs until Ctrl-C. Not a medical device.

    Example: `phase measure face.mp4 --plot face.png`, or `phase measure --camera 0`
    """
    from ..errors import UsageError
    from ..measurement.batch import find_videos
    from ..measurement.measure import MeasureOptions
    from ..report.document import has_reading

    order = MeasureOptions(method, window_s, step_s, face, fps, gated=not ungated)
    order.config()
    check_window(order)
    if camera is not None:
        if videos or any(word is not None for word in (csv_file, plot, report, fps)):
            raise UsageError(
                "--camera goes without videos, --csv, --plot, --report and --fps; "
                "--json gives a line per window"
            )
        from .measure_camera import measure_camera

        raise typer.Exit(measure_camera(camera, order, as_json=as_json, quiet=quiet))
    if not videos:
        raise UsageError("name a video, a folder of videos, or --camera 0")
    files = find_videos(videos)
    several = len(videos) > 1 or os.path.isdir(videos[0])
    if several and plot is not None:
        raise UsageError("--plot draws one video; use --report FILE.html for several")
    check_outputs(files, [output for output in (csv_file, plot, report) if output is not None])
    check_picture(plot)
    failures: list[Failure] = []
    if several:
        results, failures = measure_several(files, order, jobs or os.cpu_count() or 1, quiet)
    else:
        results = [measure_one(files[0], order, quiet)]
    write_files(results, failures, csv_file, plot, report)
    if as_json:
        print_json(files, results, failures, several)
    elif several:
        print_table(results, failures, quiet)
    else:
        print_result(results[0], windows=ungated, quiet=quiet)
    if not any(map(has_reading, results)):
        from . import NO_READING

        code_of_failures = 1 if any(failure.internal for failure in failures) else 4
        raise typer.Exit(code_of_failures if failures and not results else NO_READING)


def measure_one(video: Path, order: MeasureOptions, quiet: bool) -> Result:
    """Measure one video with a progress bar on the terminal."""
    from ..measurement.measure import run

    with progress_bar(video, quiet) as tell:
        return run(video, order, tell)


@contextlib.contextmanager
def progress_bar(video: Path, quiet: bool) -> Iterator[Callable[[float], None]]:
    """A bar on the terminal; gives the function that takes the seconds reached."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[at]}"),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=stderr(), transient=True, disable=quiet or not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task(video.name, total=None, at="")
        if not bar.disable:
            bar.update(task, total=_duration_s(video))
        yield lambda s: bar.update(task, completed=s, at=f"{s:.0f} s")


def measure_several(
    files: list[Path], order: MeasureOptions, jobs: int, quiet: bool
) -> tuple[list[Result], list[Failure]]:
    """Measure all videos in parallel; results in the order of the files."""
    from rich.progress import Progress

    from ..measurement.batch import Failure, measure_many

    done: dict[int, Result | Failure] = {}
    with Progress(console=stderr(), transient=True, disable=quiet or not sys.stderr.isatty()) as bar:
        task = bar.add_task(f"{len(files)} videos", total=len(files))
        for position, answer in measure_many(files, order, jobs):
            done[position] = answer
            bar.advance(task)
    answers = [done[i] for i in range(len(files))]
    return [a for a in answers if not isinstance(a, Failure)], [a for a in answers if isinstance(a, Failure)]


def write_files(
    results: list[Result],
    failures: list[Failure],
    csv_file: Path | None,
    plot: Path | None,
    report: Path | None,
) -> None:
    """Write what was asked for; each file whole or not at all."""
    if csv_file is not None:
        from ..fileio import write_text
        from ..report.document import csv_text

        write_text(csv_file, csv_text(results))
    if plot is not None:
        from ..report.plots import save_png

        save_png(plot, results[0])
    if report is not None:
        from ..report.html import save_html

        save_html(report, results, [(failure.video, failure.problem) for failure in failures])


def print_json(files: list[Path], results: list[Result], failures: list[Failure], several: bool) -> None:
    from ..fileio import json_pieces
    from ..report.document import document

    found = {result.video: document(result, windows=iter) for result in results}
    found |= {failure.video: {"video": failure.video, "error": failure.problem} for failure in failures}
    documents = [found[str(file)] for file in files]
    for piece in json_pieces(documents if several else documents[0]):
        typer.echo(piece, nl=False)
    typer.echo()


def print_result(result: Result, *, windows: bool = False, quiet: bool = False) -> None:
    """One clear line per face; warnings go to stderr."""
    from rich.console import Console
    from rich.markup import escape

    from ..report.document import line
    from ..session.reasons import ADVICE
    from ..types import Estimate, Reason

    console = Console(highlight=False, soft_wrap=True)
    name = Path(result.video).name
    for face in result.faces:
        who = f"{name}, face {face.id}" if len(result.faces) > 1 else name
        style = "bold green" if isinstance(face.summary, Estimate) else "yellow"
        console.print(f"{escape(who)}: [{style}]{escape(line(face))}[/{style}]")
        if windows:
            for w in face.windows:
                number = (
                    f"{w.reading.bpm:6.1f} bpm" if isinstance(w.reading, Estimate) else f"{w.reading.reason}"
                )
                console.print(f"  {w.start_s:7.1f}–{w.end_s:.1f} s  {number}  p_ok {w.reading.p_ok:.2f}")
    if not result.faces:
        reason = result.reason or Reason.NO_FACE
        console.print(f"{escape(name)}: [yellow]no reading: {reason} – {ADVICE[reason]}[/yellow]")
    if not quiet:
        for warning in result.warnings:
            stderr().print(f"warning: {escape(warning)}", style="yellow")


def print_table(results: list[Result], failures: list[Failure], quiet: bool) -> None:
    """A table of all videos and a summary."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from ..report.document import has_reading, sureness
    from ..types import Estimate

    table = Table("video", "face", "bpm", "interval", "sure", "note", box=None, header_style="bold")
    for index in (2, 3, 4):
        table.columns[index].justify = "right"
    for result in results:
        name = escape(Path(result.video).name)
        for face in result.faces:
            reading = face.summary
            if isinstance(reading, Estimate):
                cells = (
                    f"{reading.bpm:.1f}",
                    f"{reading.low:.0f}–{reading.high:.0f}",
                    sureness(reading.p_ok),
                    "",
                )
            else:
                cells = ("–", "", "", str(reading.reason))
            table.add_row(name, str(face.id), *cells)
        if not result.faces:
            table.add_row(name, "–", "–", "", "", str(result.reason))
        for warning in () if quiet else result.warnings:
            table.add_row("", "", "", "", "", f"[yellow]{escape(warning)}[/yellow]")
    for failure in failures:
        problem = failure.problem.removeprefix(f"{failure.video}: ").split("; ")[0]
        table.add_row(escape(Path(failure.video).name), "–", "–", "", "", f"[red]{escape(problem)}[/red]")
    console = Console(highlight=False)
    console.print(table)
    good = sum(map(has_reading, results))
    total = len(results) + len(failures)
    summary = f"{total} video{'s' * (total != 1)}: {good} with a reading, {len(results) - good} without"
    console.print(summary + (f", {len(failures)} could not be measured" if failures else ""))


def check_window(order: MeasureOptions) -> None:
    """Refuse windows in which nothing could ever be believed."""
    from ..errors import ArgumentError
    from ..session.calibration import load

    least_s = load(order.method).limits.min_seconds
    if order.gated and order.window_s < least_s:
        raise ArgumentError(
            "window", order.window_s, f"from {least_s:g} seconds; shorter ones with --ungated"
        )


def check_outputs(videos: list[Path], outputs: list[Path]) -> None:
    """Refuse outputs that cannot be written, that share a name, or that would replace a video."""
    from ..errors import UsageError

    taken = {video.resolve() for video in videos}
    for output in outputs:
        check_output(output)
        if output.resolve() in taken:
            raise UsageError(f"{output}: would replace a video or another output; choose another name")
        taken.add(output.resolve())


def check_picture(plot: Path | None) -> None:
    """Refuse a name that promises another format than the one that is written."""
    from ..errors import UsageError

    if plot is not None and plot.suffix.lower() != ".png":
        raise UsageError(f"--plot: got {plot}, accepted: a name ending in .png")


def check_output(path: Path) -> None:
    """Refuse a place that cannot be written before anything is measured."""
    from ..errors import OutputError
    from ..fileio import check_target

    check_target(path)
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise OutputError(path, f"{parent} is not a folder that can be written")


def _duration_s(video: Path) -> float | None:
    from ..errors import PhaseError
    from ..video.probe import probe

    try:
        return probe(video).duration_s
    except PhaseError:
        return None  # measuring says what is wrong


def stderr() -> Console:
    """Where progress and warnings go."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)
