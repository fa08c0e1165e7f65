"""Gated TCN: causal dilated convolutions with a gate, the FIR form of the damped oscillator.

Propositions 1 and 2: the pulse dynamics are a causal convolution z_t = Σ g[m] a_{t−m}, and a finite kernel
approximates it to any ε. `physics.fir` gives the length R that the kernel and dilations should cover.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .layers import tail


class GatedLayer(nn.Module):
    """x + tanh(W_f ∗ x) ⊙ σ(W_g ∗ x) with causal convolutions."""

    def __init__(self, channels: int, kernel: int, dilation: int) -> None:
        super().__init__()
        self.past = (kernel - 1) * dilation
        self.conv = nn.Conv2d(channels, 2 * channels, (1, kernel), dilation=(1, dilation))

    def forward(self, x: Tensor, history: Tensor) -> tuple[Tensor, Tensor]:
        """(B,D,1,T), (B,D,1,past) -> the same shapes."""
        joined = torch.cat([history, x], 3)
        signal, gate = self.conv(joined).chunk(2, 1)
        return x + torch.tanh(signal) * torch.sigmoid(gate), tail(joined, 3, self.past)


class GatedTCN(nn.Module):
    """A stack of gated layers with growing dilation; without layers it is the identity."""

    def __init__(self, channels: int, kernel: int, dilations: Sequence[int]) -> None:
        super().__init__()
        self.channels, self.kernel = channels, kernel
        self.layers = nn.ModuleList(GatedLayer(channels, kernel, dilation) for dilation in dilations)
        self.past = (kernel - 1) * sum(dilations)  # earlier frames that reach an output

    def initial_state(self, like: Tensor, batch: int) -> tuple[Tensor, ...]:
        return tuple(like.new_zeros(batch, self.channels, 1, (self.kernel - 1) * d) for d in self.dilations)

    @property
    def dilations(self) -> tuple[int, ...]:
        return tuple(layer.conv.dilation[1] for layer in self.gated_layers())

    def forward(self, x: Tensor, states: Sequence[Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """(B,D,1,T) -> (B,D,1,T), new states."""
        new = []
        for layer, state in zip(self.layers, states, strict=True):
            x, state = layer(x, state)
            new.append(state)
        return x, tuple(new)

    def gated_layers(self) -> list[GatedLayer]:
        return [layer for layer in self.layers if isinstance(layer, GatedLayer)]
