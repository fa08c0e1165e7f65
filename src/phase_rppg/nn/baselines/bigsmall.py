"""BigSmall: one large picture for the looks of a face, small pictures for its colour changes.

Of every three frames, the first passes six convolutions at full size; all three pass four convolutions at
a sixteenth of the size, with channels shifted in a circle between them. The features are added. The release
predicts pulse, breathing and 12 action units from the same features; this file has only the pulse.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining

NAME = "bigsmall"
CITATION = (
    "G. Narayanswamy, Y. Liu, Y. Yang, C. Ma, X. Liu, D. McDuff and S. Patel, BigSmall: efficient multi-task "
    "learning for disparate spatial and temporal physiological measurements, WACV 2024"
)
CAUSAL = False
SIZE = 144
FRAMES = 180
# Labels (DiffNormalized) of the rPPG-Toolbox's BP4D_BP4D_BIGSMALL_FOLD1.yaml.
TARGET = "difference"  # the slope of the pulse
# rPPG-Toolbox: configs/train_configs/BP4D_BP4D_BIGSMALL_FOLD1.yaml and trainer/BigSmallTrainer.py. A batch
# there is 180 clips of 3 frames; 3 clips of 180 frames are as many. The videos of BP4D+ have 25 frames per
# second, are not cropped, and have no PPG: the label there is the wave of POS. Here it is the contact PPG.
TRAINING = PublishedTraining(
    source="rPPG-Toolbox, BP4D_BP4D_BIGSMALL_FOLD1.yaml and BigSmallTrainer.py, without its other two heads",
    loss="mse", target="difference", optimiser="adamw", lr=1e-3, epochs=5, batch=3,
    frames=180, size=144, pixels="Standardized (large) and DiffNormalized (small)",
)  # fmt: skip
PUBLISHED_LAYOUT = PublishedLayout(
    {
        **{f"big.{index}": f"big_conv{index + 1}" for index in range(6)},
        **{f"small.{index}": f"small_conv{index + 1}" for index in range(4)},
        "dense": "bvp_fc1",
        "out": "bvp_fc2",
    },
    ignored=("au_fc*", "resp_fc*"),
    sizes=(144,),
    sized="bvp_fc1.weight",
)
# Layers of the release with one of its three heads; all three have 2,142,478 parameters.
REFERENCE_PARAMETERS = 813_441
SEGMENT = 3  # frames that share one large picture
REDUCTION = 16  # of the side of the small pictures
CHANNELS = (32, 64)
POOLS = (2, 2, 4)  # after every pair of convolutions on the large picture


class BigSmall(nn.Module):
    def __init__(self, size: int = SIZE, dropout: tuple[float, float, float] = (0.25, 0.5, 0.5)) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=2 * REDUCTION, multiple=REDUCTION)
        few, many = CHANNELS
        big = [(3, few), (few, few), (few, few), (few, many), (many, many), (many, many)]
        small = [(3, few), (few, few), (few, few), (few, many)]
        self.big, self.small = (
            nn.ModuleList(nn.Conv2d(i, o, 3, padding=1) for i, o in widths) for widths in (big, small)
        )
        self.drops = nn.ModuleList(nn.Dropout(share) for share in dropout)
        self.dense = nn.Linear(many * (size // REDUCTION) ** 2, 128)
        self.out = nn.Linear(128, 1)

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size)  # (B,T,3,H,W)
        batch, count = frames.shape[:2]
        place = Segments(count, frames.device)
        looks = preprocessing.standardise(frames)[:, ::SEGMENT].flatten(0, 1)
        for index, (pool, drop) in enumerate(zip(POOLS, self.drops, strict=True)):
            for conv in self.big[2 * index : 2 * index + 2]:
                looks = conv(looks).relu()
            looks = drop(F.avg_pool2d(looks, pool))
        changes = small_changes(frames)
        for conv in self.small:
            changes = conv(place.shift(changes).flatten(0, 1)).relu().unflatten(0, (batch, count))
        shared = changes + looks.unflatten(0, (batch, -1))[:, place.segment]  # (B,T,64,h,w)
        latent = self.dense(shared.flatten(2)).relu()
        return Output(self.out(latent)[..., 0], latent)


def small_changes(frames: Tensor) -> Tensor:
    """Return relative changes of the reduced frames over their standard deviation in the clip.

    The toolbox takes the standard deviation of the whole recording; this is a constant factor.
    """
    batch = len(frames)
    small = F.avg_pool2d(frames.flatten(0, 1), REDUCTION).unflatten(0, (batch, -1))
    change = preprocessing.relative_change(small)
    spread = change.std((1, 2, 3, 4), correction=0, keepdim=True)
    last = torch.zeros_like(small[:, :1])
    return torch.cat([change / spread.clamp_min(preprocessing.TINY), last], 1)


class Segments:
    """The division of a clip into segments of three frames; the last one may be shorter."""

    def __init__(self, frames: int, device: torch.device) -> None:
        index = torch.arange(frames, device=device)
        self.segment = index // SEGMENT
        start = self.segment * SEGMENT
        length = (frames - start).clamp_max(SEGMENT)
        self.after = start + (index - start + 1) % length
        self.before = start + (index - start - 1) % length

    def shift(self, x: Tensor) -> Tensor:
        """Take a third of the channels of (B,T,C,h,w) from the next frame, and a third from the previous one.

        The frame after the last one of a segment is its first one.
        """
        fold = x.shape[2] // 3
        ahead, behind, stay = x.split([fold, fold, x.shape[2] - 2 * fold], dim=2)
        return torch.cat([ahead[:, self.after], behind[:, self.before], stay], dim=2)


def build(**overrides: Any) -> BigSmall:
    """Build BigSmall for crops of `size` pixels, in steps of 16; the dense layer grows with the size."""
    return BigSmall(**preprocessing.options_of(BigSmall, NAME, overrides))
