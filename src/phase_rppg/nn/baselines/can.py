"""Convolutional attention networks: the family of DeepPhys, TS-CAN and EfficientPhys.

Each frame passes two pairs of 3×3 convolutions, gated by soft attention masks. Two dense layers give one
value per frame. The networks differ in the input of the masks and in how consecutive frames are mixed.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...errors import ArgumentError
from ..output import Output

CHANNELS = (32, 64)
DENSE = 128
MIN_SIZE = 10


def soft_mask(gate: Tensor) -> Tensor:
    """Return attention (B,1,h,w) in 0–1, scaled so that the mask of each frame sums to half its area."""
    area = gate.shape[-1] * gate.shape[-2]
    return gate / gate.sum((-1, -2), keepdim=True) * (area / 2)


def temporal_shift(x: Tensor, frames: int, depth: int) -> Tensor:
    """Replace a third of the channels by those of the next frame and a third by those of the previous one.

    `x` is (B·T,C,h,w). Frames meet only inside windows of `depth` frames; beyond a window's edge is zero.
    """
    fold = x.shape[1] // 3
    clips = x.unflatten(0, (-1, frames))  # (B,T,C,h,w)
    ahead, behind, stay = clips.split([fold, fold, x.shape[1] - 2 * fold], dim=2)
    place = torch.arange(frames, device=x.device) % depth
    last = ((place == depth - 1) | (torch.arange(frames, device=x.device) == frames - 1)).view(1, -1, 1, 1, 1)
    first = (place == 0).view(1, -1, 1, 1, 1)
    ahead = ahead.roll(-1, dims=1).masked_fill(last, 0.0)
    behind = behind.roll(1, dims=1).masked_fill(first, 0.0)
    return torch.cat([ahead, behind, stay], dim=2).flatten(0, 1)


class Branch(nn.Module):
    """Two pairs of 3×3 convolutions; the second of each pair is unpadded."""

    def __init__(self) -> None:
        super().__init__()
        first, second = CHANNELS
        self.convs = nn.ModuleList(
            [
                nn.Conv2d(3, first, 3, padding=1),
                nn.Conv2d(first, first, 3),
                nn.Conv2d(first, second, 3, padding=1),
                nn.Conv2d(second, second, 3),
            ]
        )

    def pair(self, index: int, x: Tensor, *, frames: int, depth: int | None) -> Tensor:
        for conv in self.convs[2 * index : 2 * index + 2]:
            if depth is not None:
                x = temporal_shift(x, frames, depth)
            x = conv(x).tanh()
        return x


class ConvAttention(nn.Module):
    """The shared body: motion features gated by attention, then a dense head per frame."""

    def __init__(
        self, size: int, *, appearance: bool, depth: int | None, dropout: tuple[float, float]
    ) -> None:
        super().__init__()
        if depth is not None and depth < 2:
            raise ArgumentError("depth", depth, "at least 2 frames per shift window")
        self.depth = depth
        self.motion = Branch()
        self.appearance = Branch() if appearance else None
        self.masks = nn.ModuleList([nn.Conv2d(channels, 1, 1) for channels in CHANNELS])
        self.pool = nn.AvgPool2d(2)
        self.drop, self.drop_dense = nn.Dropout(dropout[0]), nn.Dropout(dropout[1])
        side = ((size - 2) // 2 - 2) // 2
        self.dense = nn.Linear(CHANNELS[1] * side * side, DENSE)
        self.out = nn.Linear(DENSE, 1)

    def forward(self, motion: Tensor, appearance: Tensor | None = None) -> Output:
        batch, frames = motion.shape[:2]
        m = motion.flatten(0, 1)  # (B,T,3,H,W) -> (B·T,3,H,W)
        a = appearance.flatten(0, 1) if appearance is not None else None
        mask = m  # replaced in the loop
        for index in range(2):
            m = self.motion.pair(index, m, frames=frames, depth=self.depth)
            if a is not None and self.appearance is not None:
                a = self.appearance.pair(index, a, frames=frames, depth=None)
            mask = soft_mask(self.masks[index](m if a is None else a).sigmoid())
            m = self.drop(self.pool(m * mask))
            if a is not None and index == 0:
                a = self.drop(self.pool(a))
        latent = self.dense(m.flatten(1)).tanh()  # (B·T,128)
        wave = self.out(self.drop_dense(latent)).view(batch, frames)
        shares = (mask / mask.sum((-1, -2), keepdim=True)).unflatten(0, (batch, frames))  # (B,T,1,h,w)
        return Output(wave, latent.view(batch, frames, -1), shares)


def published_names(*, appearance: bool) -> dict[str, str]:
    """Return our name → published name of the layers; the release spells "apperance"."""
    names = {f"body.motion.convs.{index}": f"motion_conv{index + 1}" for index in range(4)}
    names |= {f"body.masks.{index}": f"apperance_att_conv{index + 1}" for index in range(2)}
    if appearance:
        names |= {f"body.appearance.convs.{index}": f"apperance_conv{index + 1}" for index in range(4)}
    return names | {"body.dense": "final_dense_1", "body.out": "final_dense_2"}
