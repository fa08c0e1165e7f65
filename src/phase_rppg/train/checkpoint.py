"""Checkpoints: one safetensors file with the weights of a network and all that is needed to run it.

The file's header holds JSON: how to build the network and what its input is (`NetworkSpec`), and where the
weights come from (`provenance`). The tensors are

    weights/NAME             the weights to use: the running average, if training keeps one
    resume/network/NAME      the weights that training changes, if they are not the ones above
    resume/objective/NAME    the weights of the objective
    resume/optimiser/I.NAME  the moments of the optimiser

Only `last.safetensors` of a training run has the tensors under `resume/`. Reading a checkpoint never runs
code from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from .. import limits, registry
from ..errors import InputError, OutputError, PhaseError, WeightsError
from ..fileio import atomic_path, check_regular, dump_json, parse_json
from ..infer.onnx import WEIGHTS
from ..nn import build
from ..nn.output import IntegratedNetwork
from ..nn.state_dict import check_tensors

FORMAT = 2
SUFFIX = ".safetensors"
DEFAULT_FPS = 30.0
# What `nn.build` raises for options out of range, such as a size of a tensor that overflows.
MAX_FPS = 1e6
_BUILD_ERRORS = (PhaseError, TypeError, ValueError, RuntimeError, ArithmeticError, MemoryError)
_HEADER = "phase"  # key of the JSON in the metadata of the file


@dataclass(frozen=True)
class NetworkSpec:
    """How to build the network of a checkpoint, and which input it takes."""

    name: str
    options: Mapping[str, Any]  # keyword arguments of `nn.build`
    size: int  # input height and width in pixels
    fps: float  # frame rate of the input
    frames: int  # length of a clip, for networks that do not stream
    delay_frames: int = 0  # the wave at frame t belongs to the input frame t − delay
    target: str = "wave"  # what the network predicts: the pulse, or "difference", its slope


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The content of a checkpoint file."""

    path: Path
    spec: NetworkSpec
    weights: dict[str, Tensor]
    resume: dict[str, Tensor] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)  # recipe, score, …; or the imported file

    def build_network(self) -> nn.Module:
        """Build the network with its weights, in evaluation mode; it predicts `spec.target`."""
        try:
            with torch.device("meta"):  # without memory: the options of a file may ask for any size
                self._check_network(self._build())
        except NotImplementedError:
            pass  # a network of a plug-in that needs values while it is built
        network = self._build()
        self._check_network(network)
        network.load_state_dict(self.weights)
        return network.eval()

    def _build(self) -> nn.Module:
        try:
            return build(self.spec.name, **self.spec.options)
        except NotImplementedError:
            raise
        except _BUILD_ERRORS as error:
            raise WeightsError(self.path, f"its header cannot be used ({error})") from error

    def _check_network(self, network: nn.Module) -> None:
        if (built := describe(self.spec.name, self.spec.options, network)).size != self.spec.size:
            raise WeightsError(
                self.path, f"its header says {self.spec.size} px, but its network takes {built.size} px"
            )
        check_tensors(self.weights, network.state_dict(), self.path, self.spec.name)

    def build_pulse_network(self) -> nn.Module:
        """Build the network so that its wave is the pulse, also if it was trained on the slope."""
        network = self.build_network()
        return IntegratedNetwork(network).eval() if self.spec.target == "difference" else network


def describe(
    name: str,
    options: Mapping[str, Any],
    network: nn.Module,
    *,
    frames: int | None = None,
    delay_frames: int = 0,
    target: str = "wave",
) -> NetworkSpec:
    """Return the specification of a network that `nn.build(name, **options)` built."""
    module = registry.load("nn", name)
    size = int(getattr(network, "size", module.SIZE))
    fps = float(getattr(getattr(network, "config", None), "fps", DEFAULT_FPS))
    return NetworkSpec(name, dict(options), size, fps, frames or int(module.FRAMES), delay_frames, target)


