"""Contrast-Phys+: a network for contrastive training whose output is a small grid of pulse waves.

A PhysNet with average pooling whose last feature map keeps S×S places: the ST-rPPG block. The wave is the
mean over the places; the block itself is the latent sequence. `train.losses.contrast` is its loss, with or
without references.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import ArgumentError
from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining

NAME = "contrast-phys"
CITATION = (
    "Z. Sun and X. Li, Contrast-Phys+: unsupervised and weakly-supervised video-based remote "
    "physiological measurement via spatiotemporal contrast, IEEE TPAMI 2024"
)
CAUSAL = False
SIZE = 128
FRAMES = 300
# The authors' release takes the PPG as it is (contrast-phys+/utils_data.py).
TARGET = "wave"
# The authors' repository zhaodongsun/contrast-phys, contrast-phys+/train.py: AdamW with torch's default decay
# of 0.01, two videos per step, clips of 10 s. Half of the references are used; the paper also reports 0 to
# all.
TRAINING = PublishedTraining(
    source="zhaodongsun/contrast-phys, contrast-phys+/train.py",
    loss="contrast", target="wave", optimiser="adamw", lr=1e-5, weight_decay=0.01, epochs=30, batch=2,
    frames=300, size=128, pixels="standardised per channel", labelled=0.5,
)  # fmt: skip
# Layer sizes of the authors' release: 0.86 M (the efficiency table of the PHASE-Net paper prints 0.85 M).
REFERENCE_PARAMETERS = 858_497
WIDTH = 64


def _convs(*widths: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for inside, outside in pairwise(widths):
        layers += [nn.Conv3d(inside, outside, 3, padding=1), nn.BatchNorm3d(outside), nn.ELU()]
    return layers


class ContrastPhys(nn.Module):
    def __init__(self, size: int = SIZE, places: int = 2) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=16)
        if not 1 <= places <= size // 16:
            raise ArgumentError("places", places, f"1–{size // 16} along each side at {size} pixels")
        self.places = places
        self.encoder = nn.Sequential(
            nn.Conv3d(3, WIDTH // 2, (1, 5, 5), padding=(0, 2, 2)), nn.BatchNorm3d(WIDTH // 2), nn.ELU(),
            nn.AvgPool3d((1, 2, 2)), *_convs(WIDTH // 2, WIDTH, WIDTH),
            nn.AvgPool3d((2, 2, 2)), *_convs(WIDTH, WIDTH, WIDTH),
            nn.AvgPool3d((2, 2, 2)), *_convs(WIDTH, WIDTH, WIDTH),
            nn.AvgPool3d((1, 2, 2)), *_convs(WIDTH, WIDTH, WIDTH),
        )  # fmt: skip
        upsample = nn.Upsample(scale_factor=(2, 1, 1))
        self.decoder = nn.Sequential(*(nn.Sequential(upsample, *self._smooth()) for _ in range(2)))
        self.head = nn.Conv3d(WIDTH, 1, 1)

    @staticmethod
    def _smooth() -> list[nn.Module]:
        return [nn.Conv3d(WIDTH, WIDTH, (3, 1, 1), padding=(1, 0, 0)), nn.BatchNorm3d(WIDTH), nn.ELU()]

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size, min_frames=4, frames_multiple=4)
        x = preprocessing.channels_first(frames)
        x = F.instance_norm(x)  # each colour of each clip
        x = self.decoder(self.encoder(x))  # (B,64,T,H/16,W/16)
        x = F.adaptive_avg_pool3d(x, (frames.shape[1], self.places, self.places))
        block = self.head(x).flatten(3).squeeze(1)  # (B,T,S·S)
        return Output(block.mean(-1), block)


def _published_names() -> dict[str, str]:
    names = {f"encoder.{part}": f"start.{part}" for part in (0, 1)} | {"head": "end.1"}
    for first, theirs in ((3, "loop1"), (10, "encoder1"), (17, "encoder2"), (24, "loop4")):
        names |= {f"encoder.{first + part}": f"{theirs}.{part}" for part in (1, 2, 4, 5)}
    for index in range(2):
        names |= {f"decoder.{index}.{part + 1}": f"decoder{index + 1}.{part}" for part in (0, 1)}
    return names


PUBLISHED_LAYOUT = PublishedLayout(_published_names())


def build(**overrides: Any) -> ContrastPhys:
    """Build the ST-rPPG network for crops of `size` pixels with a block of `places`×`places` waves."""
    return ContrastPhys(**preprocessing.options_of(ContrastPhys, NAME, overrides))
