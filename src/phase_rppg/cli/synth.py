"""Make synthetic face video with known truth."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Optional

import typer

NAME = "synth"


def command(
    out: Path = typer.Argument(
        ..., help="Folder to write into; an interrupted run goes on where it stopped."
    ),
    world: str = typer.Option("studio", help="A world by name (see --list) or the path of a recipe (.toml)."),
    n: int = typer.Option(8, help="How many samples (for data-set layouts: how many subjects)."),
    seconds: float = typer.Option(10.0, help="Length of each sample."),
    size: int = typer.Option(64, help="Side of the face crop in pixels (clips only)."),
    seed: int = typer.Option(0, help="Sample i of a seed is always the same."),
    form: str = typer.Option("clips", "--as", help="clips, video, ubfc_rppg, pure, buaa_mihr or mmpd."),
    bpm: Optional[float] = typer.Option(None, help="Mean heart rate of every sample."),
    codec: Optional[str] = typer.Option(None, help="raw, mjpeg or h264 instead of what the world draws."),
    crf: Optional[float] = typer.Option(None, help="Quality of h264, 0 best … 51 worst."),
    faces: Optional[Path] = typer.Option(None, help="Folder of portraits to take faces from."),
    workers: int = typer.Option(1, help="Processes; the result does not depend on it."),
) -> None:
    """Make synthetic face video with known truth: training clips, videos, or whole fake data sets.

    Example: `phase synth clips --world wild --n 640 --seconds 10 --size 64 --workers 2`
    """
    from rich.console import Console

    from ..synth import ClipJob, write_clips

    fixed = _fixed(bpm, codec, crf)
    job = ClipJob(world, seconds, size, seed, None if faces is None else str(faces), fixed)
    with _progress(n) as tell:
        clips = write_clips(out, job, n, workers=workers, done=tell)
    Console().print(f"{len(clips)} clips of {seconds:g} s at {size} px in {out}")


def _fixed(bpm: float | None, codec: str | None, crf: float | None) -> dict[str, Any]:
    """What the user holds fast instead of letting the world draw it."""
    given = {"pulse.bpm": bpm, "codec.name": codec, "codec.crf": crf}
    return {key: value for key, value in given.items() if value is not None}


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    """A bar with rate and time left; gives the function that moves it on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, rate="")

        def tell(count: int) -> None:
            bar.advance(task, count)
            speed = bar.tasks[0].speed
            bar.update(task, rate=f"{speed:.2f}/s" if speed else "")

        yield tell
