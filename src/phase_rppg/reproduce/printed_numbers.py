"""What the paper prints, for every cell that it has a number for."""

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
        (resources.files(__package__) / "paper.toml").read_text(encoding="utf-8")
    )
    return content


def tables() -> list[str]:
    return [name for name in _content() if name != "names"]


def title(table: str) -> str:
    return str(_content()[table]["title"])


def metrics(table: str) -> tuple[str, ...]:
    return tuple(_content()[table]["metrics"])


def note(table: str) -> str:
    return str(_content()[table].get("note", ""))


def rows(table: str) -> list[str]:
    """The rows for which the paper has any number."""
    return list(_content()[table].get("values", {}))


def value(table: str, row: str, column: str, metric: str) -> float | None:
    """One printed number, None if the paper has none."""
    numbers = _content()[table].get("values", {}).get(row, {}).get(column)
    if numbers is None or metric not in metrics(table):
        return None
    return float(numbers[metrics(table).index(metric)])


def label(name: str) -> str:
    """A network, method or data set as the paper writes it."""
    return str(_content()["names"].get(name, name))
