"""`phase reproduce`: the tables and figures of the paper, on your copies of its data sets."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console
    from rich.table import Table

    from ..reproduce.budget import Budget
    from ..reproduce.domains import Domain
    from ..reproduce.plan import Plan
    from ..reproduce.result_tables import Grid
    from ..reproduce.runner import Outcome
    from ..reproduce.runner import Progress as Told

NAME = "reproduce"


def command(
    name: Optional[str] = typer.Argument(None, help="What to reproduce; --list names them all."),
    data: list[str] = typer.Option(
        [],
        "--data",
        metavar="ROOT",
        help="A folder that is, or holds, data sets; or NAME=ROOT, e.g. pure=~/PURE. Can be repeated.",
    ),
    out: Path = typer.Option(
        Path("reproduce"), "--out", "-o", help="Folder for tables, plots and the cache."
    ),
    budget: str = typer.Option(
        "paper", help="paper: its settings; smoke: minutes, only to see that it runs."
    ),
    seeds: str = typer.Option("0", help="Seeds, e.g. 0,1,2; tables then show mean ± standard deviation."),
    models: str = typer.Option("", help="Only these networks and methods, e.g. phasenet,pos."),
    workers: int = typer.Option(1, help="Recordings prepared at once; 0: in this process."),
    show: bool = typer.Option(False, "--list", help="Name everything that can be reproduced, and stop."),
) -> None:
    """Train, test and tabulate what the paper shows, with the paper's numbers beside ours.

    Stop it any time and give the same command again: finished cells are kept, a training goes on where it
    was saved. Every table and plot says whether its data is FAKE (made by `phase synth`) or REAL.

    Example: `phase reproduce table1 --data ~/data --out results --seeds 0,1,2`

    Example: `phase reproduce study --budget smoke --out /tmp/study`
    """
    import os

    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    from rich.console import Console

    from ..errors import InputError, UnknownNameError
    from ..reproduce import budget as budgets
    from ..reproduce import names, report, runner
    from ..reproduce.store import Store

    console = Console()
    if show:
        console.print(_listing())
        return
    if name is None:
        raise UnknownNameError("table or figure", "", names())
    plan = _plan(name, models.replace(",", " ").split())
    chosen = budgets.budget_of(budget, worlds=plan.worlds)
    wanted = _seeds(seeds)
    _needs_torch(plan)
    errors = Console(stderr=True)

    def say(line: str) -> None:
        errors.print(line, markup=False, highlight=False, soft_wrap=True)

    domains = _domains(plan, chosen, data, out, workers, say)
    with _progress(errors) as watch:
        outcome = runner.run(plan, chosen, domains, Store(out / "cache"), wanted, watch=watch, say=say)
    files = report.write(outcome, out / name)
    console.print(f"[bold]{outcome.stamp}[/bold]")
    console.print(table(report.grids(outcome)[0], outcome))
    say("written: " + ", ".join(str(path) for path in files[:4]) + f" and {len(files) - 4} plots")
    lost = [f"{row} → {column}" for row, column in (*outcome.failed, *outcome.missing)]
    if lost:
        more = f" and {len(lost) - 4} more" if len(lost) > 4 else ""
        raise InputError(
            f"{name}: {len(lost)} of {len(plan.cells)} cells are missing: {'; '.join(lost[:4])}{more}"
        )


def table(grid: Grid, outcome: Outcome) -> Table:
    """A table for the terminal: the first metric of every group, the paper's number in brackets."""
    from rich import box
    from rich.table import Table

    metrics = grid.groups[0][1]
    every = len(grid.groups) == 1  # a single group has room for all its metrics
    caption = f"{metrics[0] if not every else ' and '.join(metrics)}; in brackets: the paper\n{outcome.stamp}"
    shown = Table(title=grid.title, caption=caption, box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    shown.add_column("", no_wrap=True)
    for group, names in grid.groups:
        for heading in names if every else (group,):
            shown.add_column(heading, justify="right")
    lines: dict[str, tuple[list[str], list[str]]] = {}
    for row in grid.rows:
        picked = row.cells if every else row.cells[:: len(metrics)]
        lines.setdefault(row.label, (["" for _ in picked], ["" for _ in picked]))[not row.ours][:] = picked
    for label, (ours, printed) in lines.items():
        texts = [
            f"{mine} ({theirs})".strip() if theirs not in ("", "–") else mine
            for mine, theirs in zip(ours, printed, strict=True)
        ]
        shown.add_row(label, *texts, style="" if any(ours) else "dim")
    return shown


def _listing() -> Table:
    from rich import box
    from rich.table import Table

    from ..reproduce import names, plan_of

    shown = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("name", "cells", "needs", "what"):
        shown.add_column(
            heading, no_wrap=heading in ("name", "cells"), justify="right" if heading == "cells" else "left"
        )
    for name in names():
        plan = plan_of(name)
        needs = "worlds" if plan.worlds else ", ".join(plan.domains) or "nothing"
        shown.add_row(name, str(len(plan.cells)), needs, plan.title)
    return shown


def _plan(name: str, models: Sequence[str]) -> Plan:
    """The plan for these models; those that it has no place for are refused."""
    from ..errors import ArgumentError
    from ..reproduce import plan_of

    plan = plan_of(name, models)
    taken = list(dict.fromkeys(cell.model.name for cell in plan.cells))
    if unused := [model for model in models if model not in taken]:
        raise ArgumentError("--models", ", ".join(unused), f"with {name} only {', '.join(taken)}")
    return plan


def _seeds(text: str) -> list[int]:
    from ..errors import ArgumentError

    words = text.replace(",", " ").split()
    if not words or not all(word.isdigit() for word in words) or len(set(words)) < len(words):
        raise ArgumentError("--seeds", repr(text), "different whole numbers, e.g. 0,1,2")
    return [int(word) for word in words]


def _needs_torch(plan: Plan) -> None:
    from ..errors import UsageError

    if any(cell.model.learns for cell in plan.cells):
        try:
            import torch  # noqa: F401
        except ModuleNotFoundError as error:
            raise UsageError("networks need torch: pip install 'phase-rppg[train]'") from error


def _domains(
    plan: Plan, budget: Budget, data: Sequence[str], out: Path, workers: int, say: Callable[[str], None]
) -> dict[str, Domain]:
    """Find and prepare what the plan needs; what is missing is said, with what can still run."""
    from ..errors import InputError
    from ..reproduce import domains

    if plan.worlds:
        made = {}
        for world in plan.domains:
            made[world] = domains.open_world(world, out / "clips" / budget.name, budget, workers, say)
        return made
    if not plan.domains:
        return {}
    located = domains.locate([str(Path(root).expanduser()) for root in data])
    missing = located.missing(plan.domains)
    for name in missing:
        say(located.explain(name))
    possible = [cell for cell in plan.cells if not set(cell.domains) & set(missing)]
    if not possible:
        raise InputError(f"{plan.name}: no cell can run; {located.explain(missing[0])}")
    if missing:
        rows = ", ".join(dict.fromkeys(f"{cell.row} → {cell.column}" for cell in possible[:6]))
        more = " …" if len(possible) > 6 else ""
        say(f"{len(possible)} of {len(plan.cells)} cells can still run: {rows}{more}")
    needed = dict.fromkeys(domain for cell in possible for domain in cell.domains)
    ready = {}
    for name in needed:
        say(f"{name}: preparing {located.found[name]}")
        try:
            ready[name] = domains.open_dataset(
                name, located.found[name], out / "prepared" / budget.name, budget, workers, say
            )
        except InputError as error:  # its cells are missing, the others can run
            say(str(error))
    if not ready:
        raise InputError(f"{plan.name}: none of its data sets can be used: {', '.join(needed)}")
    return ready


@contextlib.contextmanager
def _progress(console: Console) -> Iterator[Callable[[Told], None]]:
    """One bar for all cells; gives the function that moves it."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.fields[cell]}"), BarColumn(), TextColumn("{task.description}"))
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=None, cell="")

        def watch(told: Told) -> None:
            words = f"{int(told.done)}/{told.cells}"
            bar.update(task, total=told.cells, completed=told.done, description=words, cell=told.label)

        yield watch
