"""Rows of the fault table. The page `docs/reliability.md` is written from them.

A row states a fault, what happens, the exit code and what is kept. `@faults(...)` runs a test once per row,
and the test compares the exit code of the row with the true one, so that page and code cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True, slots=True)
class Row:
    """One fault, and the documented behaviour."""

    fault: str
    happens: str  # what the user sees
    exit_code: int | None  # of the command; None if no command ends
    kept: str = "nothing is written"
    case: Any = None  # the input of the test: a name of a video, a function …
    test: str = ""  # set for tests outside this folder: file::function

    @property
    def id(self) -> str:
        return self.fault.replace(" ", "-")


def faults(*rows: Row) -> Callable[[Any], Any]:
    """Run a test for every row; its argument is `row`."""

    def decorate(function: Any) -> Any:
        function.fault_rows = rows
        return pytest.mark.parametrize("row", rows, ids=lambda row: row.id)(function)

    return decorate
