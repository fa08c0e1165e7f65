"""Detect leaks: a model that was trained, or selected, on a subject it is tested on.

Training stores its subjects in the provenance of the checkpoint; export copies them into the manifest. A
subject is named "DATASET/SUBJECT".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..datasets.base import natural_key
from ..errors import InputError

USES = {"train": "trained on", "validate": "selected on"}
_SHOWN = 5  # names in a message


def subject_key(dataset: str, subject: str) -> str:
    """Return the name of a subject in the provenance of a checkpoint."""
    return f"{dataset}/{subject}"


def merged(*uses: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Return the union of several records of subjects, each list in natural order."""
    return {use: sorted({name for one in uses for name in one.get(use, ())}, key=natural_key) for use in USES}


def recorded_subjects(provenance: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the subjects in the provenance of a checkpoint, or in `training` of a manifest."""
    stored = provenance.get("subjects")
    if not isinstance(stored, Mapping):
        return {use: [] for use in USES}
    return merged({use: map(str, stored.get(use) or ()) for use in USES})


def refuse_tested_subjects(
    model: object, provenance: Mapping[str, Any], dataset: str, subjects: Iterable[str]
) -> None:
    """Raise an error that names the test subjects that the model was trained or selected on."""
    tested = {subject_key(dataset, subject) for subject in subjects}
    for use, names in recorded_subjects(provenance).items():
        if shared := [name for name in names if name in tested]:
            more = f" and {len(shared) - _SHOWN} more" if len(shared) > _SHOWN else ""
            raise InputError(
                f"{model}: was {USES[use]} {len(shared)} of the {len(tested)} test subjects: "
                f"{', '.join(shared[:_SHOWN])}{more}; test on other subjects (--split)"
            )


def training_record(
    model: str, provenance: Mapping[str, Any]
) -> tuple[dict[str, dict[str, list[str]]], list[str]]:
    """Return the subjects that trained a model, for a report, and a note if its file does not name them.

    A classical method and a bundled network have no provenance, and used no subject.
    """
    used = {use: names for use, names in recorded_subjects(provenance).items() if names}
    if used:
        return {f"training of {model}": used}, []
    if provenance and not isinstance(provenance.get("subjects"), Mapping):
        return {}, [f"{model} does not record its training subjects: a test on them would not be noticed."]
    return {}, []
