"""ME-rPPG: convolutions on single frames, joined over time by state space models of a fixed size.

Four blocks reduce the picture from 36×36 to 3×3. Each has two units: every pixel is normalised over time, the
mean of its convolved picture passes a Mamba-2 layer, and the result is added to all pixels. Two more Mamba-2
layers and a dense layer give the wave.

A stream keeps running means, running variances and the states of the Mamba-2 layers, and no frames. In
training mode a clip is normalised as a whole, after removal of its linear trend, as in the release.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import preprocessing
from ..output import Output

NAME = "me-rppg"
CITATION = (
    "K. Wang, J. Tang, Y. Fan, J. Ji, Y. Shi and Y. Wang, Memory-efficient low-latency remote "
    "photoplethysmography through temporal-spatial state space duality, arXiv:2504.01774, 2025"
)
CAUSAL = True  # outside of training
SIZE = 36
FRAMES = 160
TARGET = "wave"
# Layers of the authors' package open-rppg 0.1.0 (`InfinitePulse`), at 36×36. Its weights are arrays of Keras
# without names, so there is no layout to import. The training code is not public, so there is no `TRAINING`.
REFERENCE_PARAMETERS = 604_909
BLOCKS, UNITS, WIDTH = 4, 2, 32
STATES = 128  # of a Mamba-2 layer, per channel
UNIT_KERNEL, HEAD_KERNEL = 12, 4  # of the short convolutions, in frames
HALF_LIFE = 80  # of the running mean and variance, in frames: half a clip
DROPOUT = 0.5
EPS = 2e-6
STREAM_FRAMES = 64  # that pass the layers at once
STEP_RANGE = (1e-3, 0.1)  # of the initial time steps, as in Mamba-2; those of the release are not public


class Moments(NamedTuple):
    """Running mean and variance of every pixel, (B,C,H,W)."""

    mean: Tensor
    variance: Tensor


class Memory(NamedTuple):
    """The state of a Mamba-2 layer."""

    state: Tensor  # (B,heads,p,n)
    recent: Tensor  # (B,kernel−1,channels) inputs of the short convolution


class GaussianDropout(nn.Dropout):
    """Multiplies by noise with mean 1 and the variance p / (1 − p)."""

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return x
        return x * (1 + math.sqrt(self.p / (1 - self.p)) * torch.randn_like(x))


class StateSpace(nn.Module):
    """A Mamba-2 layer: one scalar decay for each head (Dao and Gu, ICML 2024)."""

    def __init__(self, width: int, head: int, kernel: int) -> None:
        super().__init__()
        self.inner, self.kernel, self.heads = 2 * width, kernel, 2 * width // head
        mixed = self.inner + 2 * STATES
        self.in_proj = nn.Linear(width, self.inner + mixed + self.heads, bias=False)
        self.conv = nn.Conv1d(mixed, mixed, kernel, groups=mixed)
        begin = torch.exp(torch.empty(self.heads).uniform_(*(math.log(limit) for limit in STEP_RANGE)))
        self.step_bias = nn.Parameter(begin + torch.log(-torch.expm1(-begin)))  # inverse of softplus
        self.log_decay = nn.Parameter(torch.empty(self.heads).uniform_(1, 16).log())
        self.skip = nn.Parameter(torch.ones(self.heads, 1))
        self.scale = nn.Parameter(torch.ones(self.inner))
        self.out_proj = nn.Linear(self.inner, width, bias=False)

    def initial_state(self, batch: int) -> Memory:
        like = self.skip
        state = like.new_zeros(batch, self.heads, self.inner // self.heads, STATES)
        return Memory(state, like.new_zeros(batch, self.kernel - 1, self.inner + 2 * STATES))

    def forward(self, x: Tensor, memory: Memory) -> tuple[Tensor, Memory]:  # (B,T,D)
        gate, mixed, step = self.in_proj(x).split([self.inner, self.inner + 2 * STATES, self.heads], -1)
        sequence = torch.cat([memory.recent, mixed], 1)
        mixed = F.silu(self.conv(sequence.transpose(1, 2)).transpose(1, 2))
        value, into, out = mixed.split([self.inner, STATES, STATES], -1)
        value = value.unflatten(-1, (self.heads, -1))  # (B,T,h,p)
        step = F.softplus(step + self.step_bias)  # (B,T,h)
        y, state = dual_scan(value * step[..., None], -self.log_decay.exp() * step, into, out, memory.state)
        y = (y + self.skip * value).flatten(2) * F.silu(gate)
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-5) * self.scale
        return self.out_proj(y), Memory(state, sequence[:, sequence.shape[1] - self.kernel + 1 :])


def dual_scan(
    value: Tensor, log_decay: Tensor, into: Tensor, out: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Return y[t] = out[t]·h[t] and the last h of h[t] = exp(log_decay[t]) h[t−1] + value[t] into[t]ᵀ.

    This is the quadratic form of the state space duality. `value` is (B,T,h,p), `log_decay` (B,T,h), `into`
    and `out` (B,T,n), `state` (B,h,p,n).
    """
    total = log_decay.cumsum(1).transpose(1, 2)  # (B,h,T)
    later = torch.ones(total.shape[-1], total.shape[-1], dtype=torch.bool, device=total.device).triu(1)
    decay = (total[..., :, None] - total[..., None, :]).masked_fill(later, -math.inf).exp()  # (B,h,T,T)
    scores = (out @ into.transpose(1, 2))[:, None] * decay
    values = value.transpose(1, 2)  # (B,h,T,p)
    before = out[:, None] @ state.transpose(2, 3) * total.exp()[..., None]  # (B,h,T,p)
    kept = (total[..., -1:] - total).exp()  # (B,h,T)
    new = (values * kept[..., None]).transpose(2, 3) @ into[:, None] + state * total[..., -1:, None].exp()
    return (scores @ values + before).transpose(1, 2), new


