"""The Ray engine gives the outcomes of the local pool; killed processes lose and double no row."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from phase_rppg.errors import MissingPackageError
from phase_rppg.workers import Engine, Job, WorkerDied, map_in_order, run_jobs

ROOT = Path(__file__).parents[2]
has_ray = importlib.util.find_spec("ray") is not None
has_serve = has_ray and importlib.util.find_spec("fastapi") is not None  # of ray[serve]
needs_ray = pytest.mark.skipif(not has_ray, reason="ray is missing: the extra ray")
slow = pytest.mark.skipif(not os.environ.get("PHASE_SLOW_TESTS"), reason="slow: set PHASE_SLOW_TESTS=1")


@pytest.mark.skipif(has_ray, reason="ray is installed")
def test_a_missing_engine_is_named() -> None:
    with pytest.raises(MissingPackageError, match=r'pip install "phase-rppg\[ray\]"'):
        Engine("ray")


def die_at_two(number: int) -> int:
    if number == 2:
        os._exit(1)
    if number == 3:
        raise ValueError("three")
    return number * number


@needs_ray
@slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("ordered", [False, True])
def test_outcomes_are_those_of_the_local_pool(ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # The workers import this file as pytest does, from the folder of the tests.
    path = (str(ROOT / "tests"), os.environ.get("PYTHONPATH"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, path)))
    jobs = [Job(str(number), (number,)) for number in range(5)]
    outcomes = list(run_jobs(die_at_two, jobs, 2, ordered=ordered, engine=Engine("ray")))
    by_name = {each.job.name: each for each in outcomes}
    assert sorted(by_name) == ["0", "1", "2", "3", "4"]
    assert [by_name[name].result for name in "014"] == [0, 1, 16]
    assert isinstance(by_name["2"].error, WorkerDied)
    assert "ValueError: three" in str(by_name["3"].error)
    if ordered:
        assert [each.job.name for each in outcomes] == ["0", "1", "2", "3", "4"]


@needs_ray
@slow
def test_killed_workers_and_drivers_lose_and_double_nothing(tmp_path: Path) -> None:
    script = ROOT / "benchmarks" / "ray_cluster.py"
    out = tmp_path / "record.json"
    words = [sys.executable, str(script), "--only", "faults", "--videos", "15", "--out", str(out)]
    assert subprocess.run(words, check=False).returncode == 0
    assert json.loads(out.read_text(encoding="utf-8"))["faults"]["passed"]


def test_the_recorded_run_lost_and_doubled_nothing() -> None:
    found = json.loads((ROOT / "benchmarks/results/ray_cluster.json").read_text(encoding="utf-8"))["faults"]
    assert found["passed"]
    assert (found["lost"], found["doubled"]) == (0, 0)
    assert 0 < found["stored_when_a_worker_was_killed"] < found["stored_when_the_driver_was_killed"]


def test_order_without_a_cluster() -> None:
    assert list(map_in_order(abs, [-1, -2], 0, engine=Engine())) == [1, 2]


@slow
@pytest.mark.skipif(not has_serve, reason="ray[serve] is missing")
def test_the_deployment_answers_like_the_command(tmp_path: Path) -> None:
    out = tmp_path / "record.json"
    words = [sys.executable, str(ROOT / "benchmarks" / "ray_serve.py"), "--out", str(out)]
    assert subprocess.run(words, check=False).returncode == 0
    assert json.loads(out.read_text(encoding="utf-8"))["passed"]


def test_the_page_shows_the_recorded_run_of_the_deployment() -> None:
    found = json.loads((ROOT / "benchmarks/results/ray_serve.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    assert found["passed"]
    assert f"gave {found['bpm']:.1f} bpm" in page
    assert f"Ray {'.'.join(found['ray'].split('.')[:2])})" in page
