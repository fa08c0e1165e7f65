"""PhysMamba: a slow and a fast stream of temporal differences with bidirectional state space models.

Convolutions as in PhysNet, then a slow stream (a quarter of the frame rate, 64 channels) and a fast one
(half, 32 channels). Each has three blocks: temporal difference convolution, a bidirectional Mamba layer
over all cells in order of time, and channel attention. Lateral connections lead from fast to slow.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining
from .scan import selective_scan
from .tdc import TemporalDifferenceConv

NAME = "physmamba"
CITATION = (
    "C. Luo, Y. Xie and Z. Yu, PhysMamba: efficient remote physiological measurement with SlowFast "
    "temporal difference Mamba, CCBR 2024"
)
CAUSAL = False
SIZE = 128
FRAMES = 128
# Input and label (DiffNormalized) of the rPPG-Toolbox's PURE_PURE_UBFC-rPPG_PHYSMAMBA_BASIC.yaml.
TARGET = "difference"  # the slope of the pulse
# rPPG-Toolbox, contributed by the authors: configs/train_configs/PURE_PURE_UBFC-rPPG_PHYSMAMBA_BASIC.yaml and
# trainer/PhysMambaTrainer.py (negative Pearson correlation, Adam with decay 5e-4, OneCycleLR).
TRAINING = PublishedTraining(
    source="rPPG-Toolbox, PURE_PURE_UBFC-rPPG_PHYSMAMBA_BASIC.yaml and PhysMambaTrainer.py",
    loss="pearson", target="difference", lr=3e-3, schedule="one-cycle", weight_decay=5e-4, epochs=20, batch=4,
    frames=128, size=128, pixels="DiffNormalized", selection="validation",
)  # fmt: skip
# Layer sizes of the authors' release, as in the rPPG-Toolbox. The paper prints 0.56 M, which is this count
# without the 163,200 of the Mamba layers, which layer-based counters miss.
REFERENCE_PARAMETERS = 728_769
STATES = 16  # of the state space model, per channel
KERNEL = 4  # of its short convolution, in tokens
INITIAL_STD = 0.02  # of the weights of linear layers


def initialise(module: nn.Module) -> None:
    """Initialise all linear layers as the releases of PhysMamba and RhythmMamba do.

    They also reset the bias that Mamba gives to its steps, so all steps begin near softplus(0) = 0.69.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=INITIAL_STD)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)


class DirectionalScan(nn.Module):
    """One direction of a Mamba layer: a short causal convolution and a selective scan."""

    def __init__(self, width: int, rank: int, states: int = STATES) -> None:
        super().__init__()
        self.rank, self.states = rank, states
        self.conv = nn.Conv1d(width, width, KERNEL, groups=width, padding=KERNEL - 1)
        self.select = nn.Linear(width, rank + 2 * states, bias=False)
        self.step = nn.Linear(rank, width)
        self.log_decay = nn.Parameter(torch.arange(1, states + 1).float().log().repeat(width, 1))
        self.skip = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:  # (B,L,D) -> same
        x = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, into, out = self.select(x).split([self.rank, self.states, self.states], dim=-1)
        step = F.softplus(self.step(step))
        return selective_scan(x, step, -self.log_decay.exp(), into, out) + self.skip * x


class Mamba(nn.Module):
    """A gated selective state space model that scans the tokens in both directions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = 2 * width
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.forwards, self.backwards = (DirectionalScan(inner, math.ceil(width / 16)) for _ in range(2))
        self.out_proj = nn.Linear(inner, width, bias=False)
        initialise(self)

    def forward(self, x: Tensor) -> Tensor:  # (B,L,C) -> same
        x, gate = self.in_proj(x).chunk(2, dim=-1)
        scanned = self.forwards(x) + self.backwards(x.flip(1)).flip(1)
        out: Tensor = self.out_proj(scanned * F.silu(gate))
        return out


class MambaLayer(nn.Module):
    """A Mamba layer with a residual connection and norms before and after, on a grid of cells."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mamba = Mamba(width)

    def forward(self, x: Tensor) -> Tensor:  # (B,C,t,h,w) -> same
        tokens = x.flatten(2).transpose(1, 2)  # (B,t·h·w,C)
        tokens = self.after(tokens + self.mamba(self.before(tokens)))
        return tokens.transpose(1, 2).unflatten(2, x.shape[2:])


