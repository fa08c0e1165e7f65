"""FactorizePhys: a small 3-D network with attention by non-negative matrix factorisation.

Frame differences, instance norms and unpadded 3×3×3 convolutions with tanh reduce the input to one cell. The
features are factorised (non-negative, rank 1, multiplicative updates) and multiplied by this approximation,
in training and, as in the published configurations (`MD_INFERENCE: True`), at inference.

The paper factorises a matrix of time × (channels and cells). The release takes the values of the features in
their order in memory, channel by channel, as that matrix, so its rows are not frames. Published weights
were trained like this, and this network does the same.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining

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
# rPPG-Toolbox, contributed by the authors: configs/train_configs/PURE_iBVP_FactorizePhys_FSAM_Res.yaml and
# trainer/FactorizePhysTrainer.py (negative Pearson correlation, Adam, OneCycleLR).
TRAINING = PublishedTraining(
    source="rPPG-Toolbox, PURE_iBVP_FactorizePhys_FSAM_Res.yaml and FactorizePhysTrainer.py",
    loss="pearson", target="wave", lr=1e-3, schedule="one-cycle", epochs=10, batch=4, frames=160, size=72,
    pixels="Raw",
)  # fmt: skip
# Layer sizes of the authors' release (8, 12, 16 channels): 52,168 weights and the one learnt offset.
REFERENCE_PARAMETERS = 52_169
WIDTHS = (8, 12, 16)
UPDATES = 3  # MD_STEPS of the published configurations
TINY = 1e-6


class ConvTanh(nn.Module):
    """Convolution, tanh and instance norm, padded in time; `padded` also pads in space."""

    def __init__(self, inside: int, outside: int, *, stride: int = 1, padded: bool = False) -> None:
        super().__init__()
        edge = int(padded)
        self.conv = nn.Conv3d(inside, outside, 3, (1, stride, stride), (1, edge, edge), bias=False)
        self.norm = nn.InstanceNorm3d(outside)

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = self.norm(self.conv(x).tanh())
        return normed


class Factorisation(nn.Module):
    """Attention over time, space and channels by a factorisation of features ≥ 0."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before = nn.Conv3d(width, width // 2, 1)
        self.between = nn.Conv3d(width // 2, width // 2, 1, bias=False)
        self.after = nn.Conv3d(width // 2, width, 1, bias=False)
        for conv in (self.before, self.between, self.after):
            nn.init.normal_(conv.weight, std=(2 / conv.out_channels) ** 0.5)

    def forward(self, x: Tensor) -> Tensor:  # (B,C,T,h,w) -> same
        x = self.before(x).relu().contiguous()
        matrix = x.view(x.shape[0], x.shape[2], -1)  # (B,T,N) in the order of (B,C,T,h,w), as the release
        mask: Tensor = self.after(self.between(factorise(matrix).view(x.shape)).relu())
        return mask


def factorise(series: Tensor) -> Tensor:
    """Return the rank-1 non-negative approximation of (B,T,N); the factor of length T has no gradient."""
    with torch.no_grad():
        course = torch.full_like(series[..., :1], series.shape[1] ** -0.5)  # (B,T,1)
        weights = torch.ones_like(series[:, :1].transpose(1, 2))  # (B,N,1)
        for _ in range(UPDATES):
            weights = _update(series.transpose(1, 2), course, weights)
            course = _update(series, weights, course)
    weights = _update(series.transpose(1, 2), course, weights)
    return course @ weights.transpose(1, 2)


def _update(data: Tensor, fixed: Tensor, moving: Tensor) -> Tensor:
    """Return one multiplicative update of `moving` in data ≈ moving · fixedᵀ."""
    return moving * (data @ fixed) / (moving @ (fixed.transpose(1, 2) @ fixed) + TINY)


class FactorizePhys(nn.Module):
    def __init__(self, size: int = SIZE, dropout: float = 0.1, factorise_inference: bool = True) -> None:
        super().__init__()
        self.factorise_inference = factorise_inference
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
        if self.training or self.factorise_inference:
            mask = self.factorisation(_from_zero(x))
            x = x + self.mask_norm((_from_zero(x) + self.offset) * (_from_zero(mask) + self.offset))
        wave = self.head(x).mean((-1, -2)).squeeze(1)  # 1×1 at the published size
        return Output(wave, x.mean((-1, -2)).transpose(1, 2))


def _from_zero(x: Tensor) -> Tensor:
    """Return each clip minus its minimum."""
    return x - x.amin((1, 2, 3, 4), keepdim=True)


def _published_names() -> dict[str, str]:
    body, head = "rppg_feature_extractor.FeatureExtractor", "rppg_head"
    names = {f"body.{index}.conv": f"{body}.{index}.conv_block_3d.0" for index in (0, 1, 2, 4, 5, 6)}
    names |= {f"body.{index + 8}.conv": f"{head}.conv_block.{index}.conv_block_3d.0" for index in range(3)}
    names |= {f"head.{index}.conv": f"{head}.final_layer.{index}.conv_block_3d.0" for index in range(2)}
    return names | {
        "head.2": f"{head}.final_layer.2",
        "factorisation.before": f"{head}.fsam.pre_conv_block.0",
        "factorisation.between": f"{head}.fsam.post_conv_block.0.conv",
        "factorisation.after": f"{head}.fsam.post_conv_block.1",
        "offset": f"{head}.bias1",
    }


# On a GPU the release does not register its offset, so files trained there lack it. It is initially 1.
PUBLISHED_LAYOUT = PublishedLayout(_published_names(), optional=frozenset({"rppg_head.bias1"}))


def build(**overrides: Any) -> FactorizePhys:
    """Build FactorizePhys for crops of `size` pixels (71 or more).

    `factorise_inference` is `MD_INFERENCE` of the release.
    """
    return FactorizePhys(**preprocessing.options_of(FactorizePhys, NAME, overrides))