class Unit(nn.Module):
    """Temporal normalisation, a convolution whose mean drives a Mamba-2 layer, and a second convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)
        self.widen = nn.Linear(WIDTH, 2 * WIDTH)
        self.drop = GaussianDropout(DROPOUT)
        self.over_time = StateSpace(2 * WIDTH, WIDTH, UNIT_KERNEL)
        self.narrow = nn.Linear(2 * WIDTH, WIDTH, bias=False)
        self.second = nn.Conv2d(WIDTH, WIDTH, 3, padding=1)

    def forward(self, x: Tensor, moments: Moments, memory: Memory) -> tuple[Tensor, Moments, Memory]:
        """Return the features of frames (B,T,C,H,W) and the new state."""
        if self.training:
            x = clip_normalised(x)
        else:
            x, moments = running_normalised(x, moments)
        batch = len(x)
        wide = self.widen(self.first(x.flatten(0, 1)).movedim(1, -1)).relu()  # (B·T,H,W,2C)
        mean = self.drop(wide.mean((1, 2)).unflatten(0, (batch, -1)))
        mixed, memory = self.over_time(mean, memory)
        x = x + self.narrow(mixed)[..., None, None]
        return self.second(x.flatten(0, 1)).relu().unflatten(0, (batch, -1)), moments, memory


def clip_normalised(x: Tensor) -> Tensor:
    """Return a clip (B,T,…) without its linear trend, over the standard deviation of every pixel."""
    t = torch.linspace(-0.5, 0.5, x.shape[1], device=x.device).view(1, -1, *[1] * (x.ndim - 2))
    slope = (t * x).sum(1, keepdim=True) / t.square().sum()
    x = x - x.mean(1, keepdim=True) - slope * t
    return x * torch.rsqrt(x.square().mean(1, keepdim=True) + EPS)


def running_normalised(x: Tensor, moments: Moments) -> tuple[Tensor, Moments]:
    """Return frames (B,T,…) over their running standard deviation, limited to ±3, and the new moments."""
    share, (mean, variance) = 1 - 2 ** (-1 / HALF_LIFE), moments
    parts = []
    for frame in x.unbind(1):
        variance = variance + share * ((frame - mean).square() - variance)
        mean = mean + share * (frame - mean)
        parts.append(3 * torch.tanh((frame - mean) * torch.rsqrt(variance + EPS) / 3))
    return torch.stack(parts, 1), Moments(mean, variance)


class Block(nn.Module):
    """Two units with a residual connection, then a convolution that halves the picture."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.enter = nn.Linear(channels, WIDTH, bias=False)
        self.units = nn.ModuleList(Unit() for _ in range(UNITS))
        self.halve = nn.Conv2d(WIDTH, WIDTH, 2, stride=2)

    def forward(self, x: Tensor, state: list[Any]) -> tuple[Tensor, list[Any]]:  # (B,T,C,H,W)
        entered = self.enter(x.movedim(2, -1)).movedim(-1, 2)
        x, new = entered, []
        for unit, (moments, memory) in zip(self.units, state, strict=True):
            x, moments, memory = unit(x, moments, memory)
            new.append((moments, memory))
        x = (x + entered).flatten(0, 1)
        x = F.pad(x, (0, x.shape[-1] % 2, 0, x.shape[-2] % 2))
        return self.halve(x).unflatten(0, (len(entered), -1)), new


