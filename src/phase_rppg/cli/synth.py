"""Make synthetic face video with known truth."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import typer

NAME = "synth"


def command(
    out: Optional[Path] = typer.Argument(
        None, metavar="OUT", help="Folder to write into; an interrupted run goes on where it stopped."
    ),
    world: str = typer.Option("studio", help="A world by name (see --list) or the path of a recipe (.toml)."),
    n: int = typer.Option(8, help="How many clips or videos; for data sets: how many subjects."),
    seconds: float = typer.Option(10.0, help="Length of each."),
    size: Optional[int] = typer.Option(
        None,
        help="Side of a face crop, or height of a video.",
        show_default="64; videos 480, mmpd 240",
    ),
    seed: int = typer.Option(0, help="Sample i of a seed is always the same."),
    form: str = typer.Option("clips", "--as", help="clips, video, ubfc_rppg, pure, buaa_mihr or mmpd."),
    codec: Optional[str] = typer.Option(None, help="raw, mjpeg or h264, instead of what the world draws."),
    crf: Optional[float] = typer.Option(None, min=0, max=51, help="Quality of h264: 0 best … 51 worst."),
    bpm: Optional[float] = typer.Option(None, min=30, max=250, help="Mean heart rate of every sample."),
    people: Optional[int] = typer.Option(None, min=1, max=4, help="People in the picture (videos)."),
    faces: Optional[Path] = typer.Option(
        None, "--faces", metavar="DIR", help="Folder of portraits to take faces from."
    ),
    per_subject: Optional[int] = typer.Option(None, min=1, help="Only the first so many recordings of each."),
    workers: int = typer.Option(1, min=1, help="Processes; the result does not depend on it."),
    sheet: Optional[Path] = typer.Option(
        None, "--contact-sheet", metavar="FILE.png", help="Draw samples of all worlds as a PNG."
    ),
    show: bool = typer.Option(False, "--list", help="List the worlds and stop."),
) -> None:
    """Make synthetic face video with known truth: training clips, videos, or whole fake data sets.

    Example: `phase synth clips --world wild --n 640 --seconds 10 --size 64 --workers 2`

    Example: `phase synth fake --as ubfc_rppg --n 5 --seconds 30 --codec h264 --crf 23`

    Example: `phase synth --contact-sheet worlds.png`
    """
    from rich.console import Console

    from ..errors import UsageError
    from ..synth import world as worlds

    console = Console()
    if show:
        for name in worlds.names():
            console.print(f"{name:14} {worlds.load(name).about}", highlight=False)
        return
    chosen = worlds.load(world)
    if sheet is not None:
        from ..synth.contact_sheet import contact_sheet

        contact_sheet(sheet, worlds.names(), seed=seed, workers=workers, faces=faces)
        console.print(f"{sheet}: samples of {len(worlds.names())} worlds", highlight=False)
        return
    if out is None:
        raise UsageError("no folder given; say where to write: phase synth OUT --world studio")
    fixed = _fixed(bpm, codec, crf, people)
    folder = None if faces is None else str(faces.resolve())
    if form == "clips":
        from ..synth import ClipJob, write_clips

        side = 64 if size is None else size
        with _progress() as (total, tell):
            total(n)
            write_clips(
                out, ClipJob(world, seconds, side, seed, folder, fixed), n, workers=workers, done=tell
            )
        console.print(f"{n} clips of {seconds:g} s at {side} px of {chosen.name} in {out}", highlight=False)
        return
    from ..synth.writers import FilmJob, write_recordings

    height = size or (240 if form == "mmpd" else 480)
    job = FilmJob(form, str(out), world, seconds, height, seed, folder, fixed)
    with _progress() as (total, tell):
        shots = write_recordings(job, n, per_subject=per_subject, workers=workers, started=total, done=tell)
    console.print(f"{len(shots)} recordings of {seconds:g} s of {chosen.name} in {out}", highlight=False)


def _fixed(bpm: float | None, codec: str | None, crf: float | None, people: int | None) -> dict[str, Any]:
    """What the user holds fast instead of letting the world draw it."""
    from ..errors import UnknownNameError
    from ..synth.codec import NAMES

    if codec is not None and codec not in NAMES:
        raise UnknownNameError("codec", codec, NAMES)
    given = {"pulse.bpm": bpm, "codec.name": codec, "codec.crf": crf, "frame.people": people}
    return {key: value for key, value in given.items() if value is not None}


@contextlib.contextmanager
def _progress() -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """A bar with rate and time left; gives the functions that say how much there is and how much is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=None, rate="")

        def total(count: int) -> None:
            bar.update(task, total=count)

        def tell(count: int) -> None:
            bar.advance(task, count)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:.2f}/s" if speed else "")

        yield total, tell
