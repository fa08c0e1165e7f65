"""`phase synth`: generate synthetic face video with a known pulse."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import typer

from .. import registry
from ..text import counted
from . import choices, options
from .terminal import escaped, open_console

NAME = "synth"
PANEL = "Research"


def command(
    out: Optional[Path] = options.out(
        None, "DIR", "Folder to write; a repeated command continues an interrupted run."
    ),
    world: str = typer.Option(
        "studio",
        "--world",
        "-w",
        metavar="NAME",
        help=f"World ({registry.listed('worlds')}), or the path of a world file (.toml).",
        autocompletion=options.completion(lambda: registry.names("worlds"), files=True),
    ),
    n: int = typer.Option(8, help="Number of clips or videos; for a data set, number of subjects."),
    seconds: float = typer.Option(10.0, help="Length of each clip or recording in seconds."),
    size: Optional[int] = typer.Option(
        None,
        help="Side of a face clip, or height of a video, in pixels.",
        show_default="64 for clips; for videos, set by the format",
    ),
    seed: int = options.seed(0, "Seed of the generator; sample i of a seed is always the same."),
    layout: str = typer.Option(
        "clips",
        "--as",
        metavar="FORMAT",
        help=f"Output format: {choices.output_formats()}.",
        autocompletion=options.completion(lambda: choices.output_formats().split(", ")),
    ),
    codec: Optional[str] = typer.Option(
        None, help="Codec: raw, mjpeg, h264, hevc or mpeg4; default: random."
    ),
    crf: Optional[float] = typer.Option(None, min=0, max=51, help="Quality of h264: 0 best, 51 worst."),
    bpm: Optional[float] = typer.Option(None, min=30, max=250, help="Mean heart rate of every sample."),
    settings: Optional[list[str]] = typer.Option(
        None,
        "--set",
        metavar="SECTION.KEY=VALUE",
        help="A value instead of a random one, e.g. pulse.present=false; may be repeated.",
    ),
    people: Optional[int] = typer.Option(None, min=1, max=4, help="Number of people in a video."),
    faces: Optional[Path] = typer.Option(
        None, "--faces", metavar="DIR", help="Folder of portraits; their faces replace the drawn ones."
    ),
    per_subject: Optional[int] = typer.Option(
        None, min=1, help="Write only the first recordings of each subject, at most this many."
    ),
    workers: int = options.workers(
        None, work="generates the samples", show_default="1; all CPUs of a cluster"
    ),
    engine: str = options.ENGINE,
    address: str = options.ADDRESS,
    sheet: Optional[Path] = typer.Option(
        None,
        "--contact-sheet",
        metavar="FILE",
        help="Write a figure with samples of all worlds and exit. Accepts .png, .svg and .pdf.",
    ),
    show: bool = options.LIST,
    force: bool = options.FORCE,
    quiet: bool = options.QUIET,
) -> None:
    """Generate synthetic face video with a known pulse: training clips, videos or whole data sets.

    Example: `phase synth --out clips --world wild --n 640 --seconds 10 --size 64 --workers 2`

    Example: `phase synth --out fake --as ubfc_rppg --n 5 --seconds 30 --codec h264 --crf 23`

    Example: `phase synth --out twins --as video --world handheld --set pulse.present=false`

    Example: `phase synth --contact-sheet worlds.png`
    """
    from ..errors import UsageError, require
    from ..synth import world as worlds
    from ..workers import Engine
    from .outputs import check_figure

    console = open_console()
    where = Engine(engine, address)
    count = options.cluster_workers(workers, where, 1)
    if show:
        for name in worlds.names():
            console.print(f"{name:14} {escaped(worlds.load(name).about)}")
        return
    chosen = worlds.load(world)
    if sheet is not None:
        require("scipy")
        check_figure(sheet, force=force, option="--contact-sheet")
        from ..synth.contact_sheet import contact_sheet

        contact_sheet(
            sheet, worlds.names(), seed=seed, workers=1 if workers is None else workers, faces=faces
        )
        console.print(f"{escaped(sheet)}: samples of {len(worlds.names())} worlds")
        return
    if out is None:
        raise UsageError("no output folder given; name one: phase synth --out DIR --world studio")
    fixed = _fixed(bpm, codec, crf, people) | dict(map(worlds.parse_setting, settings or ()))
    folder = None if faces is None else str(faces.resolve())
    if layout == "clips":
        from ..synth import ClipJob, write_clips

        side = 64 if size is None else size
        with _progress(quiet) as (set_total, advance):
            set_total(n)
            job = ClipJob(world, seconds, side, seed, folder, fixed)
            write_clips(out, job, n, workers=count, engine=where, done=advance)
        made = f"{counted(n, 'clip')} of {seconds:g} s at {side} px"
        console.print(f"{made} of {escaped(chosen.name)} in {escaped(out)}")
        return
    from ..synth.writers import HEIGHT_PX, RecordingJob, write_recordings, writer

    default_px: int = getattr(writer(layout), "HEIGHT_PX", HEIGHT_PX)
    height = size or default_px
    recordings = RecordingJob(layout, str(out.absolute()), world, seconds, height, seed, folder, fixed)
    with _progress(quiet) as (set_total, advance):
        shots = write_recordings(
            recordings, n, per_subject=per_subject, workers=count, engine=where, started=set_total,
            done=advance,
        )  # fmt: skip
    made = f"{counted(len(shots), 'recording')} of {seconds:g} s"
    console.print(f"{made} of {escaped(chosen.name)} in {escaped(out)}")


def _fixed(bpm: float | None, codec: str | None, crf: float | None, people: int | None) -> dict[str, Any]:
    """Return the parameters that the user sets; the world draws the others."""
    from ..errors import UnknownNameError
    from ..synth.codec import NAMES

    if codec is not None and codec not in NAMES:
        raise UnknownNameError("codec", codec, NAMES)
    given = {"pulse.bpm": bpm, "codec.name": codec, "codec.crf": crf, "frame.people": people}
    return {key: value for key, value in given.items() if value is not None}


@contextlib.contextmanager
def _progress(quiet: bool) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Show a progress bar; yield the functions that set its total and that advance it."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=open_console(stderr=True), disable=quiet) as bar:
        task = bar.add_task("", total=None, rate="")

        def set_total(count: int) -> None:
            bar.update(task, total=count)

        def advance(count: int) -> None:
            bar.advance(task, count)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:.2f}/s" if speed else "")

        yield set_total, advance
