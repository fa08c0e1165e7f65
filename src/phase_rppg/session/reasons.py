"""The texts for every reason, read from `reasons.json`; the page imports the same file.

`advice` is for the report of a file, `guidance` for a person in front of a camera.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from ..fileio import read_json
from ..types import Quality, Reason

_TEXTS = read_json(Path(str(resources.files(__package__) / "reasons.json")))

ADVICE: dict[Reason, str] = {reason: _TEXTS["reasons"][reason.name]["advice"] for reason in Reason}
GUIDANCE: dict[Reason, str] = {reason: _TEXTS["reasons"][reason.name]["guidance"] for reason in Reason}
STEADY_WINDOWS: int = _TEXTS["steady"]["windows"]  # so many readings in a row …
STEADY_BPM: float = _TEXTS["steady"]["bpm"]  # … that agree within this are a steady rate
STEADY_GUIDANCE: str = _TEXTS["steady"]["guidance"]
UNSURE_GUIDANCE: str = _TEXTS["unsure"]["guidance"]


def hint(quality: Quality) -> str | None:
    """Return how to improve a reading, or None when no quality feature is poor."""
    for one in _TEXTS["hints"]:
        value = getattr(quality, one["quality"])
        if value < one.get("below", value) or value > one.get("above", value):
            return str(one["text"])
    return None
