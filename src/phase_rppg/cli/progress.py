"""The progress bar of commands that work through many recordings; silent where nobody watches."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def bar(verb: str) -> Progress:
    """A bar on stderr with a count and the time left; on a pipe it only passes messages on."""
    console = Console(stderr=True)
    columns = [TextColumn(verb), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
