"""Every registered data set satisfies the same contract, on fake data in its layout."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from phase_rppg import registry
from phase_rppg.datasets import base
from phase_rppg.errors import DatasetLayoutError, InputError
from phase_rppg.signal import rate
from phase_rppg.types import FrameSource

from . import fake_layouts

NAMES = registry.names("datasets")
PEOPLE = [*fake_layouts.people(2, seconds=4.0), fake_layouts.FaceState(10, 72.0, 4.0)]


@pytest.fixture(scope="session")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for name, write in fake_layouts.WRITERS.items():
        made[name] = tmp_path_factory.mktemp(name)
        write(made[name], PEOPLE)
    return made


def test_every_data_set_has_a_fake_one() -> None:
    assert set(NAMES) == set(fake_layouts.WRITERS)


@pytest.mark.parametrize("name", NAMES)
def test_subjects_come_in_natural_order_with_unique_names(name: str, roots: dict[str, Path]) -> None:
    recordings = base.load(name, roots[name])
    assert len(recordings) == len(PEOPLE)
    assert len({r.name for r in recordings}) == len(PEOPLE)
    numbers = [int("".join(c for c in r.subject if c.isdigit())) for r in recordings]
    assert numbers == [1, 2, 10]
    assert {r.dataset for r in recordings} == {name}


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_has_the_true_rate_on_the_clock_of_the_video(name: str, roots: dict[str, Path]) -> None:
    for person, recording in zip(PEOPLE, base.load(name, roots[name]), strict=True):
        wave = recording.reference
        assert wave.valid.all()
        truth = person.pulse(wave.t_s)
        assert np.corrcoef(truth, wave.values)[0, 1] > 0.98
        assert abs(rate.spectral_bpm(wave) - rate.spectral_bpm(truth, wave.fps)) < 0.5


@pytest.mark.parametrize("name", NAMES)
def test_the_video_can_be_sent_to_a_worker_and_shows_the_frames(name: str, roots: dict[str, Path]) -> None:
    recording = base.load(name, roots[name])[0]
    assert isinstance(recording.video, FrameSource)
    seen = list(pickle.loads(pickle.dumps(recording.video)).frames())
    t_s = np.array([frame.t_s for frame in seen])
    assert len(seen) == len(PEOPLE[0].frame_times_s)
    assert np.abs(t_s - PEOPLE[0].frame_times_s).max() < 1e-3
    for frame, truth in list(zip(seen, PEOPLE[0].frames(), strict=True))[::60]:
        assert frame.rgb.dtype == np.uint8
        assert np.abs(frame.rgb.astype(float) - truth).mean() < 6


@pytest.mark.parametrize("name", NAMES)
def test_conditions_are_text(name: str, roots: dict[str, Path]) -> None:
    for recording in base.load(name, roots[name]):
        assert recording.conditions
        assert all(isinstance(v, str) and v for v in recording.conditions.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_folder_shows_what_was_expected_and_what_is_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "beach.jpg").write_bytes(b"x")
    with pytest.raises(DatasetLayoutError) as caught:
        base.load(name, tmp_path)
    assert registry.load("datasets", name).LAYOUT in str(caught.value)
    assert "holiday/" in str(caught.value)
    with pytest.raises(DatasetLayoutError, match="no such folder"):
        base.load(name, tmp_path / "nowhere")


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_recording_is_named_and_the_others_remain(name: str, tmp_path: Path) -> None:
    everyone = fake_layouts.people(2, seconds=2.5)
    fake_layouts.WRITERS[name](tmp_path, everyone)
    broken = base.find(name, tmp_path)[0]
    broken.reference.write_bytes(b"this is no reference")
    problems: list[Exception] = []
    left = base.load(name, tmp_path, on_problem=problems.append)
    assert [r.subject for r in left] == [base.find(name, tmp_path)[1].subject]
    assert len(problems) == 1
    assert broken.name in str(problems[0])


@pytest.mark.parametrize("name", NAMES)
def test_when_nothing_is_left_the_input_is_at_fault(name: str, tmp_path: Path) -> None:
    fake_layouts.WRITERS[name](tmp_path, fake_layouts.people(1, seconds=2.5))
    base.find(name, tmp_path)[0].reference.write_bytes(b"")
    with pytest.raises(InputError, match="no usable recording, 1 excluded") as caught:
        base.load(name, tmp_path, on_problem=lambda _: None)
    assert caught.value.exit_code == 4
