"""RhythmFormer: sparse attention between similar regions of space and time.

A stem fuses each frame with the differences around it. Three stages work at 1/2, 1/4 and 1/8 of the frame
rate. In each stage, a region of the grid attends only to the regions whose mean key is most similar to its
own mean query. Heart beats are similar regions at different times.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import ArgumentError
from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining
from .tdc import TemporalDifferenceConv

NAME = "rhythmformer"
CITATION = (
    "B. Zou, Z. Guo, J. Chen, J. Zhuo, W. Huang and H. Ma, RhythmFormer: extracting patterned rPPG "
    "signals based on periodic sparse attention, Pattern Recognition 2025"
)
CAUSAL = False
SIZE = 128
FRAMES = 160
# Label (Standardized) of the rPPG-Toolbox's PURE_PURE_UBFC-rPPG_RHYTHMFORMER_BASIC.yaml.
TARGET = "wave"
# rPPG-Toolbox, contributed by the authors: configs/train_configs/PURE_PURE_UBFC-rPPG_RHYTHMFORMER_BASIC.yaml,
# trainer/RhythmFormerTrainer.py (AdamW without decay, OneCycleLR) and loss/RythmFormerLossComputer.py.
TRAINING = PublishedTraining(
    source="rPPG-Toolbox, PURE_PURE_UBFC-rPPG_RHYTHMFORMER_BASIC.yaml and RhythmFormerTrainer.py",
    loss="rhythmformer", target="wave", optimiser="adamw", lr=9e-3, schedule="one-cycle", epochs=30, batch=4,
    frames=160, size=128, pixels="Standardized", selection="validation",
)  # fmt: skip
# 3.25 M, as the paper prints. The authors' release has 74,880 more: six projections that its forward pass
# never calls, which are left out here.
REFERENCE_PARAMETERS = 3_251_137
REGIONS = 4  # regions along each side of the frame
THETA = 0.2


class FusionStem(nn.Module):
    """Fuse each frame twice with the four differences between the five frames around it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.plain, self.change = self._entry(3, width), self._entry(12, width)
        self.mix_plain, self.mix_change = self._mix(width), self._mix(width)

    @staticmethod
    def _entry(inside: int, width: int) -> nn.Sequential:
        conv = nn.Conv2d(inside, width, 5, stride=2, padding=2)
        return nn.Sequential(conv, nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1))

    @staticmethod
    def _mix(width: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())

    def forward(self, frames: Tensor) -> Tensor:  # (B,T,3,H,W) -> (B,C,T,H/4,W/4)
        count = frames.shape[1]
        place = torch.arange(count, device=frames.device)
        around = [frames[:, (place + step).clamp(0, count - 1)] for step in range(-2, 3)]
        changes = torch.cat([later - earlier for earlier, later in pairwise(around)], dim=2)
        change = self.change(changes.flatten(0, 1))  # (B·T,12,H,W) -> (B·T,C,H/4,W/4)
        plain = self.mix_plain((self.plain(frames.flatten(0, 1)) + change) / 2)
        fused = (plain + self.mix_change(change)) / 2
        return fused.unflatten(0, (-1, count)).transpose(1, 2)


