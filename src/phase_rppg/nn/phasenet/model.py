"""PHASE-Net: pixels → EST blocks → Adaptive Spatial Filter → gated causal TCN → pulse wave.

Causal from the pixels to the output: frame t+1 never changes output t, and frames fed one at a time, or in
chunks of any sizes, give the same numbers as the whole clip. One class, one code path; `phasenet` is the
paper's sizes, `phasenet-stream` the small one.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import ArgumentError, UnknownNameError
from .. import preprocessing
from ..output import Output
from .asf import AdaptiveSpatialFilter
from .est import ESTBlock
from .front_end import FrontEnd
from .gtcn import GatedTCN
from .layers import ACTIVATIONS, ConvNorm, activation
from .oscillators import OscillatorBank
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
# The paper prints 0.29 M; every weight that is trained is counted here.
REFERENCE_PARAMETERS = 294_433

CHUNK = 16  # frames
TEMPORAL = ("gtcn", "oscillators", "both", "none")


@dataclass(frozen=True)
class PhaseNetConfig:
    """Every size and every ablation of the paper; the defaults are the paper's."""

    size: int = SIZE  # input height and width in pixels
    fps: float = 30.0  # of the network's clock
    normalise: str = "raw"  # "raw": the pixels; "log": log-intensity minus its running mean, beside them
    mean_s: float = 1.5  # time constant of that running mean
    log_gain: float = 30.0  # a pulse moves log-intensity by about a hundredth
    stem: int = 16  # channels after the 5×5 stem
    stem_stride: int = 1
    channels: tuple[int, ...] = (32, 64, 128)  # after each EST block
    pools: tuple[int, ...] = (2, 2, 2)  # of each EST block
    expansion: int = 4
    est_kernel: int = 3  # frames seen by each EST block
    reduction: int = 4  # of squeeze-excite; 0 leaves it out
    activation: str = "relu"
    zas: bool = True
    zas_block: int = 2  # b
    zas_fraction: float = 0.25  # p; the paper's p_c = 2 groups of eight
    asf: bool = True  # False: plain mean over space
    asf_hidden: int = 32
    masks: int = 1
    variance_channels: int = (
        0  # features whose unrest the mask knows, cell by cell; 0: it sees the present only
    )
    smooth_mask: bool = False  # the mask is the running mean of the masks so far: it does not flicker
    derivative: bool = True
    temporal: str = "gtcn"  # "gtcn", "oscillators", "both" or "none"
    hidden: int = 64  # channels of the temporal part
    tcn_kernel: int = 5
    tcn_dilations: tuple[int, ...] = (1, 2, 4)  # one layer each: depth 1–4 in the paper's ablation
    oscillators: int = 32
    init: str = "random"  # of the TCN kernels: "random" or "oscillator"

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if not _fits(getattr(self, field.name), field.default):
                raise ArgumentError(field.name, repr(getattr(self, field.name)), f"like {field.default!r}")
        for name, least in _AT_LEAST.items():
            values = getattr(self, name)
            for value in values if isinstance(values, tuple) else (values,):
                if not value >= least:
                    raise ArgumentError(name, value, f"at least {least}")
        for name in ("mean_s", "fps", "log_gain"):
            if not getattr(self, name) > 0:
                raise ArgumentError(name, getattr(self, name), "a number above 0")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise UnknownNameError(name, str(getattr(self, name)), choices)
        if not self.channels or len(self.pools) != len(self.channels):
            raise ArgumentError("pools", self.pools, f"one per EST block: {len(self.channels)} numbers")
        if self.masks > 2:
            raise ArgumentError("masks", self.masks, "1 or 2")
        if not 0 < self.zas_fraction < 1:
            raise ArgumentError("zas_fraction", self.zas_fraction, "a number between 0 and 1")
        if self.temporal in ("gtcn", "both") and not self.tcn_dilations:
            raise ArgumentError("tcn_dilations", self.tcn_dilations, "at least one layer")
        self.maps()

    def maps(self) -> list[int]:
        """Height and width of the picture that enters each EST block, and of the mask at the end."""
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
            raise ArgumentError("size", self.size, "larger: nothing is left after pooling")
        return sides


