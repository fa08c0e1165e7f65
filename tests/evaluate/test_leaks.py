"""A model that was trained or selected on a test subject is refused by the name of the subject."""

from __future__ import annotations

import pytest

from phase_rppg.errors import InputError
from phase_rppg.evaluate import leaks

RECORD = {"subjects": {"train": ["pure/01", "pure/02"], "validate": ["ubfc_rppg/subject3"]}}


@pytest.mark.parametrize(
    ("dataset", "subjects", "says"),
    [
        ("pure", ["02", "03"], "was trained on 1 of the 2 test subjects: pure/02;"),
        ("ubfc_rppg", ["subject3"], "was selected on 1 of the 1 test subjects: ubfc_rppg/subject3;"),
    ],
)
def test_the_subject_is_named(dataset: str, subjects: list[str], says: str) -> None:
    with pytest.raises(InputError, match=f"net.json: {says}"):
        leaks.refuse_tested_subjects("net.json", RECORD, dataset, subjects)


def test_other_subjects_and_other_data_sets_pass() -> None:
    leaks.refuse_tested_subjects("net.json", RECORD, "pure", ["03"])
    leaks.refuse_tested_subjects("net.json", RECORD, "mmpd", ["01", "02"])
    leaks.refuse_tested_subjects("net.json", {}, "pure", ["01"])
    leaks.refuse_tested_subjects("net.json", {"subjects": "unknown"}, "pure", ["01"])


def test_records_are_joined_in_natural_order() -> None:
    joined = leaks.merged({"train": ["a/10", "a/2"]}, {"train": ["a/2"], "validate": ["b/1"]})
    assert joined == {"train": ["a/2", "a/10"], "validate": ["b/1"]}


def test_a_report_names_the_training_subjects_or_states_that_they_are_unknown() -> None:
    splits, notes = leaks.training_record("run/last.safetensors", RECORD)
    assert splits == {"training of run/last.safetensors": RECORD["subjects"]}
    assert notes == []
    splits, (note,) = leaks.training_record("physnet.safetensors", {"imported_from": "PURE_PhysNet.pth"})
    assert splits == {}
    assert note.startswith("physnet.safetensors does not record its training subjects")
    assert leaks.training_record("pos", {}) == ({}, [])
    nobody = {"subjects": {"train": [], "validate": []}}  # trained on generated clips only
    assert leaks.training_record("run/last.safetensors", nobody) == ({}, [])
