"""Adaptive Spatial Filter: a soft mask per frame decides where the pulse is read (section "ASF")."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import ConvNorm
from .streaming import MaskState

VARIANCE_FLOOR = 1e-3  # a cell that never moved is not infinitely more trustworthy than one that hardly did


def running_mean(values: Tensor, before: Tensor, running: tuple[Tensor, Tensor]) -> Tensor:
    """The mean of (B,T,N) so far at every frame, given the mean before them (B,N) and `FrontEnd.running`."""
    kernel, past = running
    return torch.matmul(kernel, values) + past[:, None] * before[:, None]


class RunningLogVariance(nn.Module):
    """How restless every cell has been of late: the logarithm of the running variance of a few features.

    A sum of noisy witnesses is best when each counts by 1/σ². What a cell looks like now says little about
    its σ; what it did in the last seconds does.
    """

    def __init__(self, channels: int, variance_channels: int) -> None:
        super().__init__()
        self.look = nn.Conv2d(channels, variance_channels, 1, bias=False)

    def initial_state(self, like: Tensor, batch: int, side: int) -> Tensor:
        return like.new_zeros(batch, 2, side * side * self.look.out_channels)

    def forward(self, x: Tensor, state: Tensor, running: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """(B·T,C,H,W), mean and variance so far (B,2,H·W·K) -> (B·T,K,H,W), new state."""
        batch = int(state.shape[0])
        seen = self.look(x)
        height, width, variance_channels = int(seen.shape[2]), int(seen.shape[3]), int(seen.shape[1])
        values = seen.permute(0, 2, 3, 1).reshape(
            batch, -1, height * width * variance_channels
        )  # (B,T,H·W·K)
        mean = running_mean(values, state[:, 0], running)
        variance = running_mean((values - mean).square(), state[:, 1], running)
        new = torch.stack([mean[:, -1], variance[:, -1]], 1)
        level = torch.log(variance + VARIANCE_FLOOR)
        return level.reshape(-1, height, width, variance_channels).permute(0, 3, 1, 2), new


class AdaptiveSpatialFilter(nn.Module):
    """Sum each frame's features under one or two learned masks, and add their change since the last frame.

    M_t = softmax of f_conv(Z_t) over space,  z_t = Σ Z_t ⊙ M_t,  v_t = z_t − z_{t−1},  z'_t = [z_t, v_t].
    With two masks (say skin and background) their features stand side by side in z.

    Beyond the paper: f_conv may see the unrest of each cell (`watched`), and a `steady` M_t is the running
    mean of the masks so far. A face differs from place to place by far more than a pulse changes it, so a
    mask that flickers writes its own noise into z.
    """

    def __init__(
        self,
        channels: int,
        hidden: int,
        *,
        masks: int = 1,
        learned: bool = True,
        derivative: bool = True,
        variance_channels: int = 0,
        smooth_mask: bool = False,
    ) -> None:
        super().__init__()
        self.masks, self.derivative, self.smooth_mask = masks, derivative, smooth_mask and learned
        self.width = channels * masks  # of z
        self.outputs = self.width * (2 if derivative else 1)  # of z'
        self.unrest = (
            RunningLogVariance(channels, variance_channels) if learned and variance_channels else None
        )
        self.hidden = ConvNorm(channels + variance_channels, hidden, 3) if learned else None
        # No bias: softmax does not see a constant.
        self.logits = nn.Conv2d(hidden, masks, 3, padding=1, bias=False) if learned else None

    def initial_state(self, like: Tensor, batch: int) -> Tensor | None:
        return like.new_zeros(batch, self.width) if self.derivative else None

    def initial_look(self, like: Tensor, batch: int, side: int) -> MaskState:
        return MaskState(
            self.unrest.initial_state(like, batch, side) if self.unrest is not None else None,
            like.new_zeros(batch, self.masks * side * side) if self.smooth_mask else None,
        )

    def mask(self, x: Tensor) -> Tensor:
        """What f_conv sees, (N,C,H,W) -> (N,M,H,W), non-negative, each summing to 1."""
        if self.hidden is None or self.logits is None:  # plain mean
            ones = torch.ones_like(x[:, :1]).expand(-1, self.masks, -1, -1)
            return ones / (x.shape[2] * x.shape[3])
        logits = self.logits(F.relu(self.hidden(x), inplace=True))
        shape = (-1, *(int(n) for n in logits.shape[1:]))
        return torch.softmax(logits.flatten(2), 2).reshape(shape)

    def look(self, x: Tensor, state: MaskState, running: tuple[Tensor, Tensor]) -> tuple[Tensor, MaskState]:
        """The masks of some frames, (B·T,C,H,W) -> (B·T,M,H,W), with what was seen before."""
        seen, unrest, held = x, state.unrest, state.mask
        if self.unrest is not None and unrest is not None:
            level, unrest = self.unrest(x, unrest, running)
            seen = torch.cat([x, level], 1)
        mask = self.mask(seen)
        if held is not None:
            shape = (-1, *(int(n) for n in mask.shape[1:]))
            means = running_mean(mask.reshape(int(held.shape[0]), -1, int(held.shape[1])), held, running)
            mask, held = means.reshape(shape), means[:, -1]
        return mask, MaskState(unrest, held)

    def forward(
        self, x: Tensor, mask: Tensor, last: Tensor | None, started: Tensor, batch: int
    ) -> tuple[Tensor, Tensor | None]:
        """(B·T,C,H,W), (B·T,M,H,W), z_{−1} (B,M·C), started (1,) 0 or 1 -> z' (B,T,outputs), new z."""
        pixels = x.permute(0, 2, 3, 1).flatten(1, 2)  # (N,H·W,C)
        z = torch.bmm(mask.flatten(2), pixels)  # (N,M,C)
        z = z.reshape(batch, -1, self.width)  # (B,T,M·C)
        if last is None:
            return z, None
        # The first frame ever has no past: its v is zero.
        before = last + (1 - started) * (z[:, 0] - last)
        v = z - torch.cat([before[:, None], z[:, :-1]], 1)
        return torch.cat([z, v], 2), z[:, -1]
