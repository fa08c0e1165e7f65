"""`phase measure`: measure the heart rate in face videos."""

from __future__ import annotations

import contextlib
import copy
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..workers import LOCAL
from . import options
from .measure_outputs import STDOUT, Outputs
from .measure_text import Printed, print_result, stderr

if TYPE_CHECKING:
    from ..measurement.batch import FaceChoice, VideoInput
    from ..measurement.measure import MeasureOptions
    from ..session.results import Result

__all__ = ["NAME", "PANEL", "command", "measure_one", "print_result", "progress_bar", "stderr"]

NAME = "measure"
PANEL = "Measure"
CAMERA_ALONE = (
    "--camera cannot be combined with videos, --fps, a face number or output files; "
    "--json prints a line per window"
)
_INPUT, _FILES, _TEXT = "Input", "Output files", "Printed output"


def _in(panel: str, option: Any) -> Any:
    """Return a shared option in a panel of the help text."""
    placed = copy.copy(option)
    placed.rich_help_panel = panel
    return placed


def command(
    videos: list[str] = typer.Argument(
        None,
        metavar="VIDEO…",
        help="Video files, folders of videos or frames, colour traces (.csv), addresses such as "
        "s3://bucket/folder, @FILE with a list of these, or - for standard input.",
    ),
    camera: str = typer.Option(
        None,
        "--camera",
        metavar="N",
        help="Measure live from a camera: its number (0 is the first) or its name.",
        rich_help_panel=_INPUT,
    ),
    pattern: str = typer.Option(
        None,
        "--glob",
        metavar="PATTERN",
        help="Files to take from folders, such as `*.avi` or `subject*/vid.avi`.",
        rich_help_panel=_INPUT,
    ),
    fps: float = _in(_INPUT, options.FPS),
    allow_network: bool = typer.Option(
        False,
        "--allow-network",
        help="Read videos from web addresses and object stores.",
        rich_help_panel=_INPUT,
    ),
    model: str = options.model("How to measure", "an exported network (.json or .onnx)"),
    window_s: float = options.WINDOW,
    step_s: float = options.STEP,
    face: str = typer.Option("all", "--face", help="Faces to measure: all, largest, or a face number."),
    ungated: bool = typer.Option(False, "--ungated", help="Show the rate and p_ok of every window."),
    workers: int = options.workers(None, work="measures the videos", show_default="one per CPU core"),
    engine: str = options.ENGINE,
    address: str = options.ADDRESS,
    out: Path = options.out(
        None,
        "DIR",
        "Write all results into this folder; several videos get a sub-folder each.",
        rich_help_panel=_FILES,
    ),
    overlay: bool = typer.Option(
        False,
        "--overlay",
        help="Add to -o a video with face box, mask, waveform and rate.",
        rich_help_panel=_FILES,
    ),
    csv_file: Path = typer.Option(
        None,
        "--csv",
        metavar="FILE",
        help="Write one row per window; - is standard output.",
        rich_help_panel=_FILES,
    ),
    parquet: str = typer.Option(
        None,
        "--parquet",
        metavar="DIR",
        help="Write Parquet tables of all videos into this folder or object store, for many videos.",
        rich_help_panel=_FILES,
    ),
    wave: Path = typer.Option(
        None,
        "--wave",
        metavar="FILE",
        help="Write the waveform as .csv, .edf (EDF+) or .hea (WFDB).",
        rich_help_panel=_FILES,
    ),
    beats: Path = typer.Option(
        None,
        "--beats",
        metavar="FILE.csv",
        help="Write the beats and their intervals.",
        rich_help_panel=_FILES,
    ),
    plot: Path = _in(_FILES, options.plot("Plot the waveform, its spectrum and the rate over time.")),
    report: Path = typer.Option(
        None, "--report", metavar="FILE.html", help="Write an HTML report.", rich_help_panel=_FILES
    ),
    force: bool = _in(_FILES, options.FORCE),
    resume: bool = typer.Option(
        False,
        "--resume",
        help="With -o or --parquet, skip videos that were already measured with the same options.",
        rich_help_panel=_FILES,
    ),
    as_json: bool = typer.Option(
        False,
        "--json",
        help="Print JSON: a document, a list for several videos, or live a line per window.",
        rich_help_panel=_TEXT,
    ),
    ndjson: bool = typer.Option(
        False,
        "--ndjson",
        help="Print JSON, one line per video, as soon as it is measured.",
        rich_help_panel=_TEXT,
    ),
    full: bool = typer.Option(
        False, "--full", help="Add the waveform and the beats to the JSON.", rich_help_panel=_TEXT
    ),
    quiet: bool = _in(_TEXT, options.QUIET),
) -> None:
    """Measure the heart rate of every face in a video, or report why there is no reading.

    A window gets a rate only if p_alive, p_ok and the quality of the input suffice; `--ungated` shows all
    rates. Exit code: 0 a reading, 3 no reading, 4 the video cannot be read. For several videos, 0 means that
    at least one has a reading. `--camera` measures until Ctrl+C. Not a medical device.

    Example: `phase measure face.mp4 -o results`, or `phase measure --camera 0`

    Example: `phase measure videos --parquet results --resume --engine ray`
    """
    from ..errors import InputError, UsageError
    from ..measurement.batch import FaceChoice
    from ..measurement.measure import MeasureOptions
    from ..workers import Engine
    from .measure_inputs import open_inputs

    number = face_number(face)
    settings = MeasureOptions(
        model, window_s, step_s, "all" if number is not None else face, fps, gated=not ungated
    )
    settings.config()  # refuses wrong values
    check_window(settings)
    where = Engine(engine, address)
    outputs = Outputs(out, overlay, wave, beats, plot, csv_file, report, force, resume, parquet=parquet)
    printed = Printed(as_json, ndjson, full and parquet is None, csv_file == STDOUT, ungated, quiet)
    printed.check()
    if parquet is not None and ndjson:
        raise UsageError("--parquet prints a summary; choose --json, or --ndjson without --parquet")
    outputs.check_names(settings)
    if camera is not None:
        if videos or fps is not None or ndjson or outputs != Outputs() or number is not None:
            raise UsageError(CAMERA_ALONE)
        from .measure_camera import measure_camera

        raise typer.Exit(measure_camera(camera, settings, as_json=as_json, quiet=quiet))
    if not videos:
        raise UsageError("no input given; name a video, a folder of videos, or --camera 0")
    with (
        printed.errors_as_json(videos),
        open_inputs(videos, pattern, out, allow_network=allow_network) as (found, failures),
    ):
        if not found:
            raise InputError(failures[0].problem)
        count = options.cluster_workers(workers, where, os.cpu_count() or 1)
        if parquet is not None:
            from ..report.tables import TableJob, TableStore
            from .measure_tables import TableRun

            job, store = TableJob(settings, FaceChoice(number), full), TableStore(parquet, settings.method)
            tables = TableRun(job, store, where, count, quiet, as_json)
            code = tables.run(found, failures, tables.prepare(resume=resume, force=force))
        elif where == LOCAL and len(found) == len(videos) == 1 and is_single(videos[0], found[0]):
            code = measure_single(found[0], settings, FaceChoice(number), outputs, printed)
        else:
            from .measure_batch import Batch

            files = replace(outputs if where == LOCAL else outputs.absolute(), several=True)
            batch = Batch(settings, FaceChoice(number), files, printed)
            code = batch.run(found, failures, count, where)
    raise typer.Exit(code)


