"""The oscillator bank computes the recurrence of the paper."""

from __future__ import annotations

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg import nn
from phase_rppg.nn.phasenet.oscillator_bank import OscillatorBank, convolve


@given(st.floats(0.2, 8.0), st.floats(0.5, 5.0), st.integers(1, 40), st.integers(0, 40))
@settings(deadline=None, max_examples=25)
def test_the_bank_convolves_exactly_as_the_recurrence_runs(
    alpha: float, hz: float, first: int, rest: int
) -> None:
    """Proposition 1, for the semi-implicit Euler matrices of the paper, from any state."""
    torch.manual_seed(first)
    dt, omega = 1 / 30, 2 * math.pi * hz
    alpha = min(alpha, 1.6 * omega)
    d = 1 + alpha * dt
    a = torch.tensor([[1 - omega**2 * dt**2 / d, dt / d], [-(omega**2) * dt / d, 1 / d]], dtype=torch.float64)
    b = torch.tensor([dt**2 / d, dt / d], dtype=torch.float64)
    drive = torch.randn(1, 1, first + rest, dtype=torch.float64)
    x = torch.randn(2, dtype=torch.float64)
    state = x.reshape(1, 2, 1)
    expected = []
    for value in drive[0, 0]:
        x = a @ x + b * value
        expected.append(x)
    one = torch.ones(1, dtype=torch.float64)
    got = []
    for part in (drive[:, :, :first], drive[:, :, first:]):
        if part.shape[2]:
            z, v = convolve(part, state, alpha * one, omega * one, dt)
            got.append(torch.stack([z[0, 0], v[0, 0]], 1))
            state = torch.stack([z[:, :, -1], v[:, :, -1]], 1)
    assert torch.allclose(torch.cat(got), torch.stack(expected), rtol=1e-7, atol=1e-9)


def test_every_oscillator_has_about_unit_gain_at_its_resonance() -> None:
    bank = OscillatorBank(4, 8, fps=30.0)
    alpha, omega = bank.alpha_omega()
    t = torch.arange(600) / 30
    drive = torch.cos(omega[:, None] * t)[None] * (alpha * omega)[:, None]
    z, v = convolve(drive, bank.initial_state(t, 1)[0], alpha, omega, bank.step_s)
    gain = z[0, :, 300:].abs().amax(1)
    assert (gain > 0.6).all()
    assert (gain < 1.5).all()
    assert torch.allclose((v / omega[:, None])[0, :, 300:].abs().amax(1), gain, rtol=0.3)


def test_the_network_of_the_experiment_has_a_bank_instead_of_the_gated_tcn() -> None:
    network = nn.build("phasenet-oscillators", oscillators=6)
    assert isinstance(network.tcn, OscillatorBank)
    assert network.tcn.count == 6
    assert network.receptive_frames == nn.build("phasenet-stream", gtcn=False).receptive_frames
