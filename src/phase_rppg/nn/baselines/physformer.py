"""PhysFormer: tubes of video as tokens, and attention whose queries and keys are temporal differences.

A convolutional stem, tube tokens of 4 frames × 4×4 cells, twelve transformer blocks in which queries and
keys come from temporal difference convolutions and the feed-forward part has a depthwise 3-D convolution,
then two temporal upsamplings and the mean over space.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from ...errors import ArgumentError
from .. import preprocessing
from ..output import Output
from .tdc import TemporalDifferenceConv

NAME = "physformer"
CITATION = (
    "Z. Yu, Y. Shen, J. Shi, H. Zhao, P. Torr and G. Zhao, PhysFormer: facial video-based physiological "
    "measurement with temporal difference transformer, CVPR 2022"
)
CAUSAL = False
SIZE = 128
FRAMES = 160
# Input and label (DiffNormalized) of the rPPG-Toolbox's PURE_PURE_UBFC-rPPG_PHYSFORMER_BASIC.yaml.
# The authors' release takes plain pixels and the wave itself.
TARGET = "difference"  # the slope of the pulse
# Layer sizes of the authors' release (width 96, 12 blocks, 4 heads, feed-forward 144): 7.38 M; the paper
# prints 7.03 M.
REFERENCE_PARAMETERS = 7_380_865
SHARPNESS = 2.0  # what the attention scores are divided by, in place of √d


class Attention(nn.Module):
    """Multi-head attention over tubes; queries and keys are temporal differences."""

    def __init__(self, width: int, heads: int, theta: float, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Sequential(TemporalDifferenceConv(width, theta), nn.BatchNorm3d(width))
        self.key = nn.Sequential(TemporalDifferenceConv(width, theta), nn.BatchNorm3d(width))
        self.value = nn.Conv3d(width, width, 1, bias=False)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # (B,C,t,h,w) -> (B,N,C), N = t·h·w
        query, key, value = (self._split(part(x)) for part in (self.query, self.key, self.value))
        scores = (query @ key.transpose(-1, -2) / SHARPNESS).softmax(-1)  # (B,heads,N,N)
        mixed = (self.drop(scores) @ value).transpose(1, 2).flatten(2)
        return self.drop(self.out(mixed))

    def _split(self, x: Tensor) -> Tensor:  # (B,C,t,h,w) -> (B,heads,N,C/heads)
        return x.flatten(2).unflatten(1, (self.heads, -1)).transpose(-1, -2)


class Block(nn.Module):
    def __init__(self, width: int, hidden: int, heads: int, theta: float, dropout: float) -> None:
        super().__init__()
        self.norm_attention, self.norm_mlp = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attention = Attention(width, heads, theta, dropout)
        self.mlp = nn.Sequential(
            nn.Conv3d(width, hidden, 1, bias=False),
            nn.BatchNorm3d(hidden),
            nn.ELU(),
            nn.Conv3d(hidden, hidden, 3, padding=1, groups=hidden, bias=False),
            nn.BatchNorm3d(hidden),
            nn.ELU(),
            nn.Conv3d(hidden, width, 1, bias=False),
            nn.BatchNorm3d(width),
        )
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # (B,C,t,h,w) -> same
        grid = x.shape[2:]
        x = x + self.attention(_normed(self.norm_attention, x)).transpose(1, 2).unflatten(2, grid)
        return x + self.drop(self.mlp(_normed(self.norm_mlp, x)))


def _normed(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    """Layer norm over channels of (B,C,t,h,w)."""
    normed: Tensor = norm(x.movedim(1, -1)).movedim(-1, 1)
    return normed


class PhysFormer(nn.Module):
    def __init__(
        self,
        size: int = SIZE,
        width: int = 96,
        hidden: int = 144,
        depth: int = 12,
        heads: int = 4,
        theta: float = 0.7,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=32, multiple=32)
        if width % 4 or width % heads:
            raise ArgumentError("width", width, f"a multiple of 4 and of heads={heads}")
        stem: list[nn.Module] = []
        for inside, outside in pairwise((3, width // 4, width // 2, width)):
            kernel, padding = ((1, 5, 5), (0, 2, 2)) if inside == 3 else ((3, 3, 3), (1, 1, 1))
            stem += [nn.Conv3d(inside, outside, kernel, padding=padding), nn.BatchNorm3d(outside)]
            stem += [nn.ReLU(), nn.MaxPool3d((1, 2, 2))]
        self.stem = nn.Sequential(*stem)
        self.tubes = nn.Conv3d(width, width, 4, stride=4)
        self.blocks = nn.Sequential(*(Block(width, hidden, heads, theta, dropout) for _ in range(depth)))
        self.rise = nn.Sequential(_rise(width, width), _rise(width, width // 2))
        self.head = nn.Conv1d(width // 2, 1, 1)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size, min_frames=4, frames_multiple=4)
        x = self.stem(preprocessing.channels_first(preprocessing.difference(frames)))  # (B,C,T,H/8,W/8)
        x = self.rise(self.blocks(self.tubes(x)))  # (B,C/2,T,H/32,W/32)
        latent = x.mean((-1, -2))  # (B,C/2,T)
        return Output(self.head(latent).squeeze(1), latent.transpose(1, 2))


def _rise(inside: int, outside: int) -> nn.Sequential:
    """Twice the frame rate: repeat each step, then smooth in time."""
    return nn.Sequential(
        nn.Upsample(scale_factor=(2, 1, 1)),
        nn.Conv3d(inside, outside, (3, 1, 1), padding=(1, 0, 0)),
        nn.BatchNorm3d(outside),
        nn.ELU(),
    )


def build(**overrides: Any) -> PhysFormer:
    """PhysFormer for crops of `size` pixels (steps of 32), clips in steps of four frames."""
    return PhysFormer(**preprocessing.options_of(PhysFormer, NAME, overrides))
