"""PhysFormer: a video transformer whose queries and keys are temporal differences.

A convolutional stem makes tube tokens of 4 frames × 4×4 cells. In twelve transformer blocks, queries and keys
come from temporal difference convolutions and the feed-forward part has a depthwise 3-D convolution. Two
temporal upsamplings and the mean over space follow.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from ...errors import ArgumentError
from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining
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
# The authors' repository ZitongYu/PhysFormer, train_Physformer_160_VIPL.py: Adam with decay 5e-5, α = 0.1 for
# the correlation, β = 5^(epoch/25) for the frequency terms, pixels (x − 127.5) / 128 and the wave itself. The
# learning rate halves every 50 epochs, which 25 epochs never reach. Loadtemporal_data.py mirrors clips, and
# enlarges them to 128–143 pixels, of which the centre is used. It also halves or doubles the rate of half of
# the first clips of each video, which is not done here. The rPPG-Toolbox instead trains 10 epochs with
# α = β = 1 on differences (PURE_PURE_UBFC-rPPG_PHYSFORMER_BASIC.yaml, PhysFormerTrainer.py).
TRAINING = PublishedTraining(
    source="ZitongYu/PhysFormer, train_Physformer_160_VIPL.py",
    loss="physformer", target="wave", lr=1e-4, weight_decay=5e-5, epochs=25, batch=4, frames=160, size=128,
    pixels="(x − 127.5) / 128", flip=0.5, scale=(128 / 143, 1.0), options={"pixels": "centred"},
)  # fmt: skip
# Layer sizes of the authors' release (width 96, 12 blocks, 4 heads, feed-forward 144): 7.38 M; the paper
# prints 7.03 M.
REFERENCE_PARAMETERS = 7_380_865
# Input of the rPPG-Toolbox's configurations, or of the authors' release.
INPUTS = {"difference": preprocessing.difference, "centred": preprocessing.centred}
SHARPNESS = 2.0  # divisor of the attention scores, in place of √d


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
    """Apply a layer norm over the channels of (B,C,t,h,w)."""
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
        pixels: str = "difference",
    ) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=32, multiple=32)
        if pixels not in INPUTS:
            raise ArgumentError("pixels", pixels, " or ".join(INPUTS))
        self.normalise = INPUTS[pixels]
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
        self.upsample = nn.Sequential(_upsample(width, width), _upsample(width, width // 2))
        self.head = nn.Conv1d(width // 2, 1, 1)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size, min_frames=4, frames_multiple=4)
        x = self.stem(preprocessing.channels_first(self.normalise(frames)))  # (B,C,T,H/8,W/8)
        x = self.upsample(self.blocks(self.tubes(x)))  # (B,C/2,T,H/32,W/32)
        latent = x.mean((-1, -2))  # (B,C/2,T)
        return Output(self.head(latent).squeeze(1), latent.transpose(1, 2))


def _upsample(inside: int, outside: int) -> nn.Sequential:
    """Return a module that doubles the frame rate: repeat each step, then convolve in time."""
    return nn.Sequential(
        nn.Upsample(scale_factor=(2, 1, 1)),
        nn.Conv3d(inside, outside, (3, 1, 1), padding=(1, 0, 0)),
        nn.BatchNorm3d(outside),
        nn.ELU(),
    )


def _published_names() -> dict[str, str]:
    names = {f"stem.{4 * stage + part}": f"Stem{stage}.{part}" for stage in range(3) for part in (0, 1)}
    names |= {"tubes": "patch_embedding", "head": "ConvBlockLast"}
    for index, theirs in enumerate(("upsample", "upsample2")):
        names |= {f"upsample.{index}.{part}": f"{theirs}.{part}" for part in (1, 2)}
    parts = {"query": "attn.proj_q", "key": "attn.proj_k", "value": "attn.proj_v.0", "out": "proj"}
    for index in range(12):
        ours, theirs = f"blocks.{index}", f"transformer{index // 4 + 1}.blocks.{index % 4}"
        names |= {f"{ours}.norm_attention": f"{theirs}.norm1", f"{ours}.norm_mlp": f"{theirs}.norm2"}
        names |= {f"{ours}.attention.{mine}": f"{theirs}.{part}" for mine, part in parts.items()}
        for first, part in ((0, "fc1"), (3, "STConv"), (6, "fc2")):
            names |= {f"{ours}.mlp.{first + n}": f"{theirs}.pwff.{part}.{n}" for n in (0, 1)}
    return names


PUBLISHED_LAYOUT = PublishedLayout(_published_names())


def build(**overrides: Any) -> PhysFormer:
    """Build PhysFormer for crops of `size` pixels (steps of 32), clips in steps of four frames."""
    return PhysFormer(**preprocessing.options_of(PhysFormer, NAME, overrides))
