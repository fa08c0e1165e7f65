"""DeepPhys: frame differences, gated by attention masks from the appearance of the frame.

Two branches have the same shape. The input of the motion branch is the normalised difference of consecutive
frames, that of the appearance branch the standardised frame. Masks from appearance gate motion twice. Frames
are processed independently; only the difference (one frame ahead) and the clip statistics connect them.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining
from .can import MIN_SIZE, ConvAttention, published_names

NAME = "deepphys"
CITATION = (
    "W. Chen and D. McDuff, DeepPhys: video-based physiological measurement using convolutional "
    "attention networks, ECCV 2018"
)
CAUSAL = False
SIZE = 72
FRAMES = 180
# Input and label (DiffNormalized) of the rPPG-Toolbox's PURE_PURE_UBFC-rPPG_DEEPPHYS_BASIC.yaml.
TARGET = "difference"  # the slope of the pulse
# rPPG-Toolbox: configs/train_configs/PURE_PURE_UBFC-rPPG_DEEPPHYS_BASIC.yaml and trainer/DeepPhysTrainer.py
# (squared error, AdamW without decay, OneCycleLR). The paper itself trained with Adadelta.
TRAINING = PublishedTraining(
    source="rPPG-Toolbox, PURE_PURE_UBFC-rPPG_DEEPPHYS_BASIC.yaml and DeepPhysTrainer.py",
    loss="mse", target="difference", optimiser="adamw", lr=9e-3, schedule="one-cycle", epochs=30, batch=4,
    frames=180, size=72, pixels="DiffNormalized and Standardized",
)  # fmt: skip
PUBLISHED_LAYOUT = PublishedLayout(
    published_names(appearance=True), sizes=(72, 36, 96, 128), sized="final_dense_1.weight",
    file_words=("deepphys",),
)  # fmt: skip
# Layer sizes of the paper at 72×72 as released in the rPPG-Toolbox; 532,899 at 36×36, 7,504,291 (7.50 M) at
# 128×128.
REFERENCE_PARAMETERS = 2_228_643


class DeepPhys(nn.Module):
    def __init__(self, size: int = SIZE, dropout: tuple[float, float] = (0.25, 0.5)) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=MIN_SIZE)
        self.body = ConvAttention(size, appearance=True, depth=None, dropout=dropout)

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size)
        out: Output = self.body(preprocessing.difference(frames), preprocessing.standardise(frames))
        return out


def build(**overrides: Any) -> DeepPhys:
    """Build DeepPhys for crops of `size` pixels; the dense layer grows with the size."""
    return DeepPhys(**preprocessing.options_of(DeepPhys, NAME, overrides))
