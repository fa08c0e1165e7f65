"""Load an exported network, check it against its manifest, and run it on a stream of frames."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import guarded, registry
from ..errors import ArgumentError, UnknownNameError, WeightsError
from ..types import ByteArray, FloatArray
from .graph_check import UnsafeGraph, check_graph
from .manifest import INPUT, MASK, NEXT, WAVE, Manifest, load_manifest

if TYPE_CHECKING:
    import onnxruntime

DEFAULT = registry.DEFAULT_METHOD
WEIGHTS = Path(__file__).parent / "weights"
_checked: set[str] = set()  # checksums of networks that passed the check in this process
CHUNK = 32  # frames per run; larger chunks are not faster


def names() -> list[str]:
    """Return the names of the bundled networks."""
    return sorted(path.stem for path in WEIGHTS.glob("*.json"))


def load(which: str | Path = DEFAULT, *, threads: int = 1) -> StepModel:
    """Load a network: the name of a bundled one, or the path of a manifest or of its ONNX file."""
    path = Path(which)
    if path.suffix in (".json", ".onnx"):
        if not path.is_file():
            raise WeightsError(path, "no such file")
        path = path.with_suffix(".json")
        if not path.is_file():
            raise WeightsError(path, "no such manifest; `phase export` writes it beside the ONNX file")
    elif (WEIGHTS / f"{which}.json").is_file():
        return StepModel(*_bundled(WEIGHTS / f"{which}.json", threads))
    else:
        raise UnknownNameError("exported network", str(which), names())
    manifest = load_manifest(path)
    return StepModel(manifest, Graph(path.parent / manifest.file, manifest, threads))


@lru_cache(maxsize=1)
def _bundled(path: Path, threads: int) -> tuple[Manifest, Graph]:
    """Open a bundled network once for all videos of a process, because that takes as long as 1 s of video."""
    manifest = load_manifest(path)
    return manifest, Graph(path.parent / manifest.file, manifest, threads)


class Graph:
    """An opened ONNX file. It is pickled as its path and opened again from there."""

    def __init__(self, file: Path, manifest: Manifest, threads: int) -> None:
        self._arguments = (file, manifest, threads)
        model = manifest.read_model(file.parent)
        if file.parent != WEIGHTS:
            _check_model(model, file, manifest)
        self.session = _open(model, file, manifest, threads)

    def __reduce__(self) -> tuple[object, ...]:
        return Graph, self._arguments


class StepModel:
    """A network that processes a stream of face crops and keeps its state."""

    def __init__(self, manifest: Manifest, graph: Graph) -> None:
        self.manifest, self._graph = manifest, graph
        self.name, self.fps, self.size = manifest.name, manifest.fps, manifest.size
        self.delay_frames = manifest.delay_frames
        self.reset()

    def fresh(self) -> StepModel:
        """Return the same network with its own initial state, for another face."""
        return StepModel(self.manifest, self._graph)

    def reset(self) -> None:
        """Set the state to its initial value."""
        self._state = {name: np.zeros(shape, np.float32) for name, shape in self.manifest.states.items()}

    @property
    def state(self) -> dict[str, FloatArray]:
        """A copy of the state, by name; its size does not depend on the length of the stream."""
        return {name: value.copy() for name, value in self._state.items()}

    @state.setter
    def state(self, values: dict[str, FloatArray]) -> None:
        for name, shape in self.manifest.states.items():
            if name not in values or values[name].shape != shape:
                raise ArgumentError("state", sorted(values), f"{name} of shape {shape}, and all others")
        self._state = {name: np.array(values[name], np.float32) for name in self.manifest.states}

    def step(self, crops: ByteArray) -> FloatArray:
        """Return the wave (t,) of the next crops (t,S,S,3) u8; the chunk size does not change the result."""
        return self.step_with_masks(crops)[0]

    def step_with_masks(self, crops: ByteArray) -> tuple[FloatArray, FloatArray]:
        """Return the wave (t,) like `step`, and the attention masks (t,M,h,w), each of which sums to 1."""
        crops = np.asarray(crops)
        wanted = (self.size, self.size, 3)
        if crops.ndim != 4 or crops.shape[1:] != wanted or crops.dtype != np.uint8 or len(crops) < 1:
            given = f"{crops.dtype} of shape {crops.shape}"
            raise ArgumentError("crops", given, f"uint8 of shape (t,{self.size},{self.size},3), t ≥ 1")
        waves, masks = [], []
        for first in range(0, len(crops), CHUNK):
            part = np.ascontiguousarray(crops[first : first + CHUNK])
            wave, mask, *states = self._graph.session.run(self._outputs, {INPUT: part, **self._state})
            self._state = dict(zip(self.manifest.states, states, strict=True))
            waves.append(wave)
            masks.append(mask)
        return np.concatenate(waves), np.concatenate(masks)

    @property
    def _outputs(self) -> list[str]:
        return [WAVE, MASK, *(NEXT + name for name in self.manifest.states)]


def _check_model(model: bytes, file: Path, manifest: Manifest) -> None:
    """Refuse a network that is not safe to open: check its graph, and run it once in the guarded process."""
    if manifest.sha256 in _checked:
        return
    states = {name: list(shape) for name, shape in manifest.states.items()}
    try:
        check_graph(model)
        guarded.call(_run_once, str(file.resolve()), manifest.sha256, manifest.size, states)
    except (UnsafeGraph, guarded.GuardError) as error:
        raise WeightsError(file, f"not a usable ONNX file: {error}") from error
    except guarded.ParserError as error:
        raise WeightsError(file, f"not a usable ONNX file ({_first_line(error.text)})") from error
    _checked.add(manifest.sha256)


def _run_once(path: str, checksum: str, size: int, states: dict[str, list[int]]) -> None:
    """Open a network and run it on two frames; this function runs in the guarded process."""
    model = Path(path).read_bytes()
    if hashlib.sha256(model).hexdigest() != checksum:
        raise ValueError("the file was changed")
    session = _session(model, 1)
    if {item.name for item in session.get_inputs()} != {INPUT, *states}:
        return  # the parent reports the difference
    zeros = {name: np.zeros(shape, np.float32) for name, shape in states.items()}
    noise = np.random.default_rng(0).integers(0, 256, (2, size, size, 3), np.uint8)
    session.run(None, {INPUT: noise, **zeros})


def _session(model: bytes, threads: int) -> onnxruntime.InferenceSession:
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _open(model: bytes, file: Path, manifest: Manifest, threads: int) -> onnxruntime.InferenceSession:
    try:
        session = _session(model, threads)
    except Exception as error:  # onnxruntime raises exceptions of many types
        raise WeightsError(file, f"not a usable ONNX file ({_first_line(error)})") from error
    given = {item.name: tuple(item.shape[-3:]) for item in session.get_inputs() if item.name == INPUT}
    given |= {item.name: tuple(item.shape) for item in session.get_inputs() if item.name != INPUT}
    wanted = {INPUT: (manifest.size, manifest.size, 3), **manifest.states}
    if given != wanted:
        raise WeightsError(file, f"its inputs are {given}; its manifest says {wanted}")
    outputs = {item.name for item in session.get_outputs()}
    if outputs != {WAVE, MASK, *(NEXT + name for name in manifest.states)}:
        raise WeightsError(file, "its outputs are not those of its manifest")
    return session


def _first_line(error: Any) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
