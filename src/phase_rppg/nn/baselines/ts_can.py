"""TS-CAN: DeepPhys whose motion branch shifts channels between neighbouring frames.

Before each motion convolution a third of the channels comes from the next frame and a third from the
previous one, within windows of `depth` frames. So 2-D convolutions use several frames at no cost.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining
from .can import MIN_SIZE, ConvAttention, published_names

NAME = "ts-can"
CITATION = (
    "X. Liu, J. Fromm, S. Patel and D. McDuff, Multi-task temporal shift attention networks for on-device"
    " contactless vitals measurement, NeurIPS 2020"
)
CAUSAL = False
SIZE = 72
FRAMES = 180
# Input and label (DiffNormalized) of the rPPG-Toolbox's PURE_PURE_UBFC-rPPG_TSCAN_BASIC.yaml.
TARGET = "difference"  # the slope of the pulse
# rPPG-Toolbox: configs/train_configs/PURE_PURE_UBFC-rPPG_TSCAN_BASIC.yaml and trainer/TscanTrainer.py
# (squared error, AdamW without decay, OneCycleLR).
TRAINING = PublishedTraining(
    source="rPPG-Toolbox, PURE_PURE_UBFC-rPPG_TSCAN_BASIC.yaml and TscanTrainer.py",
    loss="mse", target="difference", optimiser="adamw", lr=9e-3, schedule="one-cycle", epochs=30, batch=4,
    frames=180, size=72, pixels="DiffNormalized and Standardized",
)  # fmt: skip
PUBLISHED_LAYOUT = PublishedLayout(
    published_names(appearance=True), sizes=(72, 36, 96, 128), sized="final_dense_1.weight",
    file_words=("tscan", "ts-can", "ts_can"),
)  # fmt: skip
# The shift has no parameters, so the count is that of DeepPhys at the same size (rPPG-Toolbox release,
# 72×72).
REFERENCE_PARAMETERS = 2_228_643


class TsCan(nn.Module):
    def __init__(self, size: int = SIZE, depth: int = 10, dropout: tuple[float, float] = (0.25, 0.5)) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=MIN_SIZE)
        self.body = ConvAttention(size, appearance=True, depth=depth, dropout=dropout)

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size)
        out: Output = self.body(preprocessing.difference(frames), preprocessing.standardise(frames))
        return out


def build(**overrides: Any) -> TsCan:
    """Build TS-CAN for crops of `size` pixels, shifting within windows of `depth` frames."""
    return TsCan(**preprocessing.options_of(TsCan, NAME, overrides))