def save_checkpoint(
    path: str | Path,
    spec: NetworkSpec,
    weights: Mapping[str, Tensor],
    *,
    resume: Mapping[str, Tensor] | None = None,
    provenance: Mapping[str, Any] | None = None,
) -> None:
    """Write a checkpoint atomically. `resume` is what only further training needs."""
    tensors = add_prefix("weights", weights) | add_prefix("resume", resume or {})
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "network": dataclasses.asdict(spec), "provenance": dict(provenance or {})}
    with atomic_path(path) as temporary:
        try:
            save_file(plain, temporary, metadata={_HEADER: dump_json(header, indent=None)})
        except SafetensorError as error:  # it hides the OSError of a full disk
            raise OutputError(path, str(error)) from error


def load_checkpoint(which: str | Path) -> Checkpoint:
    """Read a checkpoint: a file, or the name of a bundled one such as "phasenet-stream"."""
    path = Path(which)
    if path.suffix != SUFFIX and (WEIGHTS / f"{which}{SUFFIX}").is_file():
        path = WEIGHTS / f"{which}{SUFFIX}"
    if not path.exists():
        raise WeightsError(path, "no such file")
    try:
        size_mb = check_regular(path).st_size / 2**20
    except InputError as error:
        raise WeightsError(path, str(error).removeprefix(f"{path}: ")) from error
    if size_mb > limits.current().checkpoint_mb:
        raise WeightsError(path, f"has {size_mb:.0f} MB; {limits.hint('checkpoint_mb')}")
    try:
        with safe_open(str(path), framework="pt") as file:
            header = (file.metadata() or {}).get(_HEADER)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise WeightsError(path, "not a safetensors file, or damaged") from error
    if header is None:
        raise WeightsError(
            path, "not a checkpoint of phase-rppg; convert published weights with phase import-weights"
        )
    spec, provenance = _parse_header(header, path)
    weights, resume = strip_prefix("weights", tensors), strip_prefix("resume", tensors)
    return Checkpoint(path, spec, weights, resume, provenance)


def load_weights(network: nn.Module, weights: Mapping[str, Tensor], path: str | Path, name: str) -> None:
    """Copy weights into a network after checking that every tensor fits."""
    check_tensors(weights, network.state_dict(), path, name)
    network.load_state_dict(dict(weights))


def add_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with names that begin with "prefix/"."""
    return {f"{prefix}/{name}": tensor for name, tensor in tensors.items()}


def strip_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with "prefix/", without the prefix."""
    start = f"{prefix}/"
    return {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}


def _has_valid_types(spec: NetworkSpec) -> bool:
    counts = (spec.size, spec.frames, spec.delay_frames)
    return (
        isinstance(spec.name, str)
        and isinstance(spec.target, str)
        and isinstance(spec.options, dict)
        and all(isinstance(n, int) and n < 2**31 for n in counts)
        and isinstance(spec.fps, int | float)
        and -MAX_FPS < spec.fps < MAX_FPS  # also refuses NaN
    )


def _parse_header(header: str, path: Path) -> tuple[NetworkSpec, dict[str, Any]]:
    try:
        values = parse_json(header, path)
        found = values["format"]
        if found == FORMAT:
            spec = NetworkSpec(**values["network"])
            if not _has_valid_types(spec):
                raise ValueError("a field of its network has the wrong type")
            if not (spec.size > 0 and spec.fps > 0 and spec.frames > 0 and spec.delay_frames >= 0):
                raise ValueError("size, fps and frames must be above 0")
            return spec, dict(values["provenance"])
    except InputError as error:
        reason = str(error).removeprefix(f"{path}: ")
        raise WeightsError(path, f"its header cannot be read ({reason})") from error
    except (KeyError, TypeError, ValueError) as error:
        raise WeightsError(path, f"its header cannot be read ({error})") from error
    raise WeightsError(path, f"checkpoint format {found}; this version reads format {FORMAT}")
