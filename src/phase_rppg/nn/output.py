"""What every network answers with; losses judge it, the network does not."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Output:
    """A pulse wave, and what the network can show of how it came to it."""

    wave: Tensor  # (B,T) upstroke positive, free scale
    latent: Tensor | None = None  # (B,T,D) the sequence the wave is read from
    mask: Tensor | None = None  # (B,T,M,h,w) where the network looked; each mask of each frame sums to 1
    raw: Tensor | None = None  # (B,T,C) the sequence before the temporal part (z_raw of the paper)
