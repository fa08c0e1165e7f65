"""A network back from a checkpoint or from an exported graph: to look into it, or to train it further."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import UsageError, WeightsError
from ..infer.onnx import WEIGHTS, StepModel
from ..infer.onnx import load as load_graph
from ..nn import build
from ..nn.phasenet.fold import fold, unfold
from ..nn.phasenet.layers import CausalDepthwise
from ..nn.phasenet.model import PhaseNet
from ..synth import load as load_world
from ..synth import sample
from ..types import ByteArray
from . import checkpoint
from .export import load_network
from .recipe import from_dict

if TYPE_CHECKING:
    import onnx

PREFIX = "network."  # of the weights' names in an exported graph
SECONDS = 8.0  # of the recording that makes the working point
SOME_FACES, SOME_SECONDS = 12, 4.0  # what the statistics of norms are taken from


def temporal_part(which: str | Path) -> tuple[PhaseNet, Tensor]:
    """(network, features z (T,C)) of a checkpoint, a manifest, an ONNX file or a shipped name.

    z are the features of a synthetic face in still light, the same for every network. Only the temporal part
    of a network that comes from a graph has its weights.
    """
    path = Path(which)
    if path.suffix == ".safetensors":
        network, _ = load_network(path)
        with torch.no_grad():
            raw = network(torch.from_numpy(still_face(network.size)[None])).raw
        assert raw is not None
        return network, raw[0]
    model = load_graph(which)
    network, weights = _from_graph(model, which)
    for name in ("mix", "bank", "tcn", "head"):
        if (part := getattr(network, name)) is not None:
            _fill(part, _below(name, weights), which)
    return network, _features(model)


def trainable(which: str | Path) -> PhaseNet:
    """An exported network to go on training from: of a manifest, an ONNX file or a shipped name.

    A graph has no norms any more. They come back with the statistics of a few made faces, and compute the
    same within rounding.
    """
    folded, weights = _from_graph(load_graph(which), which)
    _fill(folded, weights, which)
    return unfold(folded, torch.from_numpy(some_faces(folded.size)))


@functools.cache
def still_face(size: int) -> ByteArray:
    """A synthetic person (T,S,S,3) u8 who keeps still."""
    fixed = {"motion.kind": "still", "light.kind": "constant", "pulse.bpm": 72.0}
    return sample(load_world("studio"), 7, 0, seconds=SECONDS, size=size, fixed=fixed).pixels


@functools.cache
def some_faces(size: int) -> ByteArray:
    """Clips (N,T,S,S,3) u8 of people as a network meets them in training."""
    wild = load_world("wild")
    return np.stack([sample(wild, 7, i, seconds=SOME_SECONDS, size=size).pixels for i in range(SOME_FACES)])


def _features(model: StepModel) -> Tensor:
    """z (T,C), read from the state after each picture."""
    if "z" not in model.manifest.states:
        raise UsageError(f"{model.name}: its graph does not show its features; give its checkpoint instead")
    rows = []
    for picture in still_face(model.size):
        model.step(picture[None])
        rows.append(model.state["z"][0])
    return torch.from_numpy(np.stack(rows))


def _from_graph(model: StepModel, which: str | Path) -> tuple[PhaseNet, dict[str, Tensor]]:
    """The network of a graph, without norms and without its weights yet, and the weights that the graph holds
    by name; of equal ones it may hold one only."""
    import onnx
    from onnx import numpy_helper

    recipe = model.manifest.training.get("recipe")
    if not recipe:
        raise UsageError(f"{model.name}: its manifest names no recipe; give its checkpoint instead")
    options = dict(from_dict(recipe, f"{model.name}: recipe").network)
    network = build(options.pop("name"), **options)
    assert isinstance(network, PhaseNet)
    folded = fold(network)
    path = Path(which)
    file = (path.parent if path.suffix in (".json", ".onnx") else WEIGHTS) / model.manifest.file
    graph = onnx.load(str(file)).graph
    held = {item.name: torch.from_numpy(numpy_helper.to_array(item).copy()) for item in graph.initializer}
    weights = {name: held[PREFIX + name] for name in folded.state_dict() if PREFIX + name in held}
    return folded, weights | _over_time(folded, graph, held)


def _fill(part: nn.Module, weights: dict[str, Tensor], which: str | Path) -> None:
    """Give a part its weights, if the graph still holds all of them."""
    for name in part.state_dict():
        if name not in weights:
            raise WeightsError(which, f"the graph no longer holds {name}; give the checkpoint instead")
    checkpoint.put(part, weights, which)


def _below(name: str, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of one part, by their names within it."""
    return {key.removeprefix(f"{name}."): w for key, w in weights.items() if key.startswith(f"{name}.")}


def _over_time(folded: PhaseNet, graph: onnx.GraphProto, held: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of the blocks over time, which a graph holds one by one and without their names: those of
    the newest frame first, the bias last, block after block."""
    nameless = iter(
        held[name]
        for node in graph.node
        if node.op_type in ("Mul", "Add")
        for name in node.input
        if name in held and not name.startswith(PREFIX) and held[name].ndim == 3
    )
    weights: dict[str, Tensor] = {}
    for name, module in folded.named_modules():
        if isinstance(module, CausalDepthwise):
            newest_first = [taken.reshape(-1) for taken in itertools.islice(nameless, module.kernel)]
            bias = next(nameless, None)
            if bias is not None:
                weights[f"{name}.weight"] = torch.stack(newest_first[::-1], 1)[:, None, :, None]
                weights[f"{name}.bias"] = bias.reshape(-1)
    return weights
