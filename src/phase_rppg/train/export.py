"""Export a trained network: one ONNX graph for any number of frames, with explicit state and folded norms."""

from __future__ import annotations

import copy
import dataclasses
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import UsageError, WeightsError
from ..fileio import atomic_path, sha256
from ..infer.manifest import INPUT, MASK, NEXT, WAVE, Manifest
from ..infer.onnx import StepModel, load
from ..nn import build
from ..nn.counting import parameters
from ..nn.phasenet.fold import fold
from ..nn.phasenet.model import CITATION, PhaseNet
from ..nn.phasenet.streaming import State
from . import checkpoint
from .recipe import from_dict

OPSET = 17
PARITY = 1e-4
PARITY_FRAMES = 300
FORBIDDEN = ("Loop", "Scan", "If")  # browsers run them slowly or not at all; nor convolutions over 3 axes


def load_network(path: str | Path) -> tuple[PhaseNet, dict[str, Any]]:
    """The network of a checkpoint, ready to evaluate, and the checkpoint's facts."""
    tensors, facts = checkpoint.load(path)
    recipe = from_dict(facts["recipe"], str(path))
    options = {key: value for key, value in recipe.network.items() if key != "name"}
    network = build(recipe.network["name"], **options)
    if not isinstance(network, PhaseNet):
        raise UsageError(f"{recipe.network['name']} has no streaming form; only PHASE-Net can be exported")
    if recipe.loss.target != "wave":
        raise UsageError(f"{path}: was trained on the slope of the pulse; only a wave can be exported")
    checkpoint.put(network, checkpoint.judged(tensors), path)
    return network.eval(), facts


def export(path: str | Path, out: str | Path, *, name: str | None = None) -> Manifest:
    """Write `out` (an .onnx file) and its manifest beside it, after comparing the graph with torch."""
    network, facts = load_network(path)
    recipe = facts["recipe"]
    training = {
        "recipe": recipe,
        "version": facts.get("version"),
        "commit": _commit(),
        "clips_seen": facts.get("clips_seen"),
        "score": facts.get("score"),
    }
    return export_network(
        network,
        out,
        name=name or recipe["network"]["name"],
        delay_frames=recipe["delay_frames"],
        training=training,
    )


def export_network(
    network: PhaseNet,
    out: str | Path,
    *,
    name: str,
    delay_frames: int = 0,
    training: dict[str, Any] | None = None,
) -> Manifest:
    """Write a network as a step graph with its manifest; refused if it does not compute what torch does."""
    target = Path(out).with_suffix(".onnx")
    folded = fold(network)
    sides = network.config.maps()
    with atomic_path(target) as temporary:
        _write(folded, temporary)
        _check_operators(temporary)
        manifest = Manifest(
            name=name,
            file=target.name,
            sha256=sha256(temporary),
            fps=network.config.fps,
            size=network.size,
            delay_frames=delay_frames,
            states={key: tuple(tensor.shape) for key, tensor in network.initial_state().tensors().items()},
            mask=(network.config.masks, sides[-1], sides[-1]),
            normalise=network.config.normalise,
            receptive_frames=network.receptive_frames,
            parameters=parameters(network),
            parity=0.0,
            training=training or {},
            citation=CITATION,
        )
        draft = temporary.with_suffix(".json")
        try:
            dataclasses.replace(manifest, file=temporary.name).save(draft)
            difference = parity(network, load(draft))
        finally:
            draft.unlink(missing_ok=True)
        if not difference <= PARITY:
            raise WeightsError(
                target, f"the graph differs from torch by {difference:.2g}, allowed: {PARITY:.0e}"
            )
        manifest = dataclasses.replace(manifest, parity=difference)
    manifest.save(target.with_suffix(".json"))
    return manifest


def parity(network: PhaseNet, model: StepModel, frames: int = PARITY_FRAMES) -> float:
    """Largest difference between torch (whole clip) and the graph (frame by frame, and in chunks).

    In units of the wave's standard deviation, since its scale is free.
    """
    rng = np.random.default_rng(0)
    scene = rng.integers(30, 220, (1, network.size, network.size, 3))
    beat = 3 * np.sin(2 * np.pi * 1.2 * np.arange(frames) / network.config.fps)[:, None, None, None]
    noise = rng.normal(0, 2, (frames, network.size, network.size, 3))
    pixels = np.clip(np.rint(scene + beat + noise), 0, 255).astype(np.uint8)
    with torch.no_grad():
        whole = network.eval()(torch.from_numpy(pixels[None])).wave[0].numpy()
    singly, chunked = model.fresh(), model.fresh()
    one = np.concatenate([singly.step(pixels[t : t + 1]) for t in range(frames)])
    many = np.concatenate([chunked.step(part) for part in np.array_split(pixels, 7)])
    spread = float(whole.std()) or 1.0
    return float(max(np.abs(one - whole).max(), np.abs(many - whole).max()) / spread)


class _Step(nn.Module):
    """The network with its state as plain inputs and outputs, one face at a time."""

    def __init__(self, network: PhaseNet, like: State) -> None:
        super().__init__()
        self.network, self.like = network, like

    def forward(self, pixels: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        state = self.like.replace(dict(zip(self.like.tensors(), states, strict=True)))
        new, output = self.network.run(state, pixels[None])
        assert output.mask is not None
        return output.wave[0], output.mask[0], *new.tensors().values()


def _write(network: PhaseNet, path: Path) -> None:
    network = copy.deepcopy(network).to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    like = network.initial_state()
    states = list(like.tensors())
    frames = torch.randint(0, 256, (5, network.size, network.size, 3), dtype=torch.uint8)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # the tracer warns about sizes that are constant on purpose
        torch.onnx.export(
            _Step(network, like),
            (frames, *like.tensors().values()),
            str(path),
            input_names=[INPUT, *states],
            output_names=[WAVE, MASK, *(NEXT + state for state in states)],
            dynamic_axes={INPUT: {0: "t"}, WAVE: {0: "t"}, MASK: {0: "t"}},
            opset_version=OPSET,
            dynamo=False,
        )


def _check_operators(path: Path) -> None:
    """Two dimensions at most, and no control flow: what every runtime, also in a browser, can run."""
    import onnx

    graph = onnx.load(str(path)).graph
    axes = {item.name: len(item.dims) - 2 for item in graph.initializer}  # of a convolution's weight
    for node in graph.node:
        if node.op_type in FORBIDDEN or (node.op_type == "Conv" and axes.get(node.input[1], 2) > 2):
            raise WeightsError(path, f"the graph uses {node.op_type}, which not every runtime has")


def _commit() -> str | None:
    """The commit this code is at, if it is in a repository."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
