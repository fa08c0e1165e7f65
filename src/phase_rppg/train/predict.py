"""Run the network of a checkpoint on recordings: for `phase evaluate` and `phase reproduce`.

A streaming network processes a recording as one sequence. The others process it in clips of their own
length; the last clip ends with the recording and overlaps the clip before.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError
from ..evaluate import predictors
from ..evaluate.clip_evaluation import Prediction
from ..evaluate.conventions import Convention
from ..nn import preprocessing
from ..nn.output import IntegratedNetwork
from ..types import ByteArray, FloatArray
from . import augment
from .checkpoint import DEFAULT_FPS, load_checkpoint
from .compute import Compute, to_device

CHUNK = 64  # frames that are resized and processed together
STEP = 8  # every network accepts clips whose length is a multiple of this


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network that predicts the pulse wave, and its input format."""

    name: str
    network: nn.Module
    size: int  # input height and width in pixels
    frames: int  # length of a clip, for networks that do not stream
    fps: float = DEFAULT_FPS
    delay_frames: int = 0  # the wave at frame t belongs to the input frame t − delay
    provenance: dict[str, Any] = field(default_factory=dict)
    compute: Compute = field(default_factory=Compute)
    forward: nn.Module = field(init=False)  # the network to call for a clip: compiled if `compute` says so

    def __post_init__(self) -> None:
        object.__setattr__(self, "forward", self.compute.compiled(self.network))

    def run(self, pixels: ByteArray) -> Tensor:
        """Return the wave (T,) of one clip (T,size,size,3), on the CPU."""
        with self.compute.autocast():
            wave: Tensor = self.forward(self._input(pixels)).wave[0]
        return wave.float().cpu()

    def step(self, state: Any, pixels: ByteArray) -> tuple[Any, Tensor]:
        """Return the new state and the wave (T,) of the next frames, for networks that stream."""
        with self.compute.autocast():
            state, out = self.network.step(state, self._input(pixels))  # type: ignore[operator]
        return state, out.wave[0].float().cpu()

    def _input(self, pixels: ByteArray) -> Tensor:
        return to_device(torch.from_numpy(np.ascontiguousarray(pixels)[None]), self.compute.resolve())


def load(which: str | Path, compute: Compute | None = None) -> TrainedNetwork:
    """Load the network of a checkpoint: of `phase train`, of `phase import-weights`, or a bundled one."""
    saved = load_checkpoint(which)
    compute = compute or Compute()
    spec, network = saved.spec, compute.place(saved.build_pulse_network())
    return TrainedNetwork(
        spec.name, network, spec.size, spec.frames, spec.fps, spec.delay_frames, saved.provenance, compute
    )


@torch.no_grad()
def predict_wave(model: TrainedNetwork, pixels: ByteArray) -> FloatArray:
    """Return the wave (T − delay,) of a recording (T,S,S,3) u8 at the frame rate of the network.

    A recording shorter than a clip is one shorter clip; its length is rounded down to a multiple of eight.
    """
    count = len(pixels)
    if hasattr(model.network, "step"):
        parts = [slice(first, first + CHUNK) for first in range(0, count, CHUNK)]
        state = model.network.initial_state(1)  # type: ignore[operator]
        waves = []
        for part in parts:
            state, wave_part = model.step(state, _resized(pixels[part], model.size))
            waves.append(wave_part)
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
            part_wave = model.run(_resized(pixels[start : start + length], model.size))
            whole[start : start + length] = (part_wave - part_wave.mean()) / (part_wave.std() + 1e-8)
    wave: FloatArray = whole[model.delay_frames :].numpy().astype(np.float64)
    return wave


class NetworkPredictor:
    """The network of a checkpoint as a predictor for `evaluate_clip`."""

    def __init__(self, model: TrainedNetwork) -> None:
        self.model, self.size = model, model.size

    def predict(self, pixels: ByteArray, fps: float, convention: Convention) -> Prediction:
        """Return the wave of a recording; where clips are joined, the slope if the network predicts it."""
        predictors.check_fps(fps, self.model.fps)
        if convention.joining == "stream":
            return Prediction(predict_wave(self.model, pixels))
        return predict_clips(self.model, pixels)


