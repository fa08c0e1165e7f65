"""`phase audit`: what is wrong with a data set, before a network learns it."""

from __future__ import annotations

from pathlib import Path

import typer

NAME = "audit"


def command(
    dataset: str = typer.Argument(..., metavar="DATASET", help="ubfc_rppg, pure, buaa_mihr, mmpd or folder."),
    root: Path = typer.Argument(..., metavar="ROOT", help="The folder of the data set."),
    out: Path = typer.Option(
        Path("audit.html"), "--out", "-o", metavar="FILE.html", help="The report, one HTML file."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the figures and findings as JSON as well."),
    workers: int = typer.Option(
        1, help="Recordings looked at at once, each in its own process; 0: in this one."
    ),
    strict: bool = typer.Option(False, "--strict", help="End with code 4 when anything is found."),
) -> None:
    """Check a data set for shifted, copied or flat labels, cut videos, missing faces and gaps.

    Every video is decoded once, its pulse is compared with the label, and the result is a report with plots.

    Example: `phase audit pure ~/data/PURE --out pure-audit.html --workers 4`
    """
    from rich.console import Console
    from rich.table import Table

    from ..datasets import base
    from ..datasets.audit import audit
    from ..datasets.audit_report import to_html
    from ..errors import InputError
    from ..fileio import dump_json, write_text
    from .progress import bar

    total = len(base.find(dataset, root))
    with bar("looking") as progress:
        task = progress.add_task("", total=total)
        result = audit(dataset, root, workers=workers, on_done=lambda _: progress.advance(task))
    write_text(out, to_html(result))
    if as_json:
        typer.echo(dump_json(result.as_json()))
    else:
        table = Table("recording", "kind", "what", title=f"{dataset}: findings")
        for finding in result.findings:
            table.add_row(finding.recording, finding.kind, finding.text)
        console = Console()
        if result.findings:
            console.print(table)
        summary = f"{len(result.measured)} recordings, {len(result.findings)} findings; the report is {out}"
        console.print(summary, markup=False, highlight=False, soft_wrap=True)
    if not result.measured:
        raise InputError(f"{root}: no usable recording, {len(result.findings)} problems; the report is {out}")
    if strict and result.findings:
        raise InputError(f"{root}: {len(result.findings)} findings; the report is {out}")
