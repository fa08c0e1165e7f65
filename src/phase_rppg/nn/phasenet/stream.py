"""PHASE-Net for a live stream: a small preset of the same class, cheap enough for one core."""

from __future__ import annotations

from typing import Any

from .model import CITATION as CITATION
from .model import PhaseNet, PhaseNetConfig, configure

NAME = "phasenet-stream"
CAUSAL = True
SIZE = 36
FRAMES = 128
TARGET = "wave"

CONFIG = PhaseNetConfig(
    size=SIZE,
    normalise="log",
    stem_stride=2,
    channels=(32, 48, 64),
    expansion=2,  # 4 makes training several times slower
    pools=(2, 1, 1),  # 18 → 9 px: masks still tell a cheek from the background
    variance_channels=8,  # a cell counts by how restless it has been, too
    smooth_mask=True,
    hidden=64,
    tcn_dilations=(1, 2, 4, 8),  # two seconds
)


def build(**overrides: Any) -> PhaseNet:
    """The streaming preset; any field of `PhaseNetConfig` can be given."""
    return PhaseNet(configure(CONFIG, NAME, overrides))
