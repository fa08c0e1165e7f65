"""Initial TCN kernels from damped oscillators: the impulse response of the paper's recurrence.

    x_t = A x_{t−1} + B a_t,   x = [z, v]ᵀ,   A and B by semi-implicit Euler from (α, ω, Δt)

The impulse response of z is g[m] = Δt²/(1+αΔt) · q[m+1]. Because A is 2×2, its powers have a closed form
(Cayley–Hamilton): with r² = det A and 2 r cos θ = tr A,  q[m] = r^{m−1} sin(mθ)/sin θ.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .gtcn import GatedTCN

INITIAL_HZ = (0.6, 4.0)  # range of the natural frequencies


def powers(trace: Tensor, det: Tensor, count: Tensor) -> Tensor:
    """Return q[m] = r^{m−1} sin(mθ)/sin θ of each oscillator (K,) for each m in `count` (M,): (K,M)."""
    r = torch.sqrt(det)
    theta = torch.acos((trace / (2 * r)).clamp(-1 + 1e-6, 1 - 1e-6))
    return r[:, None] ** (count - 1) * torch.sin(count * theta[:, None]) / torch.sin(theta)[:, None]


def sample_kernels(count: int, length: int, dilation: int, fps: float) -> Tensor:
    """Return impulse responses (count,length) of random cardiac oscillators, every `dilation` frames."""
    low, high = (math.log(hz) for hz in INITIAL_HZ)
    omega = 2 * math.pi * torch.exp(torch.empty(count).uniform_(low, high))
    alpha = omega * torch.empty(count).uniform_(0.2, 1.0)
    damped = 1 + alpha / fps
    trace = 1 - omega**2 / fps**2 / damped + 1 / damped
    return powers(trace, 1 / damped, torch.arange(length) * float(dilation) + 1)


@torch.no_grad()
def start_from_oscillators(tcn: GatedTCN, fps: float) -> None:
    """Draw the signal kernels of a TCN from damped oscillators of the cardiac band instead of white noise.

    Every output channel filters with the impulse response of one oscillator, sampled at the layer's
    dilation. The weights over the inputs stay random, and their standard deviation does not change.
    """
    for layer in tcn.gated_layers():
        weight = layer.conv.weight  # (2D,D,1,k)
        shape = sample_kernels(tcn.channels, tcn.kernel, layer.conv.dilation[1], fps)  # (D,k)
        mix = torch.randn(tcn.channels, tcn.channels, 1, 1)
        drawn = mix * shape.flip(1)[:, None, None, :]
        weight[: tcn.channels] = drawn * (weight[: tcn.channels].std() / drawn.std())
