"""The numbers that the paper prints, read from printed_numbers.toml."""

from __future__ import annotations

import functools
import sys
from importlib import resources
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@functools.cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = tomllib.loads(
        (resources.files(__package__) / "printed_numbers.toml").read_text(encoding="utf-8")
    )
    return content


def tables() -> list[str]:
    """Return the names of all tables and figures."""
    return [name for name in _content() if name != "names"]


def title(table: str) -> str:
    """Return the title of a table."""
    return str(_content()[table]["title"])


def metrics(table: str) -> tuple[str, ...]:
    """Return the metrics that a table prints for each column."""
    return tuple(_content()[table]["metrics"])


def note(table: str) -> str:
    """Return the remark on a table, or an empty string."""
    return str(_content()[table].get("note", ""))


def rows(table: str) -> list[str]:
    """Return the rows for which the paper prints a number."""
    return list(_content()[table].get("values", {}))


def value(table: str, row: str, column: str, metric: str) -> float | None:
    """Return one printed number, or None if the paper has none."""
    numbers = _content()[table].get("values", {}).get(row, {}).get(column)
    if numbers is None or metric not in metrics(table):
        return None
    return float(numbers[metrics(table).index(metric)])


def label(name: str) -> str:
    """Return the name of a network, method or data set as the paper writes it."""
    return str(_content()["names"].get(name, name))
