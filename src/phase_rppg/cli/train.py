"""`phase train`: train a network as a recipe says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ..train.loop import Event

NAME = "train"


def command(
    recipe: str = typer.Argument(
        ...,
        metavar="RECIPE",
        help="A TOML file, or the name of a recipe that comes along: paper, stream, smoke.",
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the recipe, e.g. optimise.lr=3e-4; may be repeated.",
    ),
    out: Path = typer.Option(
        Path("run"), "--out", "-o", metavar="DIR", help="Folder for checkpoints and log.csv."
    ),
    resume: bool = typer.Option(
        False, "--resume", help="Go on with the run in this folder, exactly where it was saved."
    ),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress bar."),
) -> None:
    """Train a network from a recipe; stop it any time, and go on with --resume.

    Ctrl-C saves and exits with 130. With several processes:
    `torchrun --nproc-per-node 2 --no-python phase train …`.

    Example: `phase train smoke --out /tmp/run --set optimise.epochs=3`
    """
    import os

    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages: fresh memory is what costs on a CPU
    from ..errors import UsageError

    try:
        from ..train import loop
    except ModuleNotFoundError as error:
        raise UsageError(f"training needs {error.name}: pip install 'phase-rppg[train]'") from error
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ..train.recipe import load

    console = Console()
    loaded = load(recipe, settings)
    first = os.environ.get("RANK", "0") == "0"
    columns = (
        TextColumn("step"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, disable=quiet or not first) as bar:
        task = bar.add_task("starting", total=None)

        def show(event: Event) -> None:
            words = f"loss {event.loss:+.3f}  r {event.pearson:+.3f}"
            if event.score is not None:
                words += f"  valid r {event.score.pearson:+.3f}  MAE {event.score.mae_bpm:.2f} bpm"
            bar.update(task, total=event.steps, completed=event.step, description=words)

        checkpoint = loop.train(loaded, out, resume=resume, watch=show)
    if first:
        console.print(f"done: {checkpoint}")
