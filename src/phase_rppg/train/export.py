"""Export a checkpoint to one ONNX graph for any number of frames, with explicit state and folded norms."""

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
from ..evaluate.leaks import recorded_subjects
from ..fileio import atomic_path, sha256
from ..infer.manifest import INPUT, MASK, NEXT, WAVE, Manifest
from ..infer.onnx import StepModel, load
from ..nn.complexity import parameters
from ..nn.phasenet.fold_batchnorm import fold
from ..nn.phasenet.model import CITATION, PhaseNet
from ..nn.phasenet.streaming import State
from .checkpoint import Checkpoint, load_checkpoint

OPSET = 17
PARITY = 1e-4
PARITY_FRAMES = 300
FORBIDDEN = ("Loop", "Scan", "If")  # slow or missing in browsers, as are convolutions over 3 axes


def load_streaming(which: str | Path) -> tuple[PhaseNet, Checkpoint]:
    """Return the network of a checkpoint, which must be a PHASE-Net that predicts the pulse."""
    saved = load_checkpoint(which)
    network = saved.build_network()
    if not isinstance(network, PhaseNet):
        raise UsageError(f"{saved.spec.name} has no streaming form; only PHASE-Net can be exported")
    if saved.spec.target != "wave":
        raise UsageError(f"{which}: was trained on the slope of the pulse; only a wave can be exported")
    return network, saved


def export(path: str | Path, out: str | Path, *, name: str | None = None) -> Manifest:
    """Write `out` (an .onnx file) and its manifest beside it, after comparing the graph with torch."""
    network, saved = load_streaming(path)
    training = {
        "recipe": saved.provenance.get("recipe"),
        "version": saved.provenance.get("version"),
        "commit": _commit(),
        "subjects": recorded_subjects(saved.provenance),
        "clips_seen": saved.provenance.get("clips_seen"),
        "score": saved.provenance.get("score"),
    }
    return export_network(
        network,
        out,
        name=name or saved.spec.name,
        delay_frames=saved.spec.delay_frames,
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
    """Write the ONNX graph of a network and its manifest; raise if its output differs from that of torch."""
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
            states={key: tuple(t.shape) for key, t in network.initial_state().tensors().items()},
            mask=(1, sides[-1], sides[-1]),
            normalise=network.front.normalise,
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
    """Return the largest difference between torch (whole clip) and the graph (single frames, chunks).

    The unit is the standard deviation of the wave, because its scale is arbitrary.
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
    """The network with its state as separate inputs and outputs, for one face."""

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
        warnings.simplefilter("ignore")  # the tracer warns about sizes that are constants by design
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
    """Refuse 3-D convolutions and control flow, which not every runtime supports in a browser."""
    import onnx

    graph = onnx.load(str(path)).graph
    axes = {item.name: len(item.dims) - 2 for item in graph.initializer}  # of a convolution's weight
    for node in graph.node:
        if node.op_type in FORBIDDEN or (node.op_type == "Conv" and axes.get(node.input[1], 2) > 2):
            raise WeightsError(path, f"the graph uses {node.op_type}, which not every runtime supports")


def _commit() -> str | None:
    """Return the current commit of the source code, if it is in a repository."""
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
