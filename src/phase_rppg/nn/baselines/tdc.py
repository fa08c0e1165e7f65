"""Temporal difference convolution: a 3×3×3 kernel that answers to change more than to level.

From the outer frames' weights a share θ is taken back at the centre, so that a constant input is damped.
The release runs two convolutions; subtracting at the centre tap of one kernel gives the same numbers in
one.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TemporalDifferenceConv(nn.Module):
    def __init__(self, channels: int, theta: float) -> None:
        super().__init__()
        self.conv = nn.Conv3d(channels, channels, 3, padding=1, bias=False)
        self.theta = theta

    def forward(self, x: Tensor) -> Tensor:  # (B,C,T,h,w) -> same
        weight = self.conv.weight
        outer = weight[:, :, 0].sum((-1, -2)) + weight[:, :, 2].sum((-1, -2))  # (C,C)
        centre = torch.zeros_like(weight)
        centre[:, :, 1, 1, 1] = self.theta * outer
        return F.conv3d(x, weight - centre, padding=1)