def face_number(face: str) -> int | None:
    """Return the number that `--face` names, or None for a word."""
    from ..errors import ArgumentError
    from ..session.config import FACES

    if face.isdecimal():
        return int(face)
    if face not in FACES:
        raise ArgumentError("--face", face, f"{', '.join(FACES)} or the number of a face")
    return None


def is_single(name: str, video: VideoInput) -> bool:
    """Return whether an argument is one video, not a folder or a list that is searched for videos."""
    from ..measurement.batch import is_frame_folder

    if video.address or (name.startswith("@") and video.name != name):
        return False
    return not os.path.isdir(name) or is_frame_folder(Path(name))


def measure_single(
    video: VideoInput, options: MeasureOptions, face: FaceChoice, outputs: Outputs, printed: Printed
) -> int:
    """Measure one video, write and print its result, and return the exit code."""
    from ..measurement.batch import errors_named
    from ..report.document import csv_text, document, has_reading
    from . import NO_READING
    from .measure_outputs import VideoWriter, write_common

    outputs.check_targets([video])
    if (stored := outputs.stored(video, options, face)) is not None:
        return printed.repeat(stored, outputs)
    with errors_named(video):
        result = face.apply(replace(measure_one(video.path, options, printed.quiet), video=video.name))
    unwritten = VideoWriter(outputs, options, face)(video, result) + write_common(outputs, [result], [])
    if printed.is_json:
        printed.document(document(result, windows=iter if printed.as_json else list, full=printed.full))
    elif printed.csv:
        typer.echo(csv_text([result]), nl=False)
    else:
        print_result(result, windows=printed.windows, quiet=printed.quiet)
        if not unwritten:
            printed.written(outputs)
    if unwritten:
        raise unwritten[0]  # after the result, so that it is not lost
    return 0 if has_reading(result) else NO_READING


def measure_one(video: Path, options: MeasureOptions, quiet: bool) -> Result:
    """Measure one video and show a progress bar."""
    from ..measurement.measure import run

    with progress_bar(video, quiet) as update:
        return run(video, options, update)


@contextlib.contextmanager
def progress_bar(video: Path, quiet: bool) -> Iterator[Callable[[float], None]]:
    """Show a progress bar in a terminal; yield the function that sets the position in seconds."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from .terminal import escaped

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[at]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr(), transient=True) as bar:
        task = bar.add_task(escaped(video.name), total=_duration_s(video), at="")
        yield lambda s: bar.update(task, completed=s, at=f"{s:.0f} s")


def check_window(options: MeasureOptions) -> None:
    """Refuse windows that are too short for the gate."""
    from ..errors import ArgumentError
    from ..session.calibration import load

    min_s = load(options.method).limits.min_seconds
    if options.gated and options.window_s < min_s:
        raise ArgumentError(
            "window", options.window_s, f"at least {min_s:g} seconds; shorter windows with --ungated"
        )


def _duration_s(video: Path) -> float | None:
    from ..errors import PhaseError
    from ..measurement.measure import is_trace
    from ..video.probe import probe

    if is_trace(video):
        return None
    try:
        return probe(video).duration_s
    except PhaseError:
        return None  # the measurement reports the error
