"""PHASE-Net: pixels → EST blocks → Adaptive Spatial Filter → gated causal TCN → pulse wave.

The network is causal: frame t+1 never changes output t. Frames in chunks of any size give the same numbers
as the whole clip. `phasenet_stream.py` builds `phasenet-stream` from the same blocks.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ...errors import ArgumentError, UnknownNameError
from .. import preprocessing
from ..output import Output
from ..published_training import PublishedTraining
from .asf import AdaptiveSpatialFilter
from .est import ESTBlock
from .front_end import PixelFrontEnd
from .gtcn import GatedTCN
from .layers import ConvNorm
from .streaming import State
from .zas import ZAS

NAME = "phasenet"
CITATION = (
    "B. Zhao, D. Guo, J. Cao, Y. Xu, B. Zou, T. Tan, Y. Sun and Z. Yu, PHASE-Net: Physics-Grounded Harmonic "
    "Attention System for Efficient Remote Photoplethysmography Measurement, CVPR 2026"
)
CAUSAL = True
SIZE = 128
FRAMES = 128
TARGET = "wave"
# The paper: Adam, learning rate 1e-4, 15 epochs, batch 4, λ = 0.1. It does not define the auxiliary loss; the
# authors' release reconstructs the latent sequence.
TRAINING = PublishedTraining(
    source="B. Zhao et al., PHASE-Net, CVPR 2026: implementation details",
    loss="pearson", target="wave", lr=1e-4, epochs=15, batch=4, frames=128, size=128, pixels="Raw",
    auxiliary="latent", weight=0.1,
)  # fmt: skip
# The paper prints 0.29 M; this counts every trained weight.
REFERENCE_PARAMETERS = 294_433

CHUNK = 16  # frames


@dataclass(frozen=True)
class PhaseNetConfig:
    """The sizes and the ablations of the paper; the defaults are the paper's."""

    size: int = SIZE  # input height and width in pixels
    fps: float = 30.0  # frame rate of the input
    stem: int = 16  # channels after the 5×5 stem
    stem_stride: int = 1
    channels: tuple[int, ...] = (32, 64, 128)  # after each EST block
    pools: tuple[int, ...] = (2, 2, 2)  # of each EST block
    expansion: int = 4
    est_kernel: int = 3  # frames in the temporal convolution of each EST block
    reduction: int = 4  # of squeeze-excite; 0 leaves it out
    zas: bool = True
    zas_block: int = 2  # b
    zas_fraction: float = 0.25  # p; the paper's p_c = 2 groups of eight
    asf: bool = True  # False: plain mean over space
    asf_hidden: int = 32
    derivative: bool = True
    gtcn: bool = True  # False: no temporal part
    hidden: int = 64  # channels of the temporal part
    tcn_kernel: int = 5
    tcn_dilations: tuple[int, ...] = (1, 2, 4)  # one layer each: depth 1–4 in the paper's ablation

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not _fits(getattr(self, field.name), field.default):
                raise ArgumentError(field.name, repr(getattr(self, field.name)), f"like {field.default!r}")
        for name, least in _AT_LEAST.items():
            values = getattr(self, name, least)
            for value in values if isinstance(values, tuple) else (values,):
                if not value >= least:
                    raise ArgumentError(name, value, f"at least {least}")
        for name in _POSITIVE:
            if not getattr(self, name, 1) > 0:
                raise ArgumentError(name, getattr(self, name), "a number above 0")
        if not self.channels or len(self.pools) != len(self.channels):
            raise ArgumentError("pools", self.pools, f"one per EST block: {len(self.channels)} numbers")
        if not 0 < self.zas_fraction < 1:
            raise ArgumentError("zas_fraction", self.zas_fraction, "a number between 0 and 1")
        if self.gtcn and not self.tcn_dilations:
            raise ArgumentError("tcn_dilations", self.tcn_dilations, "at least one layer")
        self.maps()

    def maps(self) -> list[int]:
        """Return the side in cells of the input of each EST block, and of the mask."""
        sides = [(self.size - 1) // self.stem_stride + 1]
        for index, pool in enumerate(self.pools):
            if self.zas and sides[-1] < self.zas_block:
                raise ArgumentError(
                    "size",
                    self.size,
                    f"larger: block {index + 1} gets {sides[-1]} px, less than b={self.zas_block}",
                )
            sides.append(sides[-1] // pool)
        if sides[-1] < 1:
            raise ArgumentError("size", self.size, "larger: no cell is left after pooling")
        return sides


_AT_LEAST = {
    "size": 4, "stem": 1, "stem_stride": 1, "channels": 1, "pools": 1, "expansion": 1, "est_kernel": 1,
    "reduction": 0, "zas_block": 1, "asf_hidden": 1, "variance_channels": 0, "hidden": 1, "tcn_kernel": 1,
    "tcn_dilations": 1, "oscillators": 1,
}  # fmt: skip
_POSITIVE = ("fps", "mean_s", "log_gain")


def _fits(value: object, default: object) -> bool:
    """Whether a value has the type of the field's default."""
    if isinstance(default, tuple):
        return isinstance(value, tuple) and all(_fits(item, 0) for item in value)
    if isinstance(value, bool) or isinstance(default, bool):
        return isinstance(value, bool) and isinstance(default, bool)
    return isinstance(value, (int, float) if isinstance(default, float) else type(default))


class PhaseNet(nn.Module):
    """The network of the paper, causal and streamable."""

    causal = True

    def __init__(self, config: PhaseNetConfig) -> None:
        super().__init__()
        self.config = c = config
        self.size = c.size
        self.front = self.make_front_end()
        self.stem = ConvNorm(self.front.channels, c.stem, 5, c.stem_stride)
        self.act = nn.ReLU(inplace=True)
        self.blocks = nn.ModuleList(
            ESTBlock(
                inputs,
                outputs,
                expansion=c.expansion,
                kernel=c.est_kernel,
                pool=pool,
                zas=ZAS(c.zas_block, c.zas_fraction, inplace=True) if c.zas else None,
                reduction=c.reduction,
            )
            for inputs, outputs, pool in zip((c.stem, *c.channels), c.channels, c.pools, strict=False)
        )
        self.filter = self.make_filter()
        # z and v differ in scale by orders of magnitude: normalise them before they are mixed.
        self.norm: nn.Module = nn.BatchNorm2d(self.filter.outputs)
        self.mix = nn.Conv2d(self.filter.outputs, c.hidden, 1)
        self.tcn = self.make_temporal()
        self.head = nn.Conv2d(c.hidden, 1, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def make_front_end(self) -> PixelFrontEnd:
        return PixelFrontEnd(self.config.fps)

    def make_filter(self) -> AdaptiveSpatialFilter:
        c = self.config
        return AdaptiveSpatialFilter(c.channels[-1], c.asf_hidden, learned=c.asf, derivative=c.derivative)

    def make_temporal(self) -> GatedTCN:
        c = self.config
        return GatedTCN(c.hidden, c.tcn_kernel, c.tcn_dilations if c.gtcn else ())

    @property
    def receptive_frames(self) -> int:
        """The number of frames that reach one output through convolutions."""
        c = self.config
        return 1 + (c.est_kernel - 1) * len(c.channels) + c.derivative + self.tcn.past

    @property
    def recursive(self) -> bool:
        """Whether an output also depends on all earlier frames, through running means."""
        return self.front.recursive

    def late_pooling_macs(self, frames: int) -> int:
        """Return the multiply-accumulates that a clip would need in addition if blocks pooled last.

        The paper draws the pooling after the 1×1 projection; the blocks pool before it, with equal results.
        """
        c, sides = self.config, self.config.maps()
        wide = [c.expansion * width for width in (c.stem, *c.channels[:-1])]
        saved = [
            (side**2 - pooled**2) * inside * outside
            for side, pooled, inside, outside in zip(sides[:-1], sides[1:], wide, c.channels, strict=True)
        ]
        return frames * sum(saved)

    def initial_state(self, batch: int = 1, size: int | None = None) -> State:
        """Return the state before the first frame."""
        if batch < 1:
            raise ArgumentError("batch", batch, "at least 1")
        if size not in (None, self.size):
            raise ArgumentError("size", size, f"{self.size}: build the network with size={size}")
        like = self.head.weight
        sides = self.config.maps()
        modules = {
            "front": self.front.initial_state(like, batch, self.size),
            "blocks": tuple(
                block.initial_state(like, batch, side, side)  # type: ignore[operator]
                for block, side in zip(self.blocks, sides, strict=False)
            ),
            "filter": self.filter.initial_state(like, batch, sides[-1]),
            "tcn": self.tcn.initial_state(like, batch),
        }
        return State(modules, batch)

    def forward(self, pixels: Tensor) -> Output:
        """Compute the output of a whole clip: pixels (B,T,S,S,3) in 0–255."""
        preprocessing.frames_of(pixels[:1, :1], size=self.size, min_frames=1)
        state = self.initial_state(pixels.shape[0])
        if self.training or torch.is_grad_enabled():
            return self.run(state, pixels)[1]
        # Without gradients, chunks that fit the processor cache are twice as fast (measured).
        parts = []
        for chunk in pixels.split(CHUNK, 1):
            state, part = self.run(state, chunk)
            parts.append(part)
        fields = {
            field.name: [getattr(part, field.name) for part in parts] for field in dataclasses.fields(Output)
        }
        return Output(**{name: torch.cat(tensors, 1) for name, tensors in fields.items()})

    @torch.no_grad()
    def step(self, state: State, pixels: Tensor) -> tuple[State, Output]:
        """Compute the output of the next t ≥ 1 frames, (B,t,S,S,3); the given state does not change."""
        preprocessing.frames_of(pixels, size=self.size, min_frames=1)
        if state.batch != pixels.shape[0]:
            raise ArgumentError("pixels", f"batch {pixels.shape[0]}", f"the state's batch, {state.batch}")
        state, output = self.run(state, pixels)
        return state.clone(), output  # a copy: views would keep the whole chunk in memory

    def run(self, state: State, pixels: Tensor) -> tuple[State, Output]:
        """Compute without checks; clips, chunks and the exported graph share this forward pass."""
        batch = int(pixels.shape[0])
        x, front = self.front(pixels, state["front"])
        x = self.act(self.stem(x))
        blocks = []
        for block, history in zip(self.blocks, state["blocks"], strict=True):
            x, history = block(x, history)
            blocks.append(history)
        started = (state["front"].weight > 0).to(x.dtype)
        running = self.front.running_weights(pixels.shape[1], state["front"])
        z, mask, filtered = self.filter(x, state["filter"], started, running, batch)  # z (B,T,outputs)
        mask = mask.reshape(batch, -1, *(int(n) for n in mask.shape[1:]))
        wave, latent, tcn = self.temporal(z, state["tcn"])
        modules = {"front": front, "blocks": tuple(blocks), "filter": filtered, "tcn": tcn}
        return State(modules, batch), Output(wave, latent, mask, z[:, :, : self.filter.width])

    def temporal(self, z: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """The temporal part: z' (B,T,outputs) -> wave (B,T), latent (B,T,D), new state of the TCN."""
        y = self.mix(self.norm(z.transpose(1, 2)[:, :, None]))  # (B,hidden,1,T)
        y, state = self.tcn(y, state)
        wave = self.head(y)[:, 0, 0]  # (B,1,1,T) -> (B,T)
        return wave, y[:, :, 0].transpose(1, 2), state


Config = TypeVar("Config", bound=PhaseNetConfig)


def configure(base: Config, network: str, overrides: dict[str, Any]) -> Config:
    """Return a configuration with some fields changed; lists become tuples, unknown fields are refused."""
    known = {field.name for field in dataclasses.fields(base)}
    for name in overrides:
        if name not in known:
            raise UnknownNameError(f"option of {network}", name, known)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in overrides.items()
    }
    return dataclasses.replace(base, **values)


def build(**overrides: Any) -> PhaseNet:
    """Build PHASE-Net with the paper's sizes; any field of `PhaseNetConfig` can be given."""
    return PhaseNet(configure(PhaseNetConfig(), NAME, overrides))
