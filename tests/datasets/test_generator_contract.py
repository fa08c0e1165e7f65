"""Every reader reads the layout that the generator writes, with video and reference synchronised."""

from __future__ import annotations

from pathlib import Path

import pytest

from phase_rppg import registry
from phase_rppg.datasets import audit, base
from phase_rppg.datasets.prepare import Settings, prepare
from phase_rppg.synth.writers import RecordingJob, names, writer

NAMES = registry.names("datasets")
SECONDS = 6.5
EASY = {"codec.name": "raw", "motion.kind": "still"}


def writer_of(name: str) -> str:
    return str(getattr(registry.load("datasets", name), "WRITER", name))


def write(name: str, root: Path, subjects: int, seconds: float) -> None:
    """The first recording of each subject."""
    job = RecordingJob(writer_of(name), str(root), "studio", seconds, height=96, fixed=EASY)
    done: set[int] = set()
    for one in writer(writer_of(name)).plan(subjects):
        if one.subject not in done:
            done.add(one.subject)
            job(one)


def test_the_generator_writes_every_data_set() -> None:
    assert {writer_of(name) for name in NAMES} == set(names())


@pytest.mark.parametrize("name", NAMES)
def test_a_fake_data_set_is_read_whole_with_label_and_video_in_step(name: str, tmp_path: Path) -> None:
    write(name, tmp_path, 1, SECONDS)
    survey = base.survey(name, tmp_path)
    assert survey.problems == ()
    (recording,) = survey.recordings
    measured = audit.measure(recording)
    assert measured.coverage > 0.9
    assert measured.video_s == pytest.approx(SECONDS, abs=0.3)
    assert measured.reference.duration_s == pytest.approx(SECONDS, abs=0.3)
    assert measured.lag_s == pytest.approx(0, abs=0.15)
    assert not audit.check(measured)


def test_a_fake_data_set_is_prepared(tmp_path: Path) -> None:
    write("pure", tmp_path / "data", 2, 3.0)
    report = prepare("pure", tmp_path / "data", tmp_path / "cache", Settings(size=16), workers=0)
    assert [outcome.action for outcome in report.outcomes] == ["built", "built"]
