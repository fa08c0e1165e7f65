"""Damaged video files in six formats stay within the documented behaviour; see fuzz/containers.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fuzz import containers

CASES = 200  # the recorded run has more
SEED = 7  # another one than that of the recorded run


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return containers.make_bases(tmp_path_factory.mktemp("bases"))


def outcome_of(data: bytes, file: Path, measure: Any) -> tuple[str, list[str]]:
    file.write_bytes(data)
    found = measure(file, "--model", "pos", "--quiet")
    run = {"hung": False, "exit_code": found.code, "out": found.out, "err": found.err, "memory_mb": 0.0}
    return containers.judge(run, file)


@pytest.mark.parametrize("suffix", containers.FORMATS)
def test_every_base_has_a_reading(suffix: str, bases: dict[str, bytes], measure: Any, tmp_path: Path) -> None:
    assert outcome_of(bases[suffix], tmp_path / f"base.{suffix}", measure) == ("reading", [])


@pytest.mark.parametrize("part", range(6))
def test_damaged_files_have_no_findings(
    part: int, bases: dict[str, bytes], measure: Any, tmp_path: Path
) -> None:
    """Each part is one format, because the format of a case is its number modulo six."""
    outcomes = set()
    for number in range(part, CASES, 6):
        suffix, mutations, data = containers.make_case(bases, SEED, number)
        outcome, findings = outcome_of(data, tmp_path / f"case.{suffix}", measure)
        assert findings == [], (SEED, number, mutations)
        outcomes.add(outcome)
    assert len(outcomes) > 1


def test_a_wrong_rate_is_a_finding(bases: dict[str, bytes], tmp_path: Path) -> None:
    file = tmp_path / "base.mkv"
    file.write_bytes(bases["mkv"])
    document = '{"faces": [{"summary": {"bpm": 90.0}, "windows": []}]}'
    run = {"hung": False, "exit_code": 0, "out": document, "err": "", "memory_mb": 0.0}
    assert containers.judge(run, file) == ("wrong rate", ["wrong rate"])
    assert containers.judge({**run, "err": "Traceback"}, file)[1] == ["traceback", "wrong rate"]
    assert containers.judge({**run, "hung": True}, file)[1] == ["hang"]


def test_repeated_pictures_are_recognised() -> None:
    different = list(range(40))
    assert not containers.repeats_pictures(different)
    assert not containers.repeats_pictures([*different, *[39] * 40])  # a frozen picture
    assert containers.repeats_pictures([*different, *different[10:30]])