class ChannelAttention(nn.Module):
    """Scale channels by a function of their mean and their maximum over the clip."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.Conv3d(width, width // 2, 1, bias=False)
        self.up = nn.Conv3d(width // 2, width, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:  # (B,C,t,h,w) -> same
        mean, peak = x.mean((2, 3, 4), keepdim=True), x.amax((2, 3, 4), keepdim=True)
        return x * (self.up(self.down(mean).relu()) + self.up(self.down(peak).relu())).sigmoid()


def _block(width: int, theta: float) -> nn.Sequential:
    return nn.Sequential(
        TemporalDifferenceConv(width, theta),
        nn.BatchNorm3d(width),
        nn.ReLU(),
        MambaLayer(width),
        ChannelAttention(width),
    )


def _conv(
    inside: int, outside: int, kernel: tuple[int, int, int], stride: int = 1, act: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """Return convolution, batch norm and activation; strides are in time, strided kernels are not padded."""
    padding = (kernel[0] // 2, kernel[1] // 2, kernel[2] // 2) if stride == 1 else (0, 0, 0)
    conv = nn.Conv3d(inside, outside, kernel, stride=(stride, 1, 1), padding=padding)
    return nn.Sequential(conv, nn.BatchNorm3d(outside), act())


def _lateral(fast: int, slow: int) -> nn.Sequential:
    """Return the lateral connection from fast to slow: half the rate, twice the channels."""
    conv = nn.Conv3d(fast, slow, (3, 1, 1), stride=(2, 1, 1), padding=(1, 0, 0))
    return nn.Sequential(conv, nn.BatchNorm3d(slow), nn.ReLU())


class PhysMamba(nn.Module):
    def __init__(
        self, size: int = SIZE, theta: float = 0.5, dropout: tuple[float, float] = (0.25, 0.5)
    ) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=16)
        self.stem = nn.ModuleList(
            [_conv(3, 16, (1, 5, 5)), _conv(16, 32, (3, 3, 3)), _conv(32, 64, (3, 3, 3))]
        )
        self.to_slow, self.to_fast = _conv(64, 64, (4, 1, 1), stride=4), _conv(64, 32, (2, 1, 1), stride=2)
        self.slow = nn.ModuleList([_block(64, theta) for _ in range(3)])
        self.fast = nn.ModuleList([_block(32, theta) for _ in range(3)])
        self.lateral = nn.ModuleList([_lateral(32, 64) for _ in range(2)])
        self.fast_end = _conv(32, 32, (3, 1, 1), act=nn.ELU)
        self.slow_upsample = _conv(64, 64, (3, 1, 1), act=nn.ELU)
        self.upsample = _conv(96, 48, (3, 1, 1), act=nn.ELU)
        self.head = nn.Conv3d(48, 1, 1)
        self.pool, self.double_rate = nn.MaxPool3d((1, 2, 2)), nn.Upsample(scale_factor=(2, 1, 1))
        self.drops = nn.ModuleList([nn.Dropout(dropout[0]), nn.Dropout(dropout[1]), nn.Dropout(dropout[1])])

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size, min_frames=4, frames_multiple=4)
        x = self.pool(self.stem[0](preprocessing.channels_first(preprocessing.difference(frames))))
        x = self.pool(self.stem[2](self.stem[1](x)))  # (B,64,T,H/4,W/4)
        slow, fast = self.to_slow(x), self.to_fast(x)  # (B,64,T/4,…), (B,32,T/2,…)
        for index, lateral in enumerate(self.lateral):
            slow = self.drops[index](self.pool(self.slow[index](slow)))
            fast = self.drops[index](self.pool(self.fast[index](fast)))
            slow = slow + lateral(fast)
        slow = self.drops[2](self.slow_upsample(self.double_rate(self.slow[2](slow))))
        fast = self.drops[2](self.fast_end(self.fast[2](fast)))
        x = self.upsample(self.double_rate(torch.cat([fast, slow], dim=1)))  # (B,48,T,H/16,W/16)
        latent = x.mean((-1, -2), keepdim=True)  # (B,48,T,1,1)
        return Output(self.head(latent).flatten(1), latent.flatten(2).transpose(1, 2))


def _published_names() -> dict[str, str]:
    names = {f"stem.{index}": f"ConvBlock{index + 1}" for index in range(3)}
    names |= {
        "to_slow": "ConvBlock4",
        "to_fast": "ConvBlock5",
        "fast_end": "ConvBlock6",
        "head": "ConvBlockLast",
    }
    for ours, theirs in (
        ("slow_upsample", "upsample1"),
        ("upsample", "upsample2"),
    ):  # theirs begin with the upsampling
        names |= {f"{ours}.0": f"{theirs}.1", f"{ours}.1": f"{theirs}.2"}
    for index in range(2):
        names[f"lateral.{index}"] = f"fuse_{index + 1}.conv"
    for stream, first in (("slow", 1), ("fast", 4)):
        for index in range(3):
            ours, theirs = f"{stream}.{index}", f"Block{first + index}"
            names |= {f"{ours}.{part}": f"{theirs}.{part}" for part in (0, 1)}
            names |= {f"{ours}.3.before": f"{theirs}.3.norm1", f"{ours}.3.after": f"{theirs}.3.norm2"}
            names |= {f"{ours}.4.down": f"{theirs}.4.fc.0", f"{ours}.4.up": f"{theirs}.4.fc.2"}
            names |= {f"{ours}.3.mamba.in_proj": f"{theirs}.3.mamba.in_proj"}
            names |= {f"{ours}.3.mamba.out_proj": f"{theirs}.3.mamba.out_proj"}
            for way, end in (("forwards", ""), ("backwards", "_b")):
                scan, mamba = f"{ours}.3.mamba.{way}", f"{theirs}.3.mamba"
                names |= {f"{scan}.conv": f"{mamba}.conv1d{end}", f"{scan}.select": f"{mamba}.x_proj{end}"}
                names |= {f"{scan}.step": f"{mamba}.dt_proj{end}", f"{scan}.skip": f"{mamba}.D{end}"}
                names[f"{scan}.log_decay"] = f"{mamba}.A{end}_log"
    return names


PUBLISHED_LAYOUT = PublishedLayout(_published_names())


def build(**overrides: Any) -> PhysMamba:
    """Build PhysMamba for crops of `size` pixels (16 or more), clips in steps of four frames."""
    return PhysMamba(**preprocessing.options_of(PhysMamba, NAME, overrides))
