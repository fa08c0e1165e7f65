"""`phase compare`: whether one evaluated model is better than another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import typer

from . import options
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from ..evaluate.significance import PairedDifference

NAME = "compare"
PANEL = "Research"


def command(
    results: list[Path] = typer.Argument(
        ..., metavar="RESULT...", help="Folders or files of `phase evaluate --convention NAME --out DIR`."
    ),
    out: Optional[Path] = options.out(None, "DIR", "Write comparison.json and critical-difference.png here."),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
) -> None:
    """Compare evaluated models over their common subjects: paired bootstrap, Friedman test, mean ranks.

    Results of different conventions or data sets are refused; the message names them.

    Example: `phase compare results/pos results/chrom results/phasenet --out results`
    """
    from ..errors import ArgumentError, require
    from ..evaluate import comparison_files
    from ..fileio import dump_json, write_json
    from .outputs import check_output

    require("scipy", *(["matplotlib"] if out is not None else []))
    if len(results) < 2:
        raise ArgumentError("RESULT", f"{len(results)}", "at least two results")
    names = () if out is None else ("comparison.json", "critical-difference.png")
    for name in names:
        check_output((out or Path()) / name, force=force)
    compared = comparison_files.compare([comparison_files.read(path) for path in results])
    document = compared.as_json()
    if out is not None:
        write_json(out / "comparison.json", document)
        comparison_files.write_plot(out / "critical-difference.png", compared)
    if as_json:
        typer.echo(dump_json(document))
        return
    console = open_console(soft_wrap=False)
    title = f"{escaped(compared.dataset)}, convention {compared.convention}, {compared.subjects} subjects"
    console.print(_table(compared.pairs, title, escaped(compared.stamp)))
    for line in _rank_lines(document):
        console.print(escaped(line))


def _table(pairs: Sequence[PairedDifference], title: str, stamp: str) -> Table:
    from rich import box
    from rich.table import Table

    caption = f"difference of the mean absolute errors in bpm, paired by subject\n{stamp}"
    table = Table(title=title, caption=caption, box=box.SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("first", "second", "first − second", "95 % interval", "p", "better"):
        table.add_column(heading, justify="left" if heading in ("first", "second", "better") else "right")
    for one in pairs:
        interval = f"{one.interval.low:.2f} to {one.interval.high:.2f}"
        better = escaped(one.better or "–")
        numbers = (f"{one.difference:.2f}", interval, f"{one.p_value:.3f}", better)
        table.add_row(escaped(one.first), escaped(one.second), *numbers)
    return table


def _rank_lines(document: dict[str, Any]) -> list[str]:
    """Return the rank test, or why there is none, in sentences."""
    ranks = document["ranks"]
    if ranks is None:
        return ["No ranks and no diagram: these need three or more models and three or more subjects."]
    means = ", ".join(f"{name} {rank:.2f}" for name, rank in ranks["ranks"].items())
    groups = "; ".join(", ".join(group) for group in ranks["not_told_apart"]) or "none"
    return [
        f"Friedman test: p = {ranks['p_value']:.3g}; mean ranks: {means}",
        f"critical difference {ranks['critical_difference']:.2f}; not told apart: {groups}",
    ]