_AT_LEAST = {
    "size": 4, "stem": 1, "stem_stride": 1, "channels": 1, "pools": 1, "expansion": 1, "est_kernel": 1,
    "reduction": 0, "zas_block": 1, "asf_hidden": 1, "masks": 1, "variance_channels": 0, "hidden": 1,
    "tcn_kernel": 1, "tcn_dilations": 1, "oscillators": 1,
}  # fmt: skip
_CHOICES = {
    "normalise": ("raw", "log"),
    "activation": tuple(ACTIVATIONS),
    "temporal": TEMPORAL,
    "init": ("random", "oscillator"),
}


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
        self.front = FrontEnd(c.normalise, c.fps, c.mean_s, c.log_gain)
        self.stem = ConvNorm(self.front.channels, c.stem, 5, c.stem_stride)
        self.act = activation(c.activation)
        self.blocks = nn.ModuleList(
            ESTBlock(
                inputs,
                outputs,
                expansion=c.expansion,
                kernel=c.est_kernel,
                pool=pool,
                act=c.activation,
                zas=ZAS(c.zas_block, c.zas_fraction, inplace=True) if c.zas else None,
                reduction=c.reduction,
            )
            for inputs, outputs, pool in zip((c.stem, *c.channels), c.channels, c.pools, strict=False)
        )
        self.filter = AdaptiveSpatialFilter(
            c.channels[-1],
            c.asf_hidden,
            masks=c.masks,
            learned=c.asf,
            derivative=c.derivative,
            variance_channels=c.variance_channels,
            smooth_mask=c.smooth_mask,
        )
        # z and v differ in scale by orders of magnitude: bring them to one before they are mixed.
        self.norm: nn.Module = nn.BatchNorm2d(self.filter.outputs)
        self.mix = nn.Conv2d(self.filter.outputs, c.hidden, 1)
        bank, tcn = c.temporal in ("oscillators", "both"), c.temporal in ("gtcn", "both")
        self.bank = OscillatorBank(c.hidden, c.oscillators, c.fps) if bank else None
        self.tcn = GatedTCN(c.hidden, c.tcn_kernel, c.tcn_dilations) if tcn else None
        if self.tcn is not None and c.init == "oscillator":
            self.tcn.start_from_oscillators(c.fps)
        self.head = nn.Conv2d(c.hidden, 1, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def receptive_frames(self) -> int:
        """Frames that one output sees through convolutions."""
        c = self.config
        past = (c.est_kernel - 1) * len(c.channels) + c.derivative
        return 1 + past + (self.tcn.past if self.tcn is not None else 0)

    @property
    def recursive(self) -> bool:
        """Whether there is also memory that fades but never ends: the running mean, the oscillators."""
        return self.front.log or self.bank is not None

    def initial_state(self, batch: int = 1, size: int | None = None) -> State:
        """The state before the first frame."""
        if batch < 1:
            raise ArgumentError("batch", batch, "at least 1")
        if size not in (None, self.size):
            raise ArgumentError("size", size, f"{self.size}: build the network with size={size}")
        like = self.head.weight
        sides = self.config.maps()
        return State(
            front=self.front.initial_state(like, batch, self.size),
            est=tuple(
                block.initial_state(like, batch, side, side)  # type: ignore[operator]
                for block, side in zip(self.blocks, sides, strict=False)
            ),
            z=self.filter.initial_state(like, batch),
            bank=self.bank.initial_state(like, batch) if self.bank is not None else None,
            tcn=self.tcn.initial_state(like, batch) if self.tcn is not None else (),
            look=self.filter.initial_look(like, batch, sides[-1]),
        )

    def forward(self, pixels: Tensor) -> Output:
        """Read a whole clip: pixels (B,T,S,S,3) in 0–255."""
        preprocessing.frames_of(pixels[:1, :1], size=self.size, min_frames=1)
        state = self.initial_state(pixels.shape[0])
        if self.training or torch.is_grad_enabled():
            return self.run(state, pixels)[1]
        # Without gradients a clip goes through in chunks that stay in the cache (measured: 2× faster).
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
        """Read the next t ≥ 1 frames, (B,t,S,S,3); the given state is left as it was."""
        preprocessing.frames_of(pixels, size=self.size, min_frames=1)
        if state.batch != pixels.shape[0]:
            raise ArgumentError("pixels", f"batch {pixels.shape[0]}", f"the state's batch, {state.batch}")
        state, output = self.run(state, pixels)
        return state.clone(), output  # a copy, so that the state never holds a whole chunk in memory

    def run(self, state: State, pixels: Tensor) -> tuple[State, Output]:
        """The network itself, without checks; clips, chunks and the exported graph all come through here."""
        batch = int(pixels.shape[0])
        x, front = self.front(pixels, state.front)
        x = self.act(self.stem(x))
        est = []
        for block, history in zip(self.blocks, state.est, strict=True):
            x, history = block(x, history)
            est.append(history)
        started = (state.front.weight > 0).to(x.dtype)
        mask, look = self.filter.look(x, state.look, self.front.running(pixels.shape[1], state.front))
        z, last = self.filter(x, mask, state.z, started, batch)  # z (B,T,outputs)
        mask = mask.reshape(batch, -1, *(int(n) for n in mask.shape[1:]))
        wave, latent, bank, tcn = self.read(z, state.bank, state.tcn)
        output = Output(wave, latent, mask, z[:, :, : self.filter.width])
        return State(front, tuple(est), last, bank, tcn, look), output

    def read(
        self, z: Tensor, bank: Tensor | None, tcn: tuple[Tensor, ...]
    ) -> tuple[Tensor, Tensor, Tensor | None, tuple[Tensor, ...]]:
        """The temporal part: z' (B,T,outputs) and its memory -> wave (B,T), latent (B,T,D), new memory."""
        y = self.mix(self.norm(z.transpose(1, 2)[:, :, None]))  # (B,hidden,1,T)
        if self.bank is not None and bank is not None:
            y, bank = self.bank(y, bank)
        if self.tcn is not None:
            y, tcn = self.tcn(y, tcn)
        wave = self.head(y)[:, 0, 0]  # (B,1,1,T) -> (B,T)
        return wave, y[:, :, 0].transpose(1, 2), bank, tcn


def configure(base: PhaseNetConfig, preset: str, overrides: dict[str, Any]) -> PhaseNetConfig:
    """A preset with some fields changed; lists become tuples, unknown fields are refused."""
    known = {field.name for field in dataclasses.fields(base)}
    for name in overrides:
        if name not in known:
            raise UnknownNameError(f"option of {preset}", name, known)
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in overrides.items()
    }
    return dataclasses.replace(base, **values)


def build(**overrides: Any) -> PhaseNet:
    """PHASE-Net with the paper's sizes; any field of `PhaseNetConfig` can be given."""
    return PhaseNet(configure(PhaseNetConfig(), NAME, overrides))
