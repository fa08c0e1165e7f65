"""Merge every BatchNorm into its neighbour: the same function with fewer layers, for inference. And back."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from .layers import CausalDepthwise, ConvNorm
from .model import PhaseNet


def fold(network: PhaseNet) -> PhaseNet:
    """A copy in evaluation mode without BatchNorm; outputs agree within rounding."""
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


def unfold(folded: PhaseNet, pixels: Tensor) -> PhaseNet:
    """A network with BatchNorm again that computes what a folded one does, to be trained further.

    The statistics are those of `pixels` (B,T,S,S,3). BatchNorm does not see how large the weights before it
    are; they get the size of fresh ones, so that a step of an optimiser means what it meant before.
    """
    network = PhaseNet(folded.config).eval()
    fresh = {name: kernel.flatten(1).norm(dim=1).mean() for name, kernel, _ in _normed(network)}
    network.load_state_dict(folded.state_dict(), strict=False)
    seen = _seen(folded, pixels)
    biases = dict(folded.named_parameters())
    with torch.no_grad():
        for name, kernel, norm in _normed(network):
            mean, variance = seen[name]
            size = (fresh[name] / kernel.flatten(1).norm(dim=1).clamp_min(1e-6)).double()
            bias = biases[f"{name}.bias" if f"{name}.bias" in biases else f"{name}.conv.bias"]
            kernel.copy_(kernel * size[:, None, None, None])
            norm.running_mean, norm.running_var = ((mean - bias) * size).float(), (variance * size**2).float()
            norm.weight.copy_(torch.sqrt(variance * size**2 + norm.eps) / size)
            norm.bias.copy_(mean)
        last, mix = network.norm, network.mix
        if isinstance(last, nn.BatchNorm2d) and mix.bias is not None:  # before its convolution
            mean, variance = seen["norm"]
            last.running_mean, last.running_var = mean.float(), variance.float()
            mix.bias.copy_(mix.bias + mix.weight[:, :, 0, 0].double() @ mean)
            mix.weight.copy_(mix.weight * torch.sqrt(variance + last.eps)[None, :, None, None])
    return network


def _normed(network: PhaseNet) -> list[tuple[str, Tensor, nn.BatchNorm2d]]:
    """Every layer whose weights a norm follows: its name, the weights, the norm."""
    return [
        (name, module.weight if isinstance(module, CausalDepthwise) else module.conv.weight, module.norm)
        for name, module in network.named_modules()
        if isinstance(module, (ConvNorm, CausalDepthwise)) and isinstance(module.norm, nn.BatchNorm2d)
    ]


def _seen(folded: PhaseNet, pixels: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
    """Mean and variance (C,) of what leaves each place of a folded network that once had a norm."""
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def note(name: str, out: Tensor | tuple[Tensor, Tensor]) -> None:
        y = (out[0] if isinstance(out, tuple) else out).double()
        seen[name] = y.mean((0, 2, 3)), y.var((0, 2, 3), unbiased=False)

    hooks = [
        module.register_forward_hook(lambda _, __, out, name=name: note(name, out))
        for name, module in folded.named_modules()
        if name == "norm" or isinstance(module, (ConvNorm, CausalDepthwise))
    ]
    with torch.no_grad():
        folded.run(folded.initial_state(len(pixels)), pixels)
    for hook in hooks:
        hook.remove()
    return seen


def _affine(norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """BatchNorm in evaluation as y = scale·x + shift, (C,) each, in double precision."""
    if norm.running_mean is None or norm.running_var is None:
        raise TypeError("a BatchNorm without running statistics cannot be folded")
    scale = norm.weight.double() / torch.sqrt(norm.running_var.double() + norm.eps)
    return scale, norm.bias - norm.running_mean * scale