class RoutedAttention(nn.Module):
    """Attention from each region to the `top` most similar regions."""

    def __init__(self, width: int, heads: int, span: int, top: int) -> None:
        super().__init__()
        self.heads, self.span, self.top = heads, span, top
        self.query = nn.Sequential(TemporalDifferenceConv(width, THETA), nn.BatchNorm3d(width))
        self.key = nn.Sequential(TemporalDifferenceConv(width, THETA), nn.BatchNorm3d(width))
        self.value = nn.Conv3d(width, width, 1, bias=False)
        self.local = nn.Conv3d(width, width, 3, padding=1, groups=width)
        self.out = nn.Conv3d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:  # (B,C,t,h,w) -> same
        batch, width, t, h, w = x.shape
        cells = (self.span, max(h // REGIONS, 1), max(w // REGIONS, 1))
        counts = (t // cells[0], h // cells[1], w // cells[2])
        value = self.value(x)
        query, key, values = (_regions(part, counts, cells) for part in (self.query(x), self.key(x), value))
        # Mean query and mean key select the regions, without gradient.
        similarity = query.detach().mean(2) @ key.detach().mean(2).transpose(1, 2)  # (B,R,R)
        chosen = similarity.topk(min(self.top, similarity.shape[-1]), dim=-1).indices  # (B,R,K)
        clip = torch.arange(batch, device=x.device).view(-1, 1, 1)
        key, values = key[clip, chosen].flatten(2, 3), values[clip, chosen].flatten(2, 3)  # (B,R,K·n,C)
        query, key, values = (
            part.unflatten(-1, (self.heads, -1)).transpose(2, 3) for part in (query, key, values)
        )
        scores = (query @ key.transpose(-1, -2) * width**-0.5).softmax(-1)  # (B,R,heads,n,K·n)
        mixed = (scores @ values).transpose(2, 3).flatten(-2)  # (B,R,n,C)
        out: Tensor = self.out(_grid(mixed, counts, cells) + self.local(value))
        return out


def _regions(x: Tensor, counts: tuple[int, int, int], cells: tuple[int, int, int]) -> Tensor:
    """(B,C,t,h,w) -> (B,R,n,C): R regions of n cells."""
    batch, width = x.shape[:2]
    x = x.reshape(batch, width, counts[0], cells[0], counts[1], cells[1], counts[2], cells[2])
    return x.permute(0, 2, 4, 6, 3, 5, 7, 1).flatten(4, 6).flatten(1, 3)


def _grid(x: Tensor, counts: tuple[int, int, int], cells: tuple[int, int, int]) -> Tensor:
    """(B,R,n,C) -> (B,C,t,h,w)."""
    x = x.unflatten(2, cells).unflatten(1, counts).permute(0, 7, 1, 4, 2, 5, 3, 6)
    return x.flatten(6, 7).flatten(4, 5).flatten(2, 3)


class Block(nn.Module):
    def __init__(self, width: int, heads: int, span: int, top: int, ratio: float) -> None:
        super().__init__()
        hidden = int(width * ratio)
        self.attention = nn.Sequential(nn.BatchNorm3d(width), RoutedAttention(width, heads, span, top))
        self.mlp = nn.Sequential(
            nn.BatchNorm3d(width),
            nn.Conv3d(width, hidden, 1),
            nn.BatchNorm3d(hidden),
            nn.GELU(),
            nn.Conv3d(hidden, hidden, 3, padding=1),
            nn.BatchNorm3d(hidden),
            nn.GELU(),
            nn.Conv3d(hidden, width, 1),
            nn.BatchNorm3d(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        return x + self.mlp(x)


def _stage(width: int, heads: int, slower: int, depth: int, top: int, ratio: float) -> nn.Sequential:
    """Return a stage: downsample to 1/slower of the frame rate, transformer blocks, upsample."""
    halvings = slower.bit_length() - 1
    down = [
        nn.Sequential(nn.BatchNorm3d(width), nn.Conv3d(width, width, (2, 1, 1), stride=(2, 1, 1)))
        for _ in range(halvings)
    ]
    blocks = [Block(width, heads, max(4 // slower, 1), top, ratio) for _ in range(depth)]
    up = [
        nn.Sequential(
            nn.Upsample(scale_factor=(2, 1, 1)),
            nn.Conv3d(width, width, (3, 1, 1), padding=(1, 0, 0)),
            nn.BatchNorm3d(width),
            nn.ELU(),
        )
        for _ in range(halvings)
    ]
    return nn.Sequential(*down, *blocks, *up)


class RhythmFormer(nn.Module):
    def __init__(
        self,
        size: int = SIZE,
        width: int = 64,
        heads: int = 4,
        depth: int = 2,
        top: int = 40,
        ratio: float = 1.5,
    ) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=32, multiple=32 if size < 128 else 64)
        if width % heads:
            raise ArgumentError("width", width, f"a multiple of heads={heads}")
        self.stem = FusionStem(width)
        self.patches = nn.Conv3d(width, width, (1, 4, 4), stride=(1, 4, 4))
        self.stages = nn.Sequential(
            *(_stage(width, heads, slower, depth, top, ratio) for slower in (2, 4, 8))
        )
        self.head = nn.Conv1d(width, 1, 1)

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size, min_frames=8, frames_multiple=8)
        x = self.patches(self.stem(preprocessing.standardise(frames)))  # (B,C,T,H/16,W/16)
        latent = self.stages(x).mean((-1, -2))  # (B,C,T)
        return Output(self.head(latent).squeeze(1), latent.transpose(1, 2))


def _published_names() -> dict[str, str]:
    stem = {"plain": "stem11", "change": "stem12", "mix_plain": "stem21", "mix_change": "stem22"}
    names = {f"stem.{ours}": f"Fusion_Stem.{theirs}" for ours, theirs in stem.items()}
    names |= {"patches": "patch_embedding", "head": "ConvBlockLast"}
    parts = {"query": "proj_q", "key": "proj_k", "value": "proj_v.0", "local": "lepe", "out": "output_linear"}
    for stage, halvings in enumerate((1, 2, 3)):
        for index in range(halvings):
            names[f"stages.{stage}.{index}"] = f"stages.{stage}.downsample_layers.{index}"
            names[f"stages.{stage}.{halvings + 2 + index}"] = f"stages.{stage}.upsample_layers.{index}"
        for index in range(2):
            ours, theirs = f"stages.{stage}.{halvings + index}", f"stages.{stage}.blocks.{index}"
            names |= {f"{ours}.attention.0": f"{theirs}.norm1", f"{ours}.mlp.0": f"{theirs}.norm2"}
            names |= {f"{ours}.attention.1.{mine}": f"{theirs}.attn.{part}" for mine, part in parts.items()}
            names |= {f"{ours}.mlp.{part + 1}": f"{theirs}.mlp.{part}" for part in (0, 1, 3, 4, 6, 7)}
    return names


PUBLISHED_LAYOUT = PublishedLayout(
    _published_names(), ignored=("*.attn.qkv_linear.weight", "*.attn.qkv_linear.bias")
)


def build(**overrides: Any) -> RhythmFormer:
    """Build RhythmFormer for crops of 32 pixels or steps of 64, clips in steps of eight frames."""
    return RhythmFormer(**preprocessing.options_of(RhythmFormer, NAME, overrides))