@torch.no_grad()
def predict_clips(model: TrainedNetwork, pixels: ByteArray) -> Prediction:
    """Return the raw outputs of consecutive clips, joined; frames that do not fill a clip are dropped.

    Networks that normalise their input use the statistics of the whole recording, and the last difference of
    a clip reaches into the next one, as in the cache of rPPG-Toolbox.
    """
    slope = isinstance(model.network, IntegratedNetwork)
    if isinstance(model.network, IntegratedNetwork):
        model = dataclasses.replace(model, network=model.network.network)
    small = _resized(pixels, model.size)
    delay = model.delay_frames
    length = min(model.frames, (len(small) - delay) // STEP * STEP)
    if length < STEP:
        raise ArgumentError("pixels", f"{len(pixels)} frames", f"at least {STEP} frames")
    statistics = video_statistics(small)
    waves = []
    for first in range(0, len(small) - delay - length + 1, length):
        last = first + length + delay
        following = torch.from_numpy(small[None, last : last + 1]) if last < len(small) else None
        with preprocessing.part_of(dataclasses.replace(statistics, following=following)):
            part = model.run(small[first:last])
        waves.append(part[delay:])
    return Prediction(torch.cat(waves).numpy().astype(np.float64), slope=slope)


def video_statistics(pixels: ByteArray) -> preprocessing.VideoStatistics:
    """Return the statistics of a whole recording (T,S,S,3), computed in chunks."""
    sums = np.zeros(6)  # count, Σx, Σx² of the pixels and of their relative changes
    for first in range(0, len(pixels), CHUNK):
        part = pixels[first : first + CHUNK + 1].astype(np.float64)
        own = part[: min(CHUNK, len(pixels) - first)]
        change = (part[1:] - part[:-1]) / (part[1:] + part[:-1] + preprocessing.TINY)
        sums += [own.size, own.sum(), (own**2).sum(), change.size, change.sum(), (change**2).sum()]
    mean, change_mean = sums[1] / sums[0], sums[4] / max(sums[3], 1)
    spread = np.sqrt(max(sums[2] / sums[0] - mean**2, 0.0))
    change_spread = np.sqrt(max(sums[5] / max(sums[3], 1) - change_mean**2, 0.0))
    return preprocessing.VideoStatistics(float(mean), float(spread), float(change_spread))


def predictor(path: str, compute: Compute | None = None) -> NetworkPredictor:
    """Load the network of a checkpoint for `evaluate_clip`; worker processes call this."""
    torch.set_num_threads(1)
    return NetworkPredictor(load(path, compute))


def _resized(pixels: ByteArray, size: int) -> ByteArray:
    """Return frames (T,S,S,3) as bytes of the input size, (T,size,size,3)."""
    return augment.resize(pixels, np.arange(len(pixels), dtype=float), size)


class TorchModel:
    """A torch network with the interface of a session (`PulseModel`).

    A network that does not stream returns one clip at a time, so its delay is almost a clip.
    """

    def __init__(self, model: TrainedNetwork) -> None:
        self.model = model
        self.name, self.fps, self.size = model.name, model.fps, model.size
        self._streams = hasattr(model.network, "step")
        self.delay_frames = model.delay_frames + (0 if self._streams else model.frames - 1)
        self._state = model.network.initial_state(1) if self._streams else None  # type: ignore[operator]
        self._waiting: list[ByteArray] = []  # frames of the incomplete clip
        self._ready: list[float] = [0.0] * (0 if self._streams else model.frames - 1)

    def fresh(self) -> TorchModel:
        return TorchModel(self.model)

    @torch.no_grad()
    def step(self, crops: ByteArray) -> FloatArray:
        if crops.shape[1:] != (self.size, self.size, 3):
            raise ArgumentError("crops", f"shape {crops.shape}", f"(t,{self.size},{self.size},3)")
        if self._streams:
            self._state, part = self.model.step(self._state, crops)
            wave: FloatArray = part.numpy()
            return wave
        for crop in crops:
            self._waiting.append(crop)
            if len(self._waiting) == self.model.frames:
                full = self.model.run(np.stack(self._waiting))
                self._ready += ((full - full.mean()) / (full.std() + 1e-8)).tolist()
                self._waiting = []
        values, self._ready = self._ready[: len(crops)], self._ready[len(crops) :]
        return np.array(values, np.float32)


def pulse_model(path: str, compute: Compute | None = None) -> TorchModel:
    """Load the network of a checkpoint for a session; worker processes call this with the path."""
    torch.set_num_threads(1)
    return TorchModel(load(path, compute))
