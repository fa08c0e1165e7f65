"""Read recordings with a trained network: any checkpoint of ours, or weights that were imported.

A network that streams reads a recording in one go. The others read it clip by clip, in clips of their own
length; the last clip ends with the recording and overlaps the one before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from .. import registry
from ..errors import ArgumentError, WeightsError
from ..nn import build, weights
from ..types import ByteArray, FloatArray
from . import augment, checkpoint
from .recipe import from_dict

SUFFIX = ".safetensors"
CHUNK = 64  # frames that are resized, or streamed, at once
STEP = 8  # every network takes clips whose length is a multiple of this
FPS = 30.0


@dataclass(frozen=True, eq=False)
class Loaded:
    """A network that can read, and how it wants to be fed."""

    name: str
    network: nn.Module
    size: int  # pixels a side
    frames: int  # of a clip, for networks that do not stream
    fps: float = FPS
    delay_frames: int = 0  # the wave at t answers for the picture at t − delay
    facts: dict[str, Any] = field(default_factory=dict)


def load(path: str | Path) -> Loaded:
    """Open a checkpoint of `phase train` or a file of `phase import-weights`; anything else is refused."""
    try:
        with safe_open(str(path), framework="pt") as file:
            header = file.metadata() or {}
    except FileNotFoundError as error:
        raise WeightsError(path, "no such file") from error
    except (SafetensorError, OSError, ValueError) as error:
        raise WeightsError(path, "not a safetensors file, or damaged") from error
    if header.get("format") == weights.FORMAT:
        network, facts = weights.load(path)
        name = header["network"]
        return _loaded(name, network, registry.load("nn", name).FRAMES, facts)
    if "phase" not in header:
        raise WeightsError(path, "neither a checkpoint of phase train nor a file of phase import-weights")
    return load_checkpoint(path)


def load_checkpoint(path: str | Path) -> Loaded:
    """The network of a training run, with the weights that were validated."""
    tensors, facts = checkpoint.load(path)
    recipe = from_dict(facts["recipe"], str(path))
    name = recipe.network["name"]
    network = build(name, **{key: value for key, value in recipe.network.items() if key != "name"})
    checkpoint.put(network, checkpoint.judged(tensors), path)
    if recipe.loss.target == "difference":
        network = weights.Summed(network)
    return _loaded(name, network.eval(), recipe.data.frames, facts, recipe.delay_frames)


def _loaded(name: str, network: nn.Module, frames: int, facts: dict[str, Any], delay: int = 0) -> Loaded:
    inner = getattr(network, "network", network)
    size = int(getattr(inner, "size", registry.load("nn", name).SIZE))
    fps = float(getattr(getattr(inner, "config", None), "fps", FPS))
    return Loaded(name, network, size, frames, fps, delay, facts)


@torch.no_grad()
def read(model: Loaded, pixels: ByteArray) -> FloatArray:
    """The wave of a recording (T,S,S,3) u8 on the network's clock; (T − delay,), for its first pictures.

    A recording shorter than a clip of the network is read as one shorter clip, in steps of eight frames.
    """
    count = len(pixels)
    if hasattr(model.network, "step"):
        parts = [slice(first, first + CHUNK) for first in range(0, count, CHUNK)]
        state = model.network.initial_state(1)  # type: ignore[operator]
        waves = []
        for part in parts:
            state, out = model.network.step(state, _resized(pixels[part], model.size))  # type: ignore[operator]
            waves.append(out.wave[0])
        whole = torch.cat(waves)
    else:
        length = min(model.frames, count - count % STEP)
        if length < STEP:
            raise ArgumentError("pixels", f"{count} frames", f"at least {STEP} frames")
        starts = [*range(0, count - length + 1, length)]
        if starts[-1] + length < count:
            starts.append(count - length)
        whole = torch.zeros(count)
        for start in starts:
            wave = model.network(_resized(pixels[start : start + length], model.size)).wave[0]
            whole[start : start + length] = (wave - wave.mean()) / (wave.std() + 1e-8)
    found: FloatArray = whole[model.delay_frames :].numpy().astype(np.float64)
    return found


def _resized(pixels: ByteArray, size: int) -> Tensor:
    """(T,S,S,3) of any side as bytes of the network's side, (1,T,size,size,3)."""
    plain = augment.PLAIN
    small = augment.cut(pixels, np.arange(len(pixels), dtype=float), plain.box, size)
    return torch.from_numpy(augment.recolour(small, plain)[None])


class TorchModel:
    """A torch network in a session (`PulseModel`).

    A network that does not stream answers clip by clip, so with a delay of almost a clip.
    """

    def __init__(self, model: Loaded) -> None:
        self.model = model
        self.name, self.fps, self.size = model.name, model.fps, model.size
        self._streams = hasattr(model.network, "step")
        self.delay_frames = model.delay_frames + (0 if self._streams else model.frames - 1)
        self._state = model.network.initial_state(1) if self._streams else None  # type: ignore[operator]
        self._waiting: list[ByteArray] = []  # pictures of the clip that is not full yet
        self._ready: list[float] = [0.0] * (0 if self._streams else model.frames - 1)

    def fresh(self) -> TorchModel:
        return TorchModel(self.model)

    @torch.no_grad()
    def step(self, crops: ByteArray) -> FloatArray:
        if crops.shape[1:] != (self.size, self.size, 3):
            raise ArgumentError("crops", f"shape {crops.shape}", f"(t,{self.size},{self.size},3)")
        if self._streams:
            pixels = torch.from_numpy(np.ascontiguousarray(crops)[None])
            self._state, out = self.model.network.step(self._state, pixels)  # type: ignore[operator]
            wave: FloatArray = out.wave[0].numpy()
            return wave
        for crop in crops:
            self._waiting.append(crop)
            if len(self._waiting) == self.model.frames:
                full = self.model.network(torch.from_numpy(np.stack(self._waiting)[None])).wave[0]
                self._ready += ((full - full.mean()) / (full.std() + 1e-8)).tolist()
                self._waiting = []
        answer, self._ready = self._ready[: len(crops)], self._ready[len(crops) :]
        return np.array(answer, np.float32)


def pulse_model(path: str) -> TorchModel:
    """The network of a file, for a session; can be sent to another process by name."""
    torch.set_num_threads(1)
    return TorchModel(load(path))
