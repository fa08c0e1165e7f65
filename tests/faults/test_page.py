"""The page docs/reliability.md holds the recorded results, and these cover every row of the tests."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from faults.table import Row

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in Path(__file__).parent.glob("test_*.py"))


def rows_in_code() -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for name in MODULES:
        for value in vars(importlib.import_module(f"faults.{name}")).values():
            rows: tuple[Row, ...] = getattr(value, "fault_rows", ())
            for row in rows:
                assert row.fault not in found, f"two rows are called {row.fault!r}"
                found[row.fault] = (name, row.happens, row.exit_code, row.kept)
    return found


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / "faults.json").read_text(encoding="utf-8"))


def test_every_row_is_recorded(recorded: Any) -> None:
    """Run benchmarks/faults.py after a change of the rows."""
    stored = {
        row["fault"]: (row["section"], row["happens"], row["exit_code"], row["kept"])
        for row in recorded["rows"]
    }
    assert stored == rows_in_code()


def test_every_recorded_row_passed(recorded: Any) -> None:
    assert [row["fault"] for row in recorded["rows"] if row["outcome"] != "passed"] == []
    assert recorded["passed"] == len(recorded["rows"])


def test_the_page_is_current() -> None:
    """Run scripts/reliability after a change of the results."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "reliability"), "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_page_shows_every_row(recorded: Any) -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    for row in recorded["rows"]:
        assert f"| {row['fault']} |" in page
