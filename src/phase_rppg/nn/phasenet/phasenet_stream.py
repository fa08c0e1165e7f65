"""PHASE-Net for a live stream: the blocks of the paper with a log front end and a recurrent mask.

It runs on one processor core.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .asf import RecurrentSpatialFilter
from .front_end import MEAN_S, LogFrontEnd
from .model import CITATION as CITATION
from .model import PhaseNet, PhaseNetConfig, configure

NAME = "phasenet-stream"
CAUSAL = True
SIZE = 36
FRAMES = 128
TARGET = "wave"


@dataclass(frozen=True)
class StreamConfig(PhaseNetConfig):
    """The sizes of the streaming network, and the options that the paper does not have."""

    size: int = SIZE
    stem_stride: int = 2
    channels: tuple[int, ...] = (32, 48, 64)
    pools: tuple[int, ...] = (2, 1, 1)  # 18 → 9 cells a side: a mask separates a cheek from the background
    expansion: int = 2  # 4 makes training several times slower
    tcn_dilations: tuple[int, ...] = (1, 2, 4, 8)  # two seconds
    mean_s: float = MEAN_S  # time constant of the running means
    log_gain: float = 30.0  # a pulse changes log-intensity by about 0.01
    variance_channels: int = 8  # features whose running variance is an input of the mask; 0: none
    smooth_mask: bool = True  # the mask is the running mean of the masks so far


class StreamingPhaseNet(PhaseNet):
    """PHASE-Net with a log front end and a mask that depends on earlier frames."""

    config: StreamConfig

    def make_front_end(self) -> LogFrontEnd:
        return LogFrontEnd(self.config.fps, self.config.mean_s, self.config.log_gain)

    def make_filter(self) -> RecurrentSpatialFilter:
        c = self.config
        return RecurrentSpatialFilter(
            c.channels[-1],
            c.asf_hidden,
            learned=c.asf,
            derivative=c.derivative,
            variance_channels=c.variance_channels,
            smooth_mask=c.smooth_mask,
        )


def build(**overrides: Any) -> StreamingPhaseNet:
    """Build the streaming network; any field of `StreamConfig` can be given."""
    return StreamingPhaseNet(configure(StreamConfig(), NAME, overrides))
