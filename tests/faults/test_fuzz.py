"""A short fuzzing run of every parser with a fixed seed; `python -m fuzz` runs longer."""

from __future__ import annotations

import itertools

import pytest
from fuzz import mutate, targets
from fuzz.run_target import Recorder

RUNS = 300


@pytest.mark.parametrize("name", targets.TARGETS)
def test_parser_refuses_changed_files(name: str) -> None:
    if name in ("recipe", "checkpoint"):
        pytest.importorskip("torch")
    target = targets.TARGETS[name]
    for data in targets.seeds(name):
        target(data)
    for data in itertools.islice(mutate.mutations(targets.seeds(name), seed=11), RUNS):
        target(data)


def test_a_failure_is_recorded_once_with_its_input(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    recorder = Recorder("x", folder, folder / "report.json")
    recorder.target = lambda data: {}[data]
    recorder(b"one")
    recorder(b"two")
    assert recorder.runs == 2
    [(place, file)] = recorder.failures.items()
    assert place.startswith("KeyError")
    assert (folder / file).read_bytes() == b"one"


def test_a_finding_is_settled_when_its_input_is_a_seed_that_passes() -> None:
    import hashlib

    from fuzz.__main__ import settle

    file = f"label-{hashlib.sha256(targets.seeds('label')[0]).hexdigest()[:12]}"
    found = settle("label", {"findings": {"A": file, "B": "label-unknown"}})
    assert (found["findings"], found["settled"]) == ({"B": "label-unknown"}, {"A": file})
