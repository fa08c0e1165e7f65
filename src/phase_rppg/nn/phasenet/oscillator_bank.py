"""A bank of damped oscillators with learnable α and ω: the paper's recurrence in IIR form.

    x_t = A x_{t−1} + B a_t,   x = [z, v]ᵀ,   A and B by semi-implicit Euler from (α, ω, Δt)

The memory is long at a constant cost per frame. Over a chunk the recurrence is a causal convolution
(Proposition 1). `phasenet-oscillators` uses the bank instead of the gated TCN.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .initial_kernels import INITIAL_HZ, powers

LIMIT_HZ = (0.2, 6.0)  # natural frequencies that training can reach
LIMIT_DAMPING = (0.1, 12.0)  # α in 1/s
UNDERDAMPED = 1.6  # α ≤ 1.6 ω keeps the eigenvalues of A complex, as the closed form requires


class OscillatorBank(nn.Module):
    """x + W_out [z, v/ω] with K oscillators driven by W_in x; unit gain at resonance."""

    def __init__(self, channels: int, count: int, fps: float) -> None:
        super().__init__()
        self.count, self.step_s = count, 1.0 / fps
        self.past = 0  # earlier frames reach an output through the state, not through a finite kernel
        self.drive = nn.Conv2d(channels, count, 1, bias=False)
        self.read = nn.Conv2d(2 * count, channels, 1)
        self.log_hz = nn.Parameter(torch.linspace(math.log(INITIAL_HZ[0]), math.log(INITIAL_HZ[1]), count))
        # Time constants from a quarter of a second to two seconds, interleaved over the frequencies.
        memory = torch.linspace(math.log(0.25), math.log(2.0), 4).repeat((count + 3) // 4)[:count]
        self.log_damping = nn.Parameter(math.log(2.0) - memory)

    def initial_state(self, like: Tensor, batch: int) -> tuple[Tensor]:
        return (like.new_zeros(batch, 2, self.count),)

    def alpha_omega(self) -> tuple[Tensor, Tensor]:
        """Return the damping α in 1/s and natural frequency ω in rad/s, (K,) each, within the limits."""
        low, high = (math.log(hz) for hz in LIMIT_HZ)
        omega = 2 * math.pi * torch.exp(self.log_hz.clamp(low, high))
        low, high = (math.log(alpha) for alpha in LIMIT_DAMPING)
        alpha = torch.minimum(torch.exp(self.log_damping.clamp(low, high)), UNDERDAMPED * omega)
        return alpha, omega

    def forward(self, x: Tensor, states: tuple[Tensor]) -> tuple[Tensor, tuple[Tensor]]:
        """(B,D,1,T), (B,2,K) -> (B,D,1,T), new state."""
        alpha, omega = self.alpha_omega()
        drive = self.drive(x).squeeze(2) * (alpha * omega)[:, None]  # (B,K,T); resonance gain of z is 1/(αω)
        z, v = convolve(drive, states[0], alpha, omega, self.step_s)
        both = torch.cat([z, v / omega[:, None]], 1)  # (B,2K,T)
        return x + self.read(both[:, :, None]), (torch.stack([z[:, :, -1], v[:, :, -1]], 1),)


def convolve(a: Tensor, state: Tensor, alpha: Tensor, omega: Tensor, step_s: float) -> tuple[Tensor, Tensor]:
    """Compute the recurrence of a chunk as a convolution: drive a (B,K,T), state (B,2,K) -> z, v (B,K,T)."""
    damped = 1 + alpha * step_s
    a00, a01 = 1 - omega**2 * step_s**2 / damped, step_s / damped
    a10, a11 = -(omega**2) * step_s / damped, 1 / damped
    frames = a.shape[2]
    count = torch.arange(0, frames + 1, device=a.device, dtype=a.dtype)
    q = powers(a00 + a11, 1 / damped, count)  # (K,T+1) q[0…T]
    q_before = torch.cat([-damped[:, None], q[:, :-1]], 1)  # q[−1] = −1/r², so that A⁰ = I

    # z_t = Σ g[t−s] a_s with g[m] = C Aᵐ B = Δt²/(1+αΔt) · q[m+1]; and v_t = (z_t − z_{t−1})/Δt.
    g_z = step_s**2 / damped[:, None] * q[:, 1:]  # (K,T)
    g_v = step_s / damped[:, None] * (q[:, 1:] - q[:, :-1])
    lag = (count[:-1, None] - count[None, :-1]).long()  # (T,T) t−s
    causal = (lag >= 0).to(a.dtype)
    lag = lag.clamp(min=0)
    z = torch.matmul(g_z[:, lag] * causal, a[..., None])[..., 0]  # (K,T,T) · (B,K,T,1)
    v = torch.matmul(g_v[:, lag] * causal, a[..., None])[..., 0]

    # The contribution of the state before the chunk: A^{t+1} x_{−1}.
    z0, v0 = state[:, 0, :, None], state[:, 1, :, None]  # (B,K,1)
    q_now, q_last = q[:, 1:], q_before[:, 1:] / damped[:, None]
    z = z + q_now * (a00[:, None] * z0 + a01[:, None] * v0) - q_last * z0
    v = v + q_now * (a10[:, None] * z0 + a11[:, None] * v0) - q_last * v0
    return z, v
