"""`phase prepare`: convert a data set to face clips for training."""

from __future__ import annotations

from pathlib import Path

import typer

from . import options
from .terminal import escaped, open_console

NAME = "prepare"
PANEL = "Research"


def command(
    dataset: str = options.dataset(),
    root: Path = options.root(),
    out: Path = options.out(
        Path("prepared"), "DIR", "Folder for the clips; a repeated command keeps what is there."
    ),
    size: int = typer.Option(128, help="Side of the square face images in pixels."),
    fps: float = typer.Option(30.0, help="Frame rate of the clips in frames per second."),
    min_coverage: float = typer.Option(
        0.5, help="Exclude recordings with a face in a smaller share of their frames (0–1)."
    ),
    workers: int = options.workers(
        None, work="prepares the recordings", show_default="1; all CPUs of a cluster"
    ),
    engine: str = options.ENGINE,
    address: str = options.ADDRESS,
    allow_outside: bool = options.ALLOW_OUTSIDE,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Decode each recording, track the face, and store face clips with labels and checksums in a cache.

    An interrupted run can be repeated: it keeps complete clips and rebuilds damaged ones. The command lists
    the recordings that it excludes. On a cluster, ROOT and DIR are on storage that all nodes share.

    Example: `phase prepare ubfc_rppg ~/data/UBFC --out ~/data/prepared --workers 4`
    """

    from ..datasets import base
    from ..datasets.prepare import RecordingOutcome, Settings, prepare
    from ..fileio import dump_json
    from ..workers import LOCAL, Engine, WorkerDied
    from .progress import advance, bar

    console = open_console()
    settings, where = Settings(size, fps, min_coverage), Engine(engine, address)
    count = options.cluster_workers(workers, where, 1)
    if where != LOCAL:
        root, out = root.absolute(), out.absolute()  # other nodes have other working folders
    total = len(base.find(dataset, root, allow_outside=allow_outside))
    with bar("preparing", quiet) as progress:
        task = progress.add_task("", total=total)

        def on_done(outcome: RecordingOutcome) -> None:
            advance(progress, task, outcome.problem)

        report = prepare(
            dataset, root, out, settings, workers=count, engine=where, allow_outside=allow_outside,
            on_done=on_done,
        )  # fmt: skip
    counts = {action: report.count(action) for action in ("built", "kept", "rebuilt", "excluded")}
    if as_json:
        typer.echo(dump_json({"dataset": dataset, "out": str(out), **counts}))
    else:
        listed = ", ".join(f"{count} {action}" for action, count in counts.items())
        console.print(f"{dataset}: {listed} in {escaped(out)}")
    if report.died:
        names = ", ".join(problem.recording for problem in report.died)
        raise WorkerDied(names, "the worker process died; repeat the command to prepare the rest")
