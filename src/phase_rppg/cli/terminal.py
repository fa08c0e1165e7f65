"""Text on the terminal: names and messages are shown as they are, never as markup, emoji or commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text import printable

if TYPE_CHECKING:
    from rich.console import Console


def open_console(*, stderr: bool = False, soft_wrap: bool = True) -> Console:
    """Return a console for results, or for progress and warnings on stderr.

    It prints `:x:` as three characters. `soft_wrap` is False for tables, which fit the width of the terminal.
    """
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, emoji=False, soft_wrap=soft_wrap)


def escaped(value: object) -> str:
    """Return the text of a value for a line or a table with markup."""
    from rich.markup import escape

    return escape(printable(value))
