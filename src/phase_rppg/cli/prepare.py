"""`phase prepare`: a data set becomes clips that networks can be trained on."""

from __future__ import annotations

from pathlib import Path

import typer

NAME = "prepare"


def command(
    dataset: str = typer.Argument(..., metavar="DATASET", help="ubfc_rppg, pure, buaa_mihr, mmpd or folder."),
    root: Path = typer.Argument(..., metavar="ROOT", help="The folder of the data set."),
    cache: Path = typer.Option(
        Path("phase-cache"), "--cache", metavar="DIR", envvar="PHASE_CACHE", help="Where the clips are kept."
    ),
    size: int = typer.Option(128, help="Side of the square face pictures in pixels."),
    fps: float = typer.Option(30.0, help="Frames per second of the clips."),
    min_coverage: float = typer.Option(
        0.5, help="Leave out recordings that show a face in less of their time (0–1)."
    ),
    workers: int = typer.Option(
        1, help="Recordings worked on at once, each in its own process; 0: in this one."
    ),
) -> None:
    """Decode every recording, follow the face, and store face clips with their labels in a checked cache.

    Can be stopped and started again: what is complete and sound is kept, a damaged clip is rebuilt alone.
    Recordings that cannot be used are named and left out.

    Example: `phase prepare ubfc_rppg ~/data/UBFC --cache ~/data/phase-cache --workers 4`
    """
    from rich.console import Console

    from ..datasets import base
    from ..datasets.prepare import Done, Settings, prepare
    from ..workers import WorkerDied
    from .progress import bar

    console = Console()
    settings = Settings(size, fps, min_coverage)
    total = len(base.find(dataset, root))
    with bar("preparing") as progress:
        task = progress.add_task("", total=total)

        def on_done(outcome: Done) -> None:
            progress.advance(task)
            if outcome.problem is not None:
                progress.console.print(
                    f"excluded: {outcome.problem}", markup=False, highlight=False, soft_wrap=True
                )

        report = prepare(dataset, root, cache, settings, workers=workers, on_done=on_done)
    counts = [f"{report.count(action)} {action}" for action in ("built", "kept", "rebuilt", "excluded")]
    console.print(f"{dataset}: {', '.join(counts)} in {cache}", markup=False, highlight=False, soft_wrap=True)
    if report.died:
        names = ", ".join(problem.recording for problem in report.died)
        raise WorkerDied(names, "the process that worked on it died; run the command again for the rest")
