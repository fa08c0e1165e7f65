"""Merge every BatchNorm into the convolution next to it: fewer layers for inference, same function."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from .layers import CausalDepthwise, ConvNorm
from .model import PhaseNet


def fold(network: PhaseNet) -> PhaseNet:
    """Return a copy in evaluation mode without BatchNorm; its outputs are equal up to rounding."""
    folded = copy.deepcopy(network).eval()
    with torch.no_grad():
        for module in folded.modules():
            if isinstance(module, ConvNorm) and isinstance(module.norm, nn.BatchNorm2d):
                scale, shift = _affine(module.norm)
                module.conv.weight.copy_(module.conv.weight * scale[:, None, None, None])
                module.conv.bias = nn.Parameter(shift.float())
                module.norm = nn.Identity()
            elif isinstance(module, CausalDepthwise) and isinstance(module.norm, nn.BatchNorm2d):
                scale, shift = _affine(module.norm)
                module.weight.copy_(module.weight * scale[:, None, None, None])
                module.bias = nn.Parameter(shift.float())
                module.norm = nn.Identity()
        if isinstance(folded.norm, nn.BatchNorm2d) and folded.mix.bias is not None:  # before its convolution
            scale, shift = _affine(folded.norm)
            folded.mix.bias.copy_(folded.mix.bias + folded.mix.weight[:, :, 0, 0].double() @ shift)
            folded.mix.weight.copy_(folded.mix.weight * scale[None, :, None, None])
            folded.norm = nn.Identity()
    return folded


def _affine(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Return scale and shift (C,) of a BatchNorm in evaluation, y = scale·x + shift, in double precision."""
    if norm.running_mean is None or norm.running_var is None:
        raise TypeError("a BatchNorm without running statistics cannot be folded")
    scale = norm.weight.double() / torch.sqrt(norm.running_var.double() + norm.eps)
    return scale, norm.bias - norm.running_mean * scale
