"""The manifest of an exported network: the model card as data, beside the ONNX file."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import InputError, WeightsError
from ..fileio import read_json, sha256, write_json

FORMAT = 1
INPUT, WAVE, MASK, NEXT = "pixels", "wave", "mask", "next."  # names in the graph


@dataclass(frozen=True)
class Manifest:
    """What a step graph takes, what it gives, and where it comes from.

    The graph: `pixels` (t,S,S,3) u8 and every state by name go in; `wave` (t,), `mask` (t,M,h,w) and every
    state as "next.<name>" come out. t is any number of frames. All states begin as zeros.
    """

    name: str
    file: str  # the ONNX file, in the same folder
    sha256: str
    fps: float  # the uniform clock of the pictures
    size: int  # their side in pixels
    delay_frames: int  # the wave at t belongs to the picture t − delay
    states: Mapping[str, tuple[int, ...]]  # shapes, batch of one
    mask: tuple[int, int, int]  # masks, height, width
    normalise: str  # what the network itself does to the pixels; the caller does nothing
    receptive_frames: int
    parameters: int
    parity: float  # largest difference from torch over the frames compared at export
    training: Mapping[str, Any] = field(default_factory=dict)  # recipe, version, commit, clips, score
    calibration: str = "network"  # the gate that judges its numbers; that file names this one's checksum
    citation: str = ""
    format: int = FORMAT

    def save(self, path: str | Path) -> None:
        write_json(path, dataclasses.asdict(self))

    def verify(self, folder: Path) -> Path:
        """The ONNX file, if it is the one that was exported."""
        file = folder / self.file
        if not file.is_file():
            raise WeightsError(file, "no such file; the manifest beside it names it")
        if sha256(file) != self.sha256:
            raise WeightsError(file, "damaged or exchanged: its checksum is not that of its manifest")
        return file


def load_manifest(path: str | Path) -> Manifest:
    """Read and check a manifest."""
    try:
        values = read_json(path)
    except InputError as error:
        raise WeightsError(path, str(error).removeprefix(f"{path}: ")) from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        found = values.get("format") if isinstance(values, dict) else type(values).__name__
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
    try:
        manifest = Manifest(
            **{
                **values,
                "states": {str(name): tuple(map(int, shape)) for name, shape in values["states"].items()},
                "mask": tuple(map(int, values["mask"])),
            }
        )
    except (TypeError, ValueError, AttributeError) as error:
        raise WeightsError(path, f"a field has the wrong type ({error})") from error
    if not (manifest.fps > 0 and manifest.size > 0 and manifest.delay_frames >= 0):
        raise WeightsError(path, "fps and size must be above 0, delay_frames 0 or more")
    if Path(manifest.file).name != manifest.file:
        raise WeightsError(path, f"the file {manifest.file!r} is not in the folder of the manifest")
    return manifest
