"""`phase audit`: find errors in a data set before training on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from . import options
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from ..datasets.audit import Audit

NAME = "audit"
PANEL = "Research"
_MAX_ROWS = 60  # of the table on the terminal; the report lists every recording


def command(
    dataset: str = options.dataset(),
    root: Path = options.root(),
    out: Path = options.out(Path("audit.html"), "FILE.html", "HTML report to write."),
    workers: int = options.workers(work="checks the recordings"),
    allow_outside: bool = options.ALLOW_OUTSIDE,
    strict: bool = typer.Option(False, "--strict", help="Exit with code 4 if there are findings."),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Check a data set for shifted, copied or flat labels, truncated videos, missing faces and gaps.

    The command decodes each video once, compares its pulse with the label and writes a report with plots.

    Example: `phase audit pure ~/data/PURE --out pure-audit.html --workers 4`
    """
    from ..datasets import base
    from ..datasets.audit import audit
    from ..datasets.audit_report import to_html
    from ..errors import InputError, require
    from ..fileio import dump_json, write_text
    from .outputs import check_output
    from .progress import bar

    check_output(out, force=force, suffixes=(".html",))
    require("matplotlib")
    total = len(base.find(dataset, root, allow_outside=allow_outside))
    with bar("checking", quiet) as progress:
        task = progress.add_task("", total=total)
        result = audit(
            dataset,
            root,
            workers=workers,
            allow_outside=allow_outside,
            on_done=lambda _: progress.advance(task),
        )
    write_text(out, to_html(result))
    if as_json:
        typer.echo(dump_json(result.as_json()))
    else:
        _print(result, dataset, out)
    if not result.measured:
        raise InputError(f"{root}: no usable recording, {len(result.findings)} findings; report: {out}")
    if strict and result.findings:
        raise InputError(f"{root}: {len(result.findings)} findings; report: {out}")


def _print(result: Audit, dataset: str, out: Path) -> None:
    """Print a table of the recordings, a table of the findings and a summary."""
    from rich.table import Table

    console = open_console(soft_wrap=False)
    flagged = {finding.recording for finding in result.findings}
    shown = [m for m in result.measured if len(result.measured) <= _MAX_ROWS or m.name in flagged]
    rows = Table(title=f"{dataset}: recordings")
    rows.add_column("recording")
    for title in ("length", "frame rate", "face visible", "heart rate", "label delay", "correlation"):
        rows.add_column(title, justify="right")
    for m in shown[:_MAX_ROWS]:
        bpm = f"{sorted(m.bpm)[len(m.bpm) // 2]:.0f} bpm" if len(m.bpm) else "–"
        lag = "unknown" if m.lag_s is None else f"{m.lag_s:+.2f} s"
        rows.add_row(
            escaped(m.name) + (" ⚠" if m.name in flagged else ""), f"{m.video_s:.1f} s", f"{m.fps:.2f} fps",
            f"{m.coverage:.0%}", bpm, lag, f"r = {m.agreement:.2f}",
        )  # fmt: skip
    if shown:
        console.print(rows)
    if result.findings:
        table = Table("recording", "kind", "finding", title=f"{dataset}: findings")
        for finding in result.findings:
            table.add_row(*map(escaped, (finding.recording, finding.kind, finding.text)))
        console.print(table)
    count = len(result.findings)
    verdict = f"{count} findings in {len(flagged)} of them" if count else "no findings"
    console.print(f"{len(result.measured)} recordings, {verdict}; report: {escaped(out)}", soft_wrap=True)
