"""`python -m benchmarks` lists every benchmark, its page is current, and a change is noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks import page, store
from benchmarks.cases import BENCHMARKS
from benchmarks.store import Benchmark, Figure

ROOT = Path(__file__).parent.parent


def test_the_page_is_current() -> None:
    """Run `python -m benchmarks page` after a change of the results."""
    assert page.PAGE.read_text(encoding="utf-8") == page.text(store.load())


def test_the_list_names_every_benchmark_and_every_study() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "list"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    names = {line.split()[0] for line in done.stdout.splitlines() if line and not line.startswith("Studies")}
    assert {benchmark.name for benchmark in BENCHMARKS} <= names
    assert {"readings", "codec_survival"} <= names


def test_an_unknown_benchmark_is_a_usage_error() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "run", "no_such"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    assert "no such benchmark" in done.stderr


def results(*values: float) -> dict[str, Any]:
    quantities = store.summarise([{"ms": value} for value in values])
    return {"benchmarks": {"a": {"quantities": quantities}}}


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [((1.0, 1.1, 1.2), (1.5, 1.6, 1.7), 1), ((1.0, 1.1, 1.2), (1.15, 1.3, 1.4), 0), ((1.0,), (1.05,), 0)],
)
def test_a_difference_exceeds_the_tolerance_and_the_spread(old: Any, new: Any, count: int) -> None:
    assert len(store.differences(results(*old), results(*new))) == count


def test_a_result_is_stored_beside_the_others(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    for name in ("a", "b", "a"):
        benchmark = Benchmark(name, "some work", lambda folder: {}, (Figure("ms", "ms", "time", ("≤", 2.0)),))
        store.record(benchmark, [{"ms": 3.0}, {"ms": 1.0}, {"ms": 2.0}], path)
    stored = store.load(path)["benchmarks"]
    assert set(stored) == {"a", "b"}
    assert stored["a"]["quantities"]["ms"] == {"median": 2.0, "smallest": 1.0, "largest": 3.0}
    assert stored["a"]["machine"]["cores"]


def test_a_limit_is_judged_by_its_sign() -> None:
    assert Figure("x", "", "", ("≤", 1.0)).met(1.0)
    assert not Figure("x", "", "", ("≤", 1.0)).met(1.1)
    assert Figure("x", "", "", ("≥", 1.0)).met(1.1)
    assert Figure("x", "", "").met(5.0) is None
