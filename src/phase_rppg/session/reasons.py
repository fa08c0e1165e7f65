"""The texts for every reason, from `reasons.json`; the browser page imports the same file.

`advice` is for the report of a file. `guidance` is for the user in front of a camera.
"""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path

from ..fileio import read_json
from ..types import NoReading, Quality, Reason

_TEXTS = read_json(Path(str(resources.files(__package__) / "reasons.json")))

ADVICE: dict[Reason, str] = {reason: _TEXTS["reasons"][reason.name]["advice"] for reason in Reason}
GUIDANCE: dict[Reason, str] = {reason: _TEXTS["reasons"][reason.name]["guidance"] for reason in Reason}
STEADY_WINDOWS: int = _TEXTS["steady"]["windows"]  # this many consecutive readings …
STEADY_BPM: float = _TEXTS["steady"]["bpm"]  # … within this range are a steady rate
STEADY_GUIDANCE: str = _TEXTS["steady"]["guidance"]
UNSURE_GUIDANCE: str = _TEXTS["unsure"]["guidance"]
_NO_PULSE = _TEXTS["no_pulse"]
ENOUGH_S: float = _NO_PULSE[
    "enough_s"
]  # a window of 10 s with its context; longer recordings add no evidence
_STEP_S = 10  # the advice to film longer is rounded up to a multiple of this


def measuring_guidance(remaining_s: int) -> str:
    """Return the guidance while the first window is not complete."""
    return str(_TEXTS["measuring"]["guidance"]).format(seconds=remaining_s)


def hint(quality: Quality) -> str | None:
    """Return how to improve a reading, or None when no quality feature is poor."""
    return _poor_quality(quality, "text")


def advice(reading: NoReading, quality: Quality | None = None, bits_per_pixel: float | None = None) -> str:
    """Return what to do about a missing reading, by its cause.

    `quality` is that of the best window. `bits_per_pixel` is the size of the file per pixel and frame, if
    known. Without a pulse, the causes are a short recording, a poor quality feature and strong compression.
    """
    if reading.reason is Reason.NO_PULSE:
        remedy = _remedy(reading, quality, bits_per_pixel)
    else:
        remedy = ADVICE[reading.reason]
    if reading.probable_bpm is not None:
        percent = min(max(round(100 * reading.p_probable), 1), 99)
        text = str(_NO_PULSE["probable"])
        return text.format(bpm=round(reading.probable_bpm), percent=percent, remedy=remedy)
    return str(_NO_PULSE["text"]).format(remedy=remedy) if reading.reason is Reason.NO_PULSE else remedy


def _remedy(reading: NoReading, quality: Quality | None, bits_per_pixel: float | None) -> str:
    """Return how to record a video in which the pulse is clearer."""
    missing_s = ENOUGH_S - (reading.end_s - reading.start_s)
    remedies: list[str] = []
    if missing_s > 0:
        seconds = _STEP_S * math.ceil(missing_s / _STEP_S)
        remedies.append(str(_NO_PULSE["longer"]).format(seconds=seconds))
    poor = _poor_quality(quality, "advice") if quality is not None else None
    if poor is not None:
        remedies.append(poor)
    elif bits_per_pixel is not None and bits_per_pixel < _NO_PULSE["min_bits_per_pixel"]:
        remedies.append(_NO_PULSE["compression"])
    elif reading.probable_bpm is None or not remedies:
        remedies.append(_NO_PULSE["otherwise"])
    return " and ".join(remedies)


def _poor_quality(quality: Quality, text: str) -> str | None:
    """Return the text of this kind for the first poor quality feature, or None if there is none."""
    for one in _TEXTS["hints"]:
        value = getattr(quality, one["quality"])
        if value < one.get("below", value) or value > one.get("above", value):
            return str(one[text])
    return None
