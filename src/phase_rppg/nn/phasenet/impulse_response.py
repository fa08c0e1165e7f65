"""The temporal part of PHASE-Net as a linear filter: how the wave answers to a small push of the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...errors import ArgumentError
from ...types import FloatArray
from .model import PhaseNet

FADING_S = 4.0  # lags that are looked at when the memory never ends (oscillators)
MOMENTS = 24  # working points along the recording


@dataclass(frozen=True)
class Response:
    """∂ wave[t] / ∂ z[t−m], in units of each feature's own spread, around a working point."""

    jacobian: FloatArray  # (C,L) mean over the moments, lag 0 first
    spread: FloatArray  # (C,L) standard deviation over the moments
    linear: float  # 0–1: the share of the answers' energy that is the same at all moments
    fps: float


def response(network: PhaseNet, z: Tensor, moments: int = MOMENTS) -> Response:
    """Linearise the temporal part along the features z (T,C) of a recording, e.g. `Output.raw[0]`.

    The derivative v is part of it: a push of z is also a push of v.
    """
    lags = _lags(network)
    if z.ndim != 2 or z.shape[1] != network.filter.width or len(z) < lags + moments:
        raise ArgumentError(
            "z", f"shape {tuple(z.shape)}", f"(T,{network.filter.width}), T ≥ {lags + moments}"
        )
    network.eval()
    features = z.detach().clone().requires_grad_(True)
    wave = _wave(network, features)
    unit = z.detach().std(0)  # (C,)
    answers = []
    for t in np.linspace(lags, len(z) - 1, moments).astype(int).tolist():
        (slope,) = torch.autograd.grad(wave[t], features, retain_graph=True)
        answers.append((slope[t - lags + 1 : t + 1].flip(0) * unit).T.double().numpy())  # (C,L)
    every = np.stack(answers)  # (N,C,L)
    mean = every.mean(0)
    return Response(
        jacobian=mean,
        spread=every.std(0),
        linear=float((mean**2).sum() / max(float((every**2).sum((1, 2)).mean()), 1e-300)),
        fps=network.config.fps,
    )


def _wave(network: PhaseNet, z: Tensor) -> Tensor:
    """The wave (T,) of the features (T,C)."""
    whole = z
    if network.filter.derivative:
        whole = torch.cat([z, torch.cat([torch.zeros_like(z[:1]), z[1:] - z[:-1]])], 1)
    state = network.initial_state()
    wave, *_ = network.read(whole[None], state.bank, state.tcn)
    return wave[0]


def _lags(network: PhaseNet) -> int:
    if network.bank is not None:
        return round(FADING_S * network.config.fps)
    return 1 + network.filter.derivative + (network.tcn.past if network.tcn is not None else 0)
