"""EfficientPhys (convolutional): one branch with self-attention on frame differences.

The first layer is the difference of consecutive frames with a batch norm. Temporal shifts mix the frames.
The masks are computed from the motion features.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining
from .can import MIN_SIZE, ConvAttention, published_names

NAME = "efficientphys"
CITATION = (
    "X. Liu, B. Hill, Z. Jiang, S. Patel and D. McDuff, EfficientPhys: enabling simple, fast and accurate"
    " camera-based cardiac measurement, WACV 2023"
)
CAUSAL = False
SIZE = 72
FRAMES = 180
# Input and label (DiffNormalized) of the rPPG-Toolbox's PURE_PURE_UBFC-rPPG_EFFICIENTPHYS.yaml.
TARGET = "difference"  # the slope of the pulse
# rPPG-Toolbox: configs/train_configs/PURE_PURE_UBFC-rPPG_EFFICIENTPHYS.yaml and
# trainer/EfficientPhysTrainer.py (squared error, AdamW without decay, OneCycleLR).
TRAINING = PublishedTraining(
    source="rPPG-Toolbox, PURE_PURE_UBFC-rPPG_EFFICIENTPHYS.yaml and EfficientPhysTrainer.py",
    loss="mse", target="difference", optimiser="adamw", lr=9e-3, schedule="one-cycle", epochs=30, batch=4,
    frames=180, size=72, pixels="Standardized",
)  # fmt: skip
PUBLISHED_LAYOUT = PublishedLayout(
    published_names(appearance=False) | {"norm": "batch_norm"}, sizes=(72, 36, 96, 128),
    sized="final_dense_1.weight",
)  # fmt: skip
# Layer sizes of the rPPG-Toolbox release at 72×72 (EfficientPhys-C, 2.16 M in the toolbox); 7,438,729 (7.44
# M) at 128×128.
REFERENCE_PARAMETERS = 2_163_081


class EfficientPhys(nn.Module):
    def __init__(self, size: int = SIZE, depth: int = 10, dropout: tuple[float, float] = (0.25, 0.5)) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=MIN_SIZE)
        self.norm = nn.BatchNorm2d(3)
        self.body = ConvAttention(size, appearance=False, depth=depth, dropout=dropout)

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.standardise(preprocessing.frames_of(pixels, size=self.size))
        # The last frame is repeated, so that there are as many differences as frames.
        change = torch.diff(frames, dim=1, append=frames[:, -1:])
        out: Output = self.body(self.norm(change.flatten(0, 1)).unflatten(0, change.shape[:2]))
        return out


def build(**overrides: Any) -> EfficientPhys:
    """Build EfficientPhys for crops of `size` pixels, shifting within windows of `depth` frames."""
    return EfficientPhys(**preprocessing.options_of(EfficientPhys, NAME, overrides))
