"""Progress bars on stderr; they are disabled when stderr is not a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from .terminal import escaped, open_console

if TYPE_CHECKING:
    from ..errors import RecordingError


def bar(label: str, quiet: bool = False) -> Progress:
    """Return a progress bar that shows a label, a count and the remaining time."""
    console = open_console(stderr=True)
    columns = [TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    return Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal)


def advance(progress: Progress, task: TaskID, problem: RecordingError | None) -> None:
    """Advance a bar by one recording; `problem` says why the recording was excluded."""
    progress.advance(task)
    if problem is not None:
        progress.console.print(f"excluded: {escaped(problem)}", soft_wrap=True)
