"""A network's temporal part and what it sees: from a checkpoint, or back from an exported graph."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import UsageError, WeightsError
from ..infer.onnx import WEIGHTS, StepModel
from ..infer.onnx import load as load_graph
from ..nn import build
from ..nn.phasenet import PhaseNet
from ..synth import load as load_world
from ..synth import sample
from ..types import ByteArray
from . import checkpoint
from .export import load_network
from .recipe import from_dict

PREFIX = "network."  # of the weights' names in an exported graph
SECONDS = 8.0  # of the recording that makes the working point


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
    folder = path.parent if path.suffix in (".json", ".onnx") else WEIGHTS
    return _from_graph(model, folder / model.manifest.file), _features(model)


@functools.cache
def still_face(size: int) -> ByteArray:
    """A synthetic person (T,S,S,3) u8 who keeps still."""
    fixed = {"motion.kind": "still", "light.kind": "constant", "pulse.bpm": 72.0}
    return sample(load_world("studio"), 7, 0, seconds=SECONDS, size=size, fixed=fixed).pixels


def _features(model: StepModel) -> Tensor:
    """z (T,C), read from the state after each picture."""
    if "z" not in model.manifest.states:
        raise UsageError(f"{model.name}: its graph does not show its features; give its checkpoint instead")
    rows = []
    for picture in still_face(model.size):
        model.step(picture[None])
        rows.append(model.state["z"][0])
    return torch.from_numpy(np.stack(rows))


def _from_graph(model: StepModel, file: Path) -> PhaseNet:
    """The network of a graph, with the weights of its temporal part; norms are folded into them."""
    import onnx
    from onnx import numpy_helper

    recipe = model.manifest.training.get("recipe")
    if not recipe:
        raise UsageError(f"{model.name}: its manifest names no recipe; give its checkpoint instead")
    options = dict(from_dict(recipe, f"{model.name}: recipe").network)
    network = build(options.pop("name"), **options)
    assert isinstance(network, PhaseNet)
    network.norm = nn.Identity()
    held = {item.name: item for item in onnx.load(str(file)).graph.initializer}
    for name in ("mix", "bank", "tcn", "head"):
        part = getattr(network, name)
        if part is None:
            continue
        weights = {}
        for key in part.state_dict():
            full = f"{PREFIX}{name}.{key}"
            if full not in held:
                raise WeightsError(
                    file, f"the graph no longer holds {name}.{key}; give the checkpoint instead"
                )
            weights[key] = torch.from_numpy(numpy_helper.to_array(held[full]).copy())
        checkpoint.put(part, weights, file)
    return network.eval()
