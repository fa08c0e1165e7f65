"""The output that every network returns, and the wrapper that turns a predicted slope into a pulse wave."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass(frozen=True)
class Output:
    """A pulse wave and, where the network has them, the intermediate results that led to it."""

    wave: Tensor  # (B,T) upstroke positive, arbitrary scale
    latent: Tensor | None = None  # (B,T,D) the sequence that the output layer maps to the wave
    mask: Tensor | None = None  # (B,T,M,h,w) spatial attention; each mask of each frame sums to 1
    raw: Tensor | None = None  # (B,T,C) the sequence before the temporal part (z_raw of the paper)


def as_float32(output: Output) -> Output:
    """Return the output in float32: after a pass in mixed precision, losses need the full precision."""
    optional = {name: getattr(output, name) for name in ("latent", "mask", "raw")}
    return Output(output.wave.float(), **{k: None if t is None else t.float() for k, t in optional.items()})


class IntegratedNetwork(nn.Module):
    """A network that predicts the slope of the pulse, with its output integrated to a pulse wave."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.size = network.size

    def forward(self, pixels: Tensor) -> Output:
        out: Output = self.network(pixels)
        wave = (out.wave - out.wave.mean(1, keepdim=True)).cumsum(1)
        return dataclasses.replace(out, wave=wave - wave.mean(1, keepdim=True))
