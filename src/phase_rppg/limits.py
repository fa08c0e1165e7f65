"""The limits of every reader of untrusted files, in one place.

A reader compares the size that a file declares with a limit before it allocates memory. Limits can be raised:

    phase --max label_mb=500 --max samples=50000000 prepare …
    PHASE_LIMITS="label_mb=500,samples=50000000" phase prepare …

The option sets the environment variable, so that worker processes and guarded child processes inherit it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from .errors import ArgumentError, UnknownNameError

VARIABLE = "PHASE_LIMITS"


def _limit(default: float, text: str) -> float:
    return field(default=default, metadata={"text": text})


@dataclass(frozen=True, slots=True)
class InputLimits:
    """The largest accepted sizes, counts, depths and times. MB are 2²⁰ bytes."""

    label_mb: float = _limit(64, "label file as text (.txt, .xmp, .csv, .json) in MB")
    samples: float = _limit(10_000_000, "samples of a label, also after resampling to a uniform clock")
    json_mb: float = _limit(64, "any other JSON file, a list of videos or a part of stored tables in MB")
    toml_mb: float = _limit(1, "recipe (TOML) in MB")
    depth: float = _limit(64, "nested lists and tables in JSON and TOML, and parts of a dotted TOML key")
    csv_field: float = _limit(10_000, "characters of one field of a CSV file")
    manifest_rows: float = _limit(100_000, "rows of manifest.csv and of other lists of files")
    mat_values: float = _limit(4e9, "values of a video that is stored in a MATLAB file")
    clip_hours: float = _limit(24, "length of a recording for phase prepare, in hours of its timestamps")
    onnx_mb: float = _limit(512, "ONNX file in MB")
    checkpoint_mb: float = _limit(4096, "checkpoint (.safetensors) in MB")
    published_mb: float = _limit(256, "published weights (.pth) in MB, packed and unpacked")
    parse_s: float = _limit(60, "seconds for one call of a native parser in the guarded process")
    memory_mb: float = _limit(4096, "address space of the guarded process in MB")


def current() -> InputLimits:
    """Return the limits that are in force: the defaults, changed by the environment variable."""
    return _parse(os.environ.get(VARIABLE, ""))


def raise_limits(settings: Iterable[str]) -> None:
    """Apply settings such as "label_mb=500" to this process and to its child processes."""
    merged = ",".join(filter(None, [os.environ.get(VARIABLE, ""), *settings]))
    _parse(merged)
    os.environ[VARIABLE] = merged


def hint(name: str) -> str:
    """Return the end of an error message: how to raise a limit."""
    return f"the limit is {getattr(current(), name):g}; raise it with phase --max {name}=…"


def table() -> list[tuple[str, float, str]]:
    """Return the name, the default and the meaning of every limit, for the documentation."""
    return [
        (item.name, getattr(InputLimits(), item.name), item.metadata["text"])
        for item in dataclasses.fields(InputLimits)
    ]


@functools.lru_cache(maxsize=8)
def _parse(text: str) -> InputLimits:
    values: dict[str, float] = {}
    for setting in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = setting.partition("=")
        if name not in InputLimits.__dataclass_fields__:
            raise UnknownNameError("limit", name, InputLimits.__dataclass_fields__)
        try:
            values[name] = float(number)
        except ValueError:
            values[name] = math.nan
        if not values[name] > 0:
            raise ArgumentError(f"limit {name}", repr(number), "a number above 0")
    return InputLimits(**values)
