"""Adaptive Spatial Filter: a soft mask per frame weighs the cells that are summed (section "ASF")."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .layers import ConvNorm

VARIANCE_FLOOR = 1e-3  # bounds the logarithm for cells that do not change


@dataclass(frozen=True)
class FilterState:
    """State of the filter; a part that a network does not use is None."""

    z: Tensor | None  # (B,C) features of the last frame, for the derivative v
    variance: Tensor | None = None  # (B,2,H·W·K) running mean and variance of the projected features
    mask: Tensor | None = None  # (B,H·W) running mean of the masks


class AdaptiveSpatialFilter(nn.Module):
    """Sum each frame's features under a learned mask, and append their change since the last frame.

    M_t = softmax of f_conv(Z_t) over space,  z_t = Σ Z_t ⊙ M_t,  v_t = z_t − z_{t−1},  z'_t = [z_t, v_t].
    """

    def __init__(
        self,
        channels: int,
        hidden: int,
        *,
        learned: bool = True,
        derivative: bool = True,
        variance: RunningLogVariance | None = None,  # further input of f_conv; None in the paper
    ) -> None:
        super().__init__()
        self.derivative = derivative
        self.width = channels  # of z
        self.outputs = channels * (2 if derivative else 1)  # of z'
        self.variance = variance
        inputs = channels + (variance.channels if variance is not None else 0)
        self.hidden = ConvNorm(inputs, hidden, 3) if learned else None
        # Softmax ignores a constant, so a bias would have no effect.
        self.logits = nn.Conv2d(hidden, 1, 3, padding=1, bias=False) if learned else None

    def initial_state(self, like: Tensor, batch: int, side: int) -> FilterState:
        del side
        return FilterState(like.new_zeros(batch, self.width) if self.derivative else None)

    def forward(
        self, x: Tensor, state: FilterState, started: Tensor, running: tuple[Tensor, Tensor], batch: int
    ) -> tuple[Tensor, Tensor, FilterState]:
        """(B·T,C,H,W), started (1,) 0 or 1 -> z' (B,T,outputs), mask (B·T,1,H,W), new state."""
        mask, state = self.update_mask(x, state, running)
        pixels = x.permute(0, 2, 3, 1).flatten(1, 2)  # (N,H·W,C)
        z = torch.bmm(mask.flatten(2), pixels)  # (N,1,C)
        z = z.reshape(batch, -1, self.width)  # (B,T,C)
        if state.z is None:
            return z, mask, state
        # The first frame has no predecessor: its v is zero.
        before = state.z + (1 - started) * (z[:, 0] - state.z)
        v = z - torch.cat([before[:, None], z[:, :-1]], 1)
        return torch.cat([z, v], 2), mask, FilterState(z[:, -1], state.variance, state.mask)

    def update_mask(
        self, x: Tensor, state: FilterState, running: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, FilterState]:
        """Return the masks of some frames, (B·T,C,H,W) -> (B·T,1,H,W), and the new state."""
        del running
        return self.mask(x), state

    def mask(self, x: Tensor) -> Tensor:
        """Input of f_conv (N,C,H,W) -> (N,1,H,W), non-negative, sum 1."""
        if self.hidden is None or self.logits is None:  # plain mean
            return torch.ones_like(x[:, :1]) / (x.shape[2] * x.shape[3])
        logits = self.logits(F.relu(self.hidden(x), inplace=True))
        shape = (-1, *(int(n) for n in logits.shape[1:]))
        return torch.softmax(logits.flatten(2), 2).reshape(shape)


class RecurrentSpatialFilter(AdaptiveSpatialFilter):
    """The filter of `phasenet-stream`: f_conv also takes running variances, and the mask is smoothed.

    A smoothed mask is the running mean of the masks so far. Features differ more between cells than a pulse
    changes them, so a mask that varies from frame to frame adds noise to z.
    """

    def __init__(
        self,
        channels: int,
        hidden: int,
        *,
        learned: bool,
        derivative: bool,
        variance_channels: int,
        smooth_mask: bool,
    ) -> None:
        use_variance = learned and variance_channels > 0
        variance = RunningLogVariance(channels, variance_channels) if use_variance else None
        super().__init__(channels, hidden, learned=learned, derivative=derivative, variance=variance)
        self.smooth_mask = smooth_mask and learned

    def initial_state(self, like: Tensor, batch: int, side: int) -> FilterState:
        return FilterState(
            super().initial_state(like, batch, side).z,
            self.variance.initial_state(like, batch, side) if self.variance is not None else None,
            like.new_zeros(batch, side * side) if self.smooth_mask else None,
        )

    def update_mask(
        self, x: Tensor, state: FilterState, running: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, FilterState]:
        variance, mean = state.variance, state.mask
        inputs = x
        if self.variance is not None and variance is not None:
            level, variance = self.variance(x, variance, running)
            inputs = torch.cat([x, level], 1)
        mask = self.mask(inputs)
        if mean is not None:
            shape = (-1, *(int(n) for n in mask.shape[1:]))
            means = running_mean(mask.reshape(int(mean.shape[0]), -1, int(mean.shape[1])), mean, running)
            mask, mean = means.reshape(shape), means[:, -1]
        return mask, FilterState(state.z, variance, mean)


class RunningLogVariance(nn.Module):
    """The logarithm of the running variance of a few projected features, for every cell.

    A weighted sum of noisy measurements is best with weights 1/σ². One frame says little about σ of a cell;
    its variance over the last seconds does.
    """

    def __init__(self, channels: int, variance_channels: int) -> None:
        super().__init__()
        self.channels = variance_channels
        self.project = nn.Conv2d(channels, variance_channels, 1, bias=False)

    def initial_state(self, like: Tensor, batch: int, side: int) -> Tensor:
        return like.new_zeros(batch, 2, side * side * self.channels)

    def forward(self, x: Tensor, state: Tensor, running: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """(B·T,C,H,W), running mean and variance (B,2,H·W·K) -> (B·T,K,H,W), new state."""
        batch = int(state.shape[0])
        projected = self.project(x)
        height, width = int(projected.shape[2]), int(projected.shape[3])
        values = projected.permute(0, 2, 3, 1).reshape(batch, -1, height * width * self.channels)
        mean = running_mean(values, state[:, 0], running)  # (B,T,H·W·K)
        variance = running_mean((values - mean).square(), state[:, 1], running)
        new = torch.stack([mean[:, -1], variance[:, -1]], 1)
        level = torch.log(variance + VARIANCE_FLOOR)
        return level.reshape(-1, height, width, self.channels).permute(0, 3, 1, 2), new


def running_mean(values: Tensor, before: Tensor, running: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean so far of (B,T,N) at every frame.

    `before` (B,N) is the mean before these frames, `running` comes from `PixelFrontEnd.running_weights`.
    """
    kernel, past = running
    return torch.matmul(kernel, values) + past[:, None] * before[:, None]
