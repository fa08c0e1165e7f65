"""The page about the tests quotes the summary of the last mutation runs."""

from __future__ import annotations

import importlib.util
import json
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def mutate() -> ModuleType:
    loader = SourceFileLoader("mutate", str(ROOT / "scripts" / "mutate"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mutate", loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def summary() -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / "mutation.json").read_text(encoding="utf-8"))


def test_the_page_shows_the_table_of_the_summary(mutate: ModuleType, summary: Any) -> None:
    assert mutate.table(summary) in PAGE


def test_nine_of_ten_mutants_are_killed_in_every_area(mutate: ModuleType, summary: Any) -> None:
    areas = summary["runs"]["sample"]["areas"]
    assert set(areas) == set(mutate.AREAS)
    assert min(counts["rate"] for counts in areas.values()) >= 0.9


def test_each_area_has_modules_and_tests(mutate: ModuleType) -> None:
    for area, (modules, tests, _) in mutate.AREAS.items():
        for pattern in modules:
            assert list((mutate.ROOT / "src" / mutate.PACKAGE).glob(pattern)), f"{area}: {pattern}"
        for pattern in tests:
            assert list((mutate.ROOT / "tests").glob(pattern)), f"{area}: {pattern}"
        assert mutate.area_tests(area, None)
        assert len(mutate.list_mutants(area)) > 100


def test_each_survivor_without_a_reason_is_on_the_page(summary: Any) -> None:
    for name in ("sample", "fresh"):
        for survivor in summary["runs"][name]["survivors"]:
            if survivor["reason"] is None:
                assert survivor["change"].replace("|", r"\|") in PAGE, survivor


def test_a_mutant_changes_one_node(mutate: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("def f(a: int) -> int:\n    return a + 1 if a > 2 else 0\n")
    found = set()
    for number, variant, *_ in mutate.mutants_of(mutate.ast.parse(path.read_text())):
        found.add(mutate.source_of(path, number, variant).splitlines()[-1].strip())
    assert found == {
        "return None", "return a + 1 if not a > 2 else 0", "return a - 1 if a > 2 else 0",
        "return a + 2 if a > 2 else 0", "return a + 1 if a >= 2 else 0", "return a + 1 if a <= 2 else 0",
        "return a + 1 if a > 3 else 0", "return a + 1 if a > 2 else 1",
    }  # fmt: skip
