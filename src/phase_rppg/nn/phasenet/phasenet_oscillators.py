"""The streaming network with a bank of oscillators instead of the gated TCN, for the physics experiments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .model import CITATION as CITATION
from .model import configure
from .oscillator_bank import OscillatorBank
from .phasenet_stream import SIZE as SIZE
from .phasenet_stream import StreamConfig, StreamingPhaseNet

NAME = "phasenet-oscillators"
CAUSAL = True
FRAMES = 128
TARGET = "wave"


@dataclass(frozen=True)
class OscillatorConfig(StreamConfig):
    """The sizes of the streaming network, and the number of oscillators."""

    oscillators: int = 32


class OscillatorPhaseNet(StreamingPhaseNet):
    """PHASE-Net whose temporal part is the recurrence of the paper with learnable α and ω."""

    config: OscillatorConfig

    def make_temporal(self) -> OscillatorBank:  # type: ignore[override]
        return OscillatorBank(self.config.hidden, self.config.oscillators, self.config.fps)


def build(**overrides: Any) -> OscillatorPhaseNet:
    """Build the network; any field of `OscillatorConfig` can be given."""
    return OscillatorPhaseNet(configure(OscillatorConfig(), NAME, overrides))
