"""A cache of measured windows, so that an interrupted calibration continues where it stopped.

The name of a file contains a checksum of the code that measures, so that a change of the code measures again.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from typing import Any

from .. import infer, registry
from ..errors import InputError
from ..fileio import read_json, write_json
from ..signal.rate import Peak
from ..types import Quality
from .films import FilmSpec
from .fit_calibration import ObservedWindow

_MEASURING = ("signal", "session", "methods", "infer")  # packages whose code decides what a window contains
_JUDGING = ("calibration.py", "gate.py", "reasons.py")  # files of them that come after the measurement


def file_of(spec: FilmSpec, method: str, modes: Sequence[str], alone: bool, folder: Path) -> Path:
    """Return the file of the windows of one film by one method."""
    weights = "" if method in registry.names("methods") else infer.load(method).manifest.sha256
    words = [code_checksum(), weights, *modes, str(alone)]
    changed = hashlib.sha256(" ".join(words).encode()).hexdigest()[:12]
    return folder / "windows" / f"{spec.file(folder).stem}-{method}-{changed}.json"


def read(file: Path, spec: FilmSpec) -> list[ObservedWindow] | None:
    """Return the windows of a file; None if there is no usable file."""
    if not file.exists():
        return None
    try:
        return [_window(row, spec) for row in read_json(file)["windows"]]
    except (InputError, KeyError, TypeError, AttributeError):
        return None  # it is measured again


def write(file: Path, windows: Sequence[ObservedWindow]) -> None:
    """Write the windows of one film by one method."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, {"windows": [asdict(window) for window in windows]})


def _window(row: dict[str, Any], spec: FilmSpec) -> ObservedWindow:
    for value in (*row["peak"].values(), *row["quality"].values(), row["truth_bpm"], row["end_s"]):
        if not isinstance(value, int | float | None):
            raise TypeError
    values = {**row, "peak": Peak(**row["peak"]), "quality": Quality(**row["quality"]), "group": spec.group}
    return ObservedWindow(**values)


@functools.cache
def code_checksum() -> str:
    """Return a checksum of the code that measures a window."""
    total = hashlib.sha256()
    for name in _MEASURING:
        folder = Path(str(resources.files(f"phase_rppg.{name}")))
        for file in sorted(set(folder.glob("*.py")) - {folder / name for name in _JUDGING}):
            total.update(file.name.encode() + b"\0" + file.read_bytes())
    return total.hexdigest()
