"""PhysNet: a 3-D convolutional encoder–decoder in time.

The encoder–decoder version of the paper: nine convolution blocks with max pooling in space and time down to
a quarter of the frame rate, two transposed convolutions in time, the mean over space, one value per frame.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining

NAME = "physnet"
CITATION = (
    "Z. Yu, X. Li and G. Zhao, Remote photoplethysmograph signal measurement from facial videos using "
    "spatio-temporal networks, BMVC 2019"
)
CAUSAL = False
SIZE = 72
FRAMES = 128
# Input and label (DiffNormalized) of the rPPG-Toolbox's PURE_PURE_UBFC-rPPG_PHYSNET_BASIC.yaml.
TARGET = "difference"  # the slope of the pulse
# rPPG-Toolbox: configs/train_configs/PURE_PURE_UBFC-rPPG_PHYSNET_BASIC.yaml and trainer/PhysnetTrainer.py
# (negative Pearson correlation, Adam, OneCycleLR).
TRAINING = PublishedTraining(
    source="rPPG-Toolbox, PURE_PURE_UBFC-rPPG_PHYSNET_BASIC.yaml and PhysnetTrainer.py",
    loss="pearson", target="difference", lr=9e-3, schedule="one-cycle", epochs=30, batch=4, frames=128,
    size=72, pixels="DiffNormalized",
)  # fmt: skip
PUBLISHED_LAYOUT = PublishedLayout(
    {f"blocks.{index}": f"ConvBlock{index + 1}" for index in range(9)}
    | {"upsample.0": "upsample", "upsample.1": "upsample2", "head": "ConvBlock10"}
)
# Layer sizes of the authors' release (3DCNN encoder–decoder), as in the rPPG-Toolbox: 0.77 M.
REFERENCE_PARAMETERS = 768_577

WIDTHS = (16, 32, 64, 64, 64, 64, 64, 64, 64)
# The pooling after each block: in space, or in space and time.
SPACE, SPACE_AND_TIME = (1, 2, 2), (2, 2, 2)
POOL_AFTER = {0: SPACE, 2: SPACE_AND_TIME, 4: SPACE_AND_TIME, 6: SPACE}


class PhysNet(nn.Module):
    def __init__(self, size: int = SIZE) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=16)
        blocks = []
        for index, (inside, outside) in enumerate(pairwise((3, *WIDTHS))):
            kernel, padding = ((1, 5, 5), (0, 2, 2)) if index == 0 else ((3, 3, 3), (1, 1, 1))
            conv = nn.Conv3d(inside, outside, kernel, padding=padding)
            blocks.append(nn.Sequential(conv, nn.BatchNorm3d(outside), nn.ReLU()))
        self.blocks = nn.ModuleList(blocks)
        self.pools = nn.ModuleDict({str(after): nn.MaxPool3d(by) for after, by in POOL_AFTER.items()})
        width = WIDTHS[-1]
        self.upsample = nn.Sequential(
            *(
                nn.Sequential(
                    nn.ConvTranspose3d(width, width, (4, 1, 1), stride=(2, 1, 1), padding=(1, 0, 0)),
                    nn.BatchNorm3d(width),
                    nn.ELU(),
                )
                for _ in range(2)
            )
        )
        self.head = nn.Conv3d(width, 1, 1)

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size, min_frames=4, frames_multiple=4)
        x = preprocessing.channels_first(preprocessing.difference(frames))
        for index, block in enumerate(self.blocks):
            x = block(x)
            if index in POOL_AFTER:
                x = self.pools[str(index)](x)
        latent = self.upsample(x).mean((-1, -2), keepdim=True)  # (B,64,T/4,h,w) -> (B,64,T,1,1)
        return Output(self.head(latent).flatten(1), latent.flatten(2).transpose(1, 2))


def build(**overrides: Any) -> PhysNet:
    """Build PhysNet for crops of `size` pixels (16 or more), clips in steps of four frames."""
    return PhysNet(**preprocessing.options_of(PhysNet, NAME, overrides))
