"""Load an exported network, check that it is what its manifest says, and step it through a stream."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import registry
from ..errors import ArgumentError, UnknownNameError, WeightsError
from ..types import ByteArray, FloatArray
from .manifest import INPUT, MASK, NEXT, WAVE, Manifest, load_manifest

if TYPE_CHECKING:
    import onnxruntime

DEFAULT = registry.DEFAULT_METHOD
WEIGHTS = Path(__file__).parent / "weights"
CHUNK = 32  # frames at once: more do not make it faster


def names() -> list[str]:
    """The networks that come along."""
    return sorted(path.stem for path in WEIGHTS.glob("*.json"))


def load(which: str | Path = DEFAULT, *, threads: int = 1) -> StepModel:
    """Open a network: the name of one that comes along, or the path of a manifest or of its ONNX file."""
    path = Path(which)
    if path.suffix in (".json", ".onnx"):
        path = path.with_suffix(".json")
        if not path.is_file():
            raise WeightsError(path, "no such manifest")
    elif (WEIGHTS / f"{which}.json").is_file():
        path = WEIGHTS / f"{which}.json"
    else:
        raise UnknownNameError("exported network", str(which), names())
    manifest = load_manifest(path)
    return StepModel(manifest, _open(manifest.verify(path.parent), manifest, threads))


class StepModel:
    """A network in a stream. `fresh` gives the same one at the beginning of another face."""

    def __init__(self, manifest: Manifest, session: onnxruntime.InferenceSession) -> None:
        self.manifest, self._session = manifest, session
        self.name, self.fps, self.size = manifest.name, manifest.fps, manifest.size
        self.delay_frames = manifest.delay_frames
        self.reset()

    def fresh(self) -> StepModel:
        """The same network, with a state of its own that has seen nothing."""
        return StepModel(self.manifest, self._session)

    def reset(self) -> None:
        """Forget everything."""
        self._state = {name: np.zeros(shape, np.float32) for name, shape in self.manifest.states.items()}

    @property
    def state(self) -> dict[str, FloatArray]:
        """A copy of what it remembers, by name; the same size however long the stream."""
        return {name: value.copy() for name, value in self._state.items()}

    @state.setter
    def state(self, values: dict[str, FloatArray]) -> None:
        for name, shape in self.manifest.states.items():
            if name not in values or values[name].shape != shape:
                raise ArgumentError("state", sorted(values), f"{name} of shape {shape}, and all others")
        self._state = {name: np.array(values[name], np.float32) for name in self.manifest.states}

    def step(self, crops: ByteArray) -> FloatArray:
        """The wave (t,) of the next pictures (t,S,S,3) u8; any grouping gives the same numbers."""
        return self.look(crops)[0]

    def look(self, crops: ByteArray) -> tuple[FloatArray, FloatArray]:
        """Like `step`, and the masks (t,M,h,w): where the network looked; each sums to 1."""
        crops = np.asarray(crops)
        wanted = (self.size, self.size, 3)
        if crops.ndim != 4 or crops.shape[1:] != wanted or crops.dtype != np.uint8 or len(crops) < 1:
            given = f"{crops.dtype} of shape {crops.shape}"
            raise ArgumentError("crops", given, f"uint8 of shape (t,{self.size},{self.size},3), t ≥ 1")
        waves, masks = [], []
        for first in range(0, len(crops), CHUNK):
            part = np.ascontiguousarray(crops[first : first + CHUNK])
            wave, mask, *states = self._session.run(self._outputs, {INPUT: part, **self._state})
            self._state = dict(zip(self.manifest.states, states, strict=True))
            waves.append(wave)
            masks.append(mask)
        return np.concatenate(waves), np.concatenate(masks)

    @property
    def _outputs(self) -> list[str]:
        return [WAVE, MASK, *(NEXT + name for name in self.manifest.states)]


def _open(file: Path, manifest: Manifest, threads: int) -> onnxruntime.InferenceSession:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises many kinds
        raise WeightsError(file, f"not a usable ONNX file ({_first_line(error)})") from error
    given = {item.name: tuple(item.shape[-3:]) for item in session.get_inputs() if item.name == INPUT}
    given |= {item.name: tuple(item.shape) for item in session.get_inputs() if item.name != INPUT}
    wanted = {INPUT: (manifest.size, manifest.size, 3), **manifest.states}
    if given != wanted:
        raise WeightsError(file, f"its inputs are {given}, its manifest says {wanted}")
    outputs = {item.name for item in session.get_outputs()}
    if outputs != {WAVE, MASK, *(NEXT + name for name in manifest.states)}:
        raise WeightsError(file, "its outputs are not those of its manifest")
    return session


def _first_line(error: Any) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