class MeRppg(nn.Module):
    def __init__(self, size: int = SIZE) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=16)
        self.blocks = nn.ModuleList(Block(WIDTH if index else 3) for index in range(BLOCKS))
        self.enter = nn.Linear(WIDTH, WIDTH, bias=False)
        self.drop = GaussianDropout(DROPOUT)
        self.heads = nn.ModuleList(StateSpace(WIDTH, WIDTH, HEAD_KERNEL) for _ in range(2))
        self.out = nn.Linear(WIDTH, 1)

    def initial_state(self, batch: int) -> list[Any]:
        """Return the state before the first frame: of all units, then of both last layers."""
        memories = iter([m.initial_state(batch) for m in self.modules() if isinstance(m, StateSpace)])
        state: list[Any] = []
        side = self.size
        for _ in range(BLOCKS):
            zeros = self.out.weight.new_zeros(batch, WIDTH, side, side)
            state.append([(Moments(zeros, zeros + 1e-5), next(memories)) for _ in range(UNITS)])
            side = -(-side // 2)
        return [*state, list(memories)]

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size, min_frames=1)
        state = self.initial_state(len(frames))
        if self.training:
            return self._run(state, frames)[1]
        parts = []
        for part in frames.split(STREAM_FRAMES, 1):
            state, out = self._run(state, part)
            parts.append(out)
        latent = torch.cat([part.latent for part in parts if part.latent is not None], 1)
        return Output(torch.cat([part.wave for part in parts], 1), latent)

    def step(self, state: list[Any], pixels: Tensor) -> tuple[list[Any], Output]:
        """Return the new state and the wave of the next frames (B,T,H,W,3)."""
        return self._run(state, preprocessing.frames_of(pixels, size=self.size, min_frames=1))

    def _run(self, state: list[Any], frames: Tensor) -> tuple[list[Any], Output]:
        x, new = frames / 255, []
        for block, old in zip(self.blocks, state[:-1], strict=True):
            x, after = block(x, old)
            new.append(after)
        latent, heads = self.drop(self.enter(x.mean((-1, -2)))), []  # (B,T,C)
        for head, old in zip(self.heads, state[-1], strict=True):
            latent, after = head(latent, old)
            heads.append(after)
        return [*new, heads], Output(self.out(latent)[..., 0], latent)


def build(**overrides: Any) -> MeRppg:
    """Build ME-rPPG for crops of `size` pixels; the parameters do not depend on the size."""
    return MeRppg(**preprocessing.options_of(MeRppg, NAME, overrides))
