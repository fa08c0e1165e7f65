"""FactorizePhys: a very small 3-D network that learns to attend by factorising its own features.

Frame differences and instance norms, unpadded 3×3×3 convolutions down to one cell, tanh throughout. While
training, the features are factorised into one time course and its weights per channel and cell (non-
negative, rank 1, a few multiplicative updates); the approximation multiplies the features and so asks them
to share one rhythm. At inference the factorisation is left out, as the authors do.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .. import preprocessing
from ..output import Output

NAME = "factorizephys"
CITATION = (
    "J. Joshi, S. S. Agaian and Y. Cho, FactorizePhys: matrix factorization for multidimensional "
    "attention in remote physiological sensing, NeurIPS 2024"
)
CAUSAL = False
SIZE = 72
FRAMES = 160
# Label (Standardized) of the rPPG-Toolbox's PURE_iBVP_FactorizePhys_FSAM_Res.yaml.
TARGET = "wave"
# Layer sizes of the authors' release (8, 12, 16 channels): 52,168 weights and the one learnt offset.
REFERENCE_PARAMETERS = 52_169
WIDTHS = (8, 12, 16)
UPDATES = 4
TINY = 1e-6


class ConvTanh(nn.Module):
    """Convolution, tanh, instance norm: padded in time, in space only if asked."""

    def __init__(self, inside: int, outside: int, *, stride: int = 1, padded: bool = False) -> None:
        super().__init__()
        edge = int(padded)
        self.conv = nn.Conv3d(inside, outside, 3, (1, stride, stride), (1, edge, edge), bias=False)
        self.norm = nn.InstanceNorm3d(outside)

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.conv(x).tanh())
        return normed


class Factorisation(nn.Module):
    """Features (≥ 0) as one time course times its weights: a mask over time, space and channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before = nn.Conv3d(width, width // 2, 1)
        self.between = nn.Conv3d(width // 2, width // 2, 1, bias=False)
        self.after = nn.Conv3d(width // 2, width, 1, bias=False)
        for conv in (self.before, self.between, self.after):
            nn.init.normal_(conv.weight, std=(2 / conv.out_channels) ** 0.5)

    def forward(self, x: Tensor) -> Tensor:  # (B,C,T,h,w) -> same
        x = self.before(x).relu()
        series = x.movedim(2, 1).flatten(2)  # (B,T,N): columns are time courses
        mask = factorise(series).unflatten(2, (x.shape[1], *x.shape[3:])).movedim(1, 2)
        mask = self.after(self.between(mask).relu())
        return mask


def factorise(series: Tensor) -> Tensor:
    """The rank-1 non-negative approximation of (B,T,N); the time course is found without gradient."""
    with torch.no_grad():
        course = torch.full_like(series[..., :1], series.shape[1] ** -0.5)  # (B,T,1)
        weights = torch.ones_like(series[:, :1].transpose(1, 2))  # (B,N,1)
        for _ in range(UPDATES):
            weights = _update(series.transpose(1, 2), course, weights)
            course = _update(series, weights, course)
    weights = _update(series.transpose(1, 2), course, weights)
    return course @ weights.transpose(1, 2)


def _update(data: Tensor, fixed: Tensor, moving: Tensor) -> Tensor:
    """One multiplicative update of `moving` in data ≈ moving · fixedᵀ."""
    return moving * (data @ fixed) / (moving @ (fixed.transpose(1, 2) @ fixed) + TINY)


class FactorizePhys(nn.Module):
    def __init__(self, size: int = SIZE, dropout: float = 0.1) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=71)
        a, b, c = WIDTHS
        drop = nn.Dropout3d(dropout)
        self.norm = nn.InstanceNorm3d(3)
        self.body = nn.Sequential(
            ConvTanh(3, a, padded=True), ConvTanh(a, b, stride=2), ConvTanh(b, b), drop,
            ConvTanh(b, b), ConvTanh(b, c, stride=2), ConvTanh(c, c), drop,
            ConvTanh(c, c), ConvTanh(c, c), ConvTanh(c, c), drop,
        )  # fmt: skip
        self.factorisation = Factorisation(c)
        self.offset = nn.Parameter(torch.tensor(1.0))
        self.mask_norm = nn.InstanceNorm3d(c)
        self.head = nn.Sequential(
            ConvTanh(c, b), ConvTanh(b, a), nn.Conv3d(a, 1, 3, padding=(1, 0, 0), bias=False)
        )

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size, min_frames=4)
        # The last frame is repeated, so that there are as many differences as frames.
        change = torch.diff(frames, dim=1, append=frames[:, -1:])
        x = self.body(self.norm(preprocessing.channels_first(change)))  # (B,16,T,7,7)
        if self.training:
            mask = self.factorisation(_from_zero(x))
            x = x + self.mask_norm((_from_zero(x) + self.offset) * (_from_zero(mask) + self.offset))
        wave = self.head(x).mean((-1, -2)).squeeze(1)  # 1×1 at the published size
        return Output(wave, x.mean((-1, -2)).transpose(1, 2))


def _from_zero(x: Tensor) -> Tensor:
    """Each clip lifted until its lowest value is zero."""
    return x - x.amin((1, 2, 3, 4), keepdim=True)


def build(**overrides: Any) -> FactorizePhys:
    """FactorizePhys for crops of `size` pixels (71 or more)."""
    return FactorizePhys(**preprocessing.options_of(FactorizePhys, NAME, overrides))
