"""`phase doctor`: check the installation."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from . import options
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from rich.console import Console

    from ..measurement.doctor import Check

NAME = "doctor"
PANEL = "Tools"
_INDENT = 27  # columns of mark and name
_MIN_WIDTH = 60
_MARKS = {"ok": "[green]✓[/green]", "notice": "[yellow]![/yellow]", "failed": "[bold red]✗[/bold red]"}


def command(as_json: bool = options.JSON, quiet: bool = options.QUIET) -> None:
    """Check versions, codecs, camera, page, weights and speed, and say what to do about each problem.

    The checks take a few seconds. `✓` works, `!` is optional and absent, `✗` is a command that does not
    work. `--quiet` prints problems only. Exit code: 0 without `✗`, otherwise 4.

    Example: `phase doctor`
    """
    from ..errors import InputError
    from ..measurement.doctor import FAILED, OK

    console = open_console()
    found: list[Check] = []
    for check in all_checks():
        found.append(check)
        if as_json or (quiet and check.state == OK):
            continue
        console.print(f"{_MARKS[check.state]} {check.name:24} {escaped(check.found)}")
        if check.remedy:
            console.print(escaped(indented(f"→ {check.remedy}", console)))
    failed = [check.name for check in found if check.state == FAILED]
    if as_json:
        import dataclasses

        from ..fileio import dump_json

        checks = [dataclasses.asdict(check) for check in found]
        typer.echo(dump_json({"usable": not failed, "checks": checks}))
    if failed:
        raise InputError(f"{len(failed)} of {len(found)} checks failed: {', '.join(failed)}")


def indented(text: str, console: Console) -> str:
    """Return a text below the results; on a terminal, its lines fit the width."""
    width = max(console.width, _MIN_WIDTH) if console.is_terminal else sys.maxsize
    return textwrap.fill(
        text, width, initial_indent=" " * _INDENT, subsequent_indent=" " * (_INDENT + 2),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def all_checks() -> Iterator[Check]:
    """Yield the checks of the installation and of the page."""
    from ..measurement import doctor

    yield from doctor.checks()
    yield page_check()


def page_check() -> Check:
    """Check that `phase live` has its page."""
    from ..errors import PhaseError
    from ..measurement.doctor import FAILED, OK, Check
    from ..web import assets

    try:
        files = assets.catalogue(assets.PAGE)
    except PhaseError as error:
        problem, _, remedy = str(error).partition("; ")
        return Check("page of phase live", FAILED, problem, remedy)
    return Check("page of phase live", OK, f"{len(files)} files")
