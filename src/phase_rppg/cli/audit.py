"""`phase audit`: what is wrong with a data set, before a network learns it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from ..datasets.audit import Audit

NAME = "audit"
_MOST_ROWS = 60  # recordings that are listed one by one; the report has them all


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
        _print(result, dataset, out)
    if not result.measured:
        raise InputError(f"{root}: no usable recording, {len(result.findings)} problems; the report is {out}")
    if strict and result.findings:
        raise InputError(f"{root}: {len(result.findings)} findings; the report is {out}")


def _print(result: Audit, dataset: str, out: Path) -> None:
    """Every recording in a line, what is wrong with some of them, and a summary."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    flagged = {finding.recording for finding in result.findings}
    shown = [m for m in result.measured if len(result.measured) <= _MOST_ROWS or m.name in flagged]
    rows = Table(title=f"{dataset}: what was measured")
    rows.add_column("recording")
    for title in ("length", "frame rate", "face seen", "heart rate", "label later by", "label fits"):
        rows.add_column(title, justify="right")
    for m in shown[:_MOST_ROWS]:
        bpm = f"{sorted(m.bpm)[len(m.bpm) // 2]:.0f} bpm" if len(m.bpm) else "–"
        lag = "cannot be told" if m.lag_s is None else f"{m.lag_s:+.2f} s"
        rows.add_row(
            m.name + (" ⚠" if m.name in flagged else ""), f"{m.video_s:.1f} s", f"{m.fps:.2f} fps",
            f"{m.coverage:.0%}", bpm, lag, f"r = {m.agreement:.2f}",
        )  # fmt: skip
    if shown:
        console.print(rows)
    if result.findings:
        table = Table("recording", "kind", "what", title=f"{dataset}: findings")
        for finding in result.findings:
            table.add_row(finding.recording, finding.kind, finding.text)
        console.print(table)
    count = len(result.findings)
    verdict = f"{count} findings in {len(flagged)} of them" if count else "nothing was found to be wrong"
    console.print(
        f"{len(result.measured)} recordings, {verdict}; the report is {out}",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
