"""`phase reproduce`: reproduce the tables and figures of the paper."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from .. import registry
from . import command_line, options
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from rich.console import Console
    from rich.table import Table

    from ..evaluate.conventions import Convention
    from ..reproduce.cost_estimate import CostSettings
    from ..reproduce.plan import Plan
    from ..reproduce.result_tables import ResultTable
    from ..reproduce.runner import Outcome, Progress
    from ..reproduce.training_settings import Machine

NAME = "reproduce"
PANEL = "Research"


def _plan_names() -> list[str]:
    from ..reproduce import names

    return names()


def command(
    name: Optional[str] = typer.Argument(
        None,
        metavar="NAME",
        help="Table or figure; --list shows all names.",
        autocompletion=options.completion(_plan_names),
    ),
    data: list[str] = typer.Option(
        [],
        "--data",
        metavar="ROOT",
        help="Folder of a data set or of several data sets, or NAME=ROOT, e.g. pure=~/PURE; may be repeated.",
    ),
    out: Path = options.out(Path("reproduce"), "DIR", "Folder for tables, plots and the cache."),
    budget: str = typer.Option(
        "paper", help="Training settings: paper, or smoke, which only tests that every cell runs."
    ),
    seeds: list[int] = options.seed(
        [0], "Seed; may be repeated, then tables show the mean ± standard deviation."
    ),
    models: list[str] = typer.Option(
        [],
        "--model",
        "-m",
        metavar="MODEL",
        help="Network or method instead of those of the paper; may be repeated. "
        f"Networks: {registry.listed('nn')}. Methods: {registry.listed('methods')}.",
        autocompletion=options.completion(lambda: [*registry.names("nn"), *registry.names("methods")]),
    ),
    workers: int = options.workers(work="prepares the recordings"),
    balance: str = typer.Option(
        "source",
        "--balance",
        metavar="NAME",
        help="Share of several training sources: source (equal), or clip (by their lengths).",
    ),
    training: str = typer.Option(
        "equal",
        "--training",
        metavar="NAME",
        help="Settings of the networks: equal (the same for all), published (those of their authors), "
        "or both, in two rows each.",
    ),
    convention: Optional[str] = typer.Option(
        None,
        "--convention",
        metavar="NAME",
        help="Crop, labels, band and formulas: ours, toolbox (rPPG-Toolbox) or release (the authors of "
        "PHASE-Net).  [default: release; ours for worlds]",
        show_default=False,
    ),
    planned: bool = typer.Option(
        False, "--plan", help="Print clips, memory of a batch and estimated GPU hours, and exit."
    ),
    tflops: float = typer.Option(
        5.0, "--tflops", metavar="N", min=0.001, help="With --plan: sustained TFLOP/s of the GPU."
    ),
    device: str = options.DEVICE,
    precision: str = options.PRECISION,
    channels_last: bool = options.CHANNELS_LAST,
    compiled: bool = options.COMPILE,
    show: bool = options.LIST,
    quiet: bool = options.QUIET,
) -> None:
    """Train, test and tabulate the experiments of the paper, with the printed numbers next to ours.

    A repeated command continues an interrupted run: it keeps finished cells and resumes training. Every
    table and plot states whether its data is FAKE (made by `phase synth`) or REAL.

    Example: `phase reproduce table1 --data ~/data --out results --seed 0 --seed 1`

    Example: `phase reproduce table2 --plan --tflops 20`

    Example: `phase reproduce study --budget smoke --out /tmp/study`
    """
    import os

    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

    from ..errors import ArgumentError, UnknownNameError, require
    from ..reproduce import domains, names, runner
    from ..reproduce import training_settings as budgets
    from ..reproduce.cost_estimate import CostSettings
    from ..reproduce.plan import with_training
    from ..reproduce.store import Store

    if show:
        open_console(soft_wrap=False).print(_plan_list())
        return
    budgets.check_balance(balance)
    if len(set(seeds)) < len(seeds):
        raise ArgumentError("--seed", ", ".join(map(str, seeds)), "different whole numbers")
    if planned:
        cost = CostSettings(tuple(seeds), training, balance, budget)
        typer.echo(_cost_text(name, models, data, cost, tflops))
        return
    if name is None:
        raise UnknownNameError("table or figure", "", names())
    plan = _plan(name, models)
    rules = _convention(plan, convention)
    settings = budgets.get_budget(budget, worlds=plan.worlds)
    require("scipy", "matplotlib")
    _require_torch(plan)
    plan = with_training(plan, training)
    machine = budgets.Machine(device, precision, channels_last, compiled)
    errors, is_first = open_console(stderr=True), os.environ.get("RANK", "0") == "0"

    def log(line: str) -> None:
        if is_first:
            errors.print(escaped(line))

    with _first_process_first(plan, machine):
        opened = domains.open_domains(plan, settings, data, out, workers, log, rules)
    with _progress_bar(errors, quiet or not is_first) as update:
        outcome = runner.run(
            plan, settings, opened, Store(out / "cache"), seeds, on_progress=update, log=log, machine=machine,
            balance=balance, convention=rules,
        )  # fmt: skip
    if is_first:  # under torchrun, the first process reports
        _write(outcome, out / name, log)


def _write(outcome: Outcome, folder: Path, log: Callable[[str], None]) -> None:
    """Write and print the results; cells without a result are an error at the end."""
    from ..errors import InputError
    from ..reproduce import report

    console, plan = open_console(soft_wrap=False), outcome.plan
    files = report.write(outcome, folder, command_line.given())
    console.print(f"[bold]{escaped(outcome.stamp)}[/bold]")
    console.print(terminal_table(report.result_tables(outcome)[0], outcome))
    log("written: " + ", ".join(str(path) for path in files[:5]) + f" and {len(files) - 5} plots")
    without = [f"{row} → {column}" for row, column in (*outcome.failed, *outcome.missing)]
    if without:
        more = f" and {len(without) - 4} more" if len(without) > 4 else ""
        count = f"{len(without)} of {len(plan.cells)} cells are missing"
        raise InputError(f"{plan.name}: {count}: {'; '.join(without[:4])}{more}")


def _cost_text(
    name: str | None, models: Sequence[str], data: Sequence[str], settings: CostSettings, tflops: float
) -> str:
    """Return the estimated cost of one table, or of all of them; name the data sets that were not found."""
    from ..errors import ArgumentError
    from ..reproduce import cost_estimate, domains

    if name is None and models:
        raise ArgumentError("--model", ", ".join(models), "with a table: phase reproduce NAME --plan")
    plans = cost_estimate.all_plans() if name is None else [_plan(name, models)]
    for plan in plans:
        _require_torch(plan)
    search = domains.locate([str(Path(root).expanduser()) for root in data]) if data else None
    needed = dict.fromkeys(d for plan in plans if not plan.worlds for d in plan.domains)
    if search is not None:
        for absent in search.missing(list(needed)):
            line = f"{search.explain(absent)}; its described size is used"
            open_console(stderr=True).print(escaped(line))
    sets = cost_estimate.nominal_domains(search)
    used = sets if name is None else cost_estimate.used_domains(plans[0], settings, sets)
    return cost_estimate.text(cost_estimate.plan_costs(plans, settings, sets), tflops, used)


def _convention(plan: Plan, name: str | None) -> Convention:
    """Return the convention of a table; generated worlds are crops already, which only `ours` fits."""
    from ..errors import ArgumentError
    from ..evaluate import conventions

    rules = conventions.get(name or ("ours" if plan.worlds else "release"))
    if plan.worlds and rules is not conventions.OURS:
        raise ArgumentError("--convention", rules.name, f"ours with {plan.name}, whose clips are generated")
    return rules


def terminal_table(results: ResultTable, outcome: Outcome) -> Table:
    """Return a table for the terminal with one metric per group and the paper's numbers in parentheses."""
    from rich import box
    from rich.table import Table

    metrics = results.groups[0][1]
    all_metrics = len(results.groups) == 1  # a single group leaves enough width
    shown = " and ".join(metrics) if all_metrics else metrics[0]
    caption = f"{shown}; in parentheses: the paper\n{outcome.stamp}"
    table = Table(title=results.title, caption=caption, box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", no_wrap=True)
    for group, names in results.groups:
        for heading in names if all_metrics else (group,):
            table.add_column(heading, justify="right")
    lines: dict[str, tuple[list[str], list[str]]] = {}
    for row in results.rows:
        cells = row.cells if all_metrics else row.cells[:: len(metrics)]
        lines.setdefault(row.label, (["" for _ in cells], ["" for _ in cells]))[not row.ours][:] = cells
    for label, (ours, printed) in lines.items():
        texts = [
            f"{mine} ({theirs})".strip() if theirs not in ("", "–") else mine
            for mine, theirs in zip(ours, printed, strict=True)
        ]
        table.add_row(label, *texts, style="" if any(ours) else "dim")
    return table


def _plan_list() -> Table:
    """Return a table of all plans with the data sets that they need."""
    from rich import box
    from rich.table import Table

    from ..reproduce import make_plan, names

    shown = Table(box=box.SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("name", "cells", "data", "title"):
        shown.add_column(
            heading, no_wrap=heading in ("name", "cells"), justify="right" if heading == "cells" else "left"
        )
    for name in names():
        plan = make_plan(name)
        data = "worlds" if plan.worlds else ", ".join(plan.domains) or "none"
        shown.add_row(name, str(len(plan.cells)), data, plan.title)
    return shown


def _plan(name: str, models: Sequence[str]) -> Plan:
    """Return the plan for some models; a model that the plan cannot use is an error."""
    from ..errors import ArgumentError
    from ..reproduce import make_plan

    plan = make_plan(name, models)
    used = list(dict.fromkeys(cell.model.name for cell in plan.cells))
    if unused := [model for model in models if model not in used]:
        raise ArgumentError("--model", ", ".join(unused), f"with {name} only {', '.join(used)}")
    return plan


def _require_torch(plan: Plan) -> None:
    from ..errors import require

    if any(cell.model.trainable for cell in plan.cells):
        require("torch")


def _first_process_first(plan: Plan, machine: Machine) -> AbstractContextManager[None]:
    """Under torchrun, let the first process prepare the data before the others."""
    import os

    if "WORLD_SIZE" not in os.environ or not any(cell.model.trainable for cell in plan.cells):
        return contextlib.nullcontext()
    from ..train import loop

    return loop.first_process_first(*loop.join_processes(machine.compute()))


@contextlib.contextmanager
def _progress_bar(console: Console, quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Show a progress bar over all cells; yield the function that updates it."""
    from rich import progress

    columns = (
        progress.TextColumn("{task.fields[cell]}"),
        progress.BarColumn(),
        progress.TextColumn("{task.description}"),
        progress.TimeRemainingColumn(),
    )
    hidden = quiet or not console.is_terminal
    with progress.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=None, cell="")

        def update(state: Progress) -> None:
            count = f"{int(state.done)}/{state.cells}"
            bar.update(task, total=state.cells, completed=state.done, description=count, cell=state.label)

        yield update
