"""The manifest of an exported network: a JSON file beside the ONNX file."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError, WeightsError
from ..fileio import read_bytes, read_json, write_json

FORMAT = 1
INPUT, WAVE, MASK, NEXT = "pixels", "wave", "mask", "next."  # names in the graph


@dataclass(frozen=True)
class Manifest:
    """The inputs and outputs of an exported graph, and the origin of its weights.

    Inputs: `pixels` (t,S,S,3) u8 and every state by name. Outputs: `wave` (t,), `mask` (t,M,h,w) and every
    new state as "next.<name>". t is any number of frames. Initial states are zeros.
    """

    name: str
    file: str  # the ONNX file, in the same folder
    sha256: str
    fps: float  # uniform frame rate of the input
    size: int  # input height and width in pixels
    delay_frames: int  # the wave at frame t belongs to the input frame t − delay
    states: Mapping[str, tuple[int, ...]]  # shape of each state
    mask: tuple[int, int, int]  # number of masks, height, width
    normalise: str  # normalisation inside the graph; callers pass raw pixels
    receptive_frames: int
    parameters: int
    parity: float  # largest difference from torch, measured at export
    training: Mapping[str, Any] = field(default_factory=dict)  # recipe, version, commit, clips, score
    calibration: str = "network"  # calibration file of the gate; it contains the checksum of these weights
    citation: str = ""
    format: int = FORMAT

    def save(self, path: str | Path) -> None:
        write_json(path, dataclasses.asdict(self))

    def read_model(self, folder: Path) -> bytes:
        """Return the content of the ONNX file after checking its size and its checksum."""
        file = folder / self.file
        if not file.exists():
            raise WeightsError(file, "no such file; its manifest names it")
        try:
            model = read_bytes(file, "onnx_mb")
        except InputError as error:
            raise WeightsError(file, str(error).removeprefix(f"{file}: ")) from error
        if hashlib.sha256(model).hexdigest() != self.sha256:
            raise WeightsError(file, "damaged or replaced: its checksum differs from that of its manifest")
        return model


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_NUMBER


def _is_shape(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= _MAX_AXES and all(_is_count(n) and n for n in value)


_MAX_AXES = 8
_MAX_NUMBER = 1e300  # refuses infinity and NaN, and integers that no float can hold
_MAX_STATE_VALUES = 100_000_000
_VALID: dict[str, Callable[[Any], bool]] = {
    "name": _is_text,
    "file": _is_text,
    "sha256": _is_text,
    "fps": lambda value: _is_number(value) and value <= 1000,
    "size": lambda value: _is_count(value) and value <= 4096,
    "delay_frames": _is_count,
    "states": lambda value: isinstance(value, dict) and all(map(_is_shape, value.values())),
    "mask": lambda value: _is_shape(value) and len(value) == 3,
    "normalise": _is_text,
    "receptive_frames": _is_count,
    "parameters": _is_count,
    "parity": _is_number,
    "training": lambda value: isinstance(value, dict),
    "calibration": _is_text,
    "citation": _is_text,
    "format": _is_count,
}


def load_manifest(path: str | Path) -> Manifest:
    """Read and check a manifest."""
    try:
        values = read_json(path)
    except InputError as error:
        raise WeightsError(path, str(error).removeprefix(f"{path}: ")) from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        found = values.get("format") if isinstance(values, dict) else type(values).__name__
        found = found if isinstance(found, int | str) and len(str(found)) < 20 else type(found).__name__
        raise WeightsError(path, f"not a manifest of format {FORMAT} (found {found})")
    fields = {item.name: item for item in dataclasses.fields(Manifest)}
    unknown = sorted(set(values) - set(fields))
    missing = sorted(
        name
        for name, item in fields.items()
        if name not in values
        and item.default is dataclasses.MISSING
        and item.default_factory is dataclasses.MISSING
    )
    if unknown or missing:
        raise WeightsError(path, f"fields missing: {missing or 'none'}, unknown: {unknown or 'none'}")
    if wrong := sorted(name for name, value in values.items() if not _VALID[name](value)):
        raise WeightsError(path, f"a field has the wrong type or value: {', '.join(wrong)}")
    states = {name: tuple(shape) for name, shape in values["states"].items()}
    manifest = Manifest(**{**values, "states": states, "mask": tuple(values["mask"])})
    if sum(math.prod(shape) for shape in manifest.states.values()) > _MAX_STATE_VALUES:
        raise WeightsError(path, f"its states have more than {_MAX_STATE_VALUES} values")
    if not (manifest.fps > 0 and manifest.size > 0 and manifest.delay_frames >= 0):
        raise WeightsError(path, "fps and size must be above 0, delay_frames 0 or more")
    if Path(manifest.file).name != manifest.file or not manifest.file:
        raise WeightsError(path, f"the file {manifest.file!r} is not in the folder of the manifest")
    return manifest
