"""Adaptive Spatial Filter: a soft mask per frame decides where the pulse is read (section "ASF")."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import ConvNorm

VARIANCE_FLOOR = 1e-3  # a cell that never moved is not infinitely more trustworthy than one that hardly did


class Unrest(nn.Module):
    """How restless every cell has been of late: the logarithm of the running variance of a few features.

    A sum of noisy witnesses is best when each counts by 1/σ². What a cell looks like now says little about
    its σ; what it did in the last seconds does.
    """

    def __init__(self, channels: int, watched: int) -> None:
        super().__init__()
        self.look = nn.Conv2d(channels, watched, 1, bias=False)

    def initial_state(self, like: Tensor, batch: int, side: int) -> Tensor:
        return like.new_zeros(batch, 2, side * side * self.look.out_channels)

    def forward(self, x: Tensor, state: Tensor, running: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """(B·T,C,H,W), mean and variance so far (B,2,H·W·K) -> (B·T,K,H,W), new state."""
        kernel, past = running
        batch = int(state.shape[0])
        seen = self.look(x)
        height, width, watched = int(seen.shape[2]), int(seen.shape[3]), int(seen.shape[1])
        values = seen.permute(0, 2, 3, 1).reshape(batch, -1, height * width * watched)  # (B,T,H·W·K)
        mean = torch.matmul(kernel, values) + past[:, None] * state[:, :1]
        variance = torch.matmul(kernel, (values - mean).square()) + past[:, None] * state[:, 1:]
        new = torch.stack([mean[:, -1], variance[:, -1]], 1)
        level = torch.log(variance + VARIANCE_FLOOR)
        return level.reshape(-1, height, width, watched).permute(0, 3, 1, 2), new


class AdaptiveSpatialFilter(nn.Module):
    """Sum each frame's features under one or two learned masks, and add their change since the last frame.

    M_t = softmax of f_conv(Z_t) over space,  z_t = Σ Z_t ⊙ M_t,  v_t = z_t − z_{t−1},  z'_t = [z_t, v_t].
    With two masks (say skin and background) their features stand side by side in z.
    """

    def __init__(
        self,
        channels: int,
        hidden: int,
        *,
        masks: int = 1,
        learned: bool = True,
        derivative: bool = True,
        watched: int = 0,
    ) -> None:
        super().__init__()
        self.masks, self.derivative = masks, derivative
        self.width = channels * masks  # of z
        self.outputs = self.width * (2 if derivative else 1)  # of z'
        self.unrest = Unrest(channels, watched) if learned and watched else None
        self.hidden = ConvNorm(channels + watched, hidden, 3) if learned else None
        # No bias: softmax does not see a constant.
        self.logits = nn.Conv2d(hidden, masks, 3, padding=1, bias=False) if learned else None

    def initial_state(self, like: Tensor, batch: int) -> Tensor | None:
        return like.new_zeros(batch, self.width) if self.derivative else None

    def mask(self, x: Tensor) -> Tensor:
        """(N,C,H,W) -> (N,M,H,W), non-negative, each summing to 1."""
        if self.hidden is None or self.logits is None:  # plain mean
            ones = torch.ones_like(x[:, :1]).expand(-1, self.masks, -1, -1)
            return ones / (x.shape[2] * x.shape[3])
        logits = self.logits(F.relu(self.hidden(x), inplace=True))
        shape = (-1, *(int(n) for n in logits.shape[1:]))
        return torch.softmax(logits.flatten(2), 2).reshape(shape)

    def forward(
        self, x: Tensor, last: Tensor | None, started: Tensor, batch: int, unrest: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """(B·T,C,H,W), z_{−1} (B,M·C), started (1,) 0 or 1 -> z' (B,T,outputs), mask (B·T,M,H,W), new z."""
        mask = self.mask(x if unrest is None else torch.cat([x, unrest], 1))
        pixels = x.permute(0, 2, 3, 1).flatten(1, 2)  # (N,H·W,C)
        z = torch.bmm(mask.flatten(2), pixels)  # (N,M,C)
        z = z.reshape(batch, -1, self.width)  # (B,T,M·C)
        if last is None:
            return z, mask, None
        # The first frame ever has no past: its v is zero.
        before = last + (1 - started) * (z[:, 0] - last)
        v = z - torch.cat([before[:, None], z[:, :-1]], 1)
        return torch.cat([z, v], 2), mask, z[:, -1]
