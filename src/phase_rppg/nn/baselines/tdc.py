"""Temporal difference convolution: a 3×3×3 kernel that attenuates constant input.

A share θ of the weights of the outer frames is subtracted at the centre tap. The release runs two
convolutions; one convolution with the combined kernel gives the same result.
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
