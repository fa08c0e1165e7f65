"""DeepPhys: frame differences, looked at where the appearance of the frame says there is skin.

Two branches of equal shape: motion sees the normalised difference of neighbouring frames, appearance the
standardised frame, and attention masks from appearance gate motion twice. Frame by frame; time enters only
through the difference (which looks one frame ahead) and through the clip-wide statistics of the input.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from .. import preprocessing
from ..output import Output
from .can import MIN_SIZE, ConvAttention

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
    """DeepPhys for crops of `size` pixels; the dense layer grows with the size."""
    return DeepPhys(**preprocessing.options_of(DeepPhys, NAME, overrides))
