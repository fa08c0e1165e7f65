"""The temporal part of PHASE-Net as a linear filter: the derivative of the wave by the features."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...errors import ArgumentError
from ...synth import load as load_world
from ...synth import sample
from ...types import ByteArray, FloatArray
from .model import PhaseNet

MOMENTS = 24  # working points along the recording
STILL_S = 8.0  # duration of the synthetic recording that sets the working points


@dataclass(frozen=True)
class Response:
    """∂ wave[t] / ∂ z[t−m] around working points, in units of the standard deviation of each feature."""

    jacobian: FloatArray  # (C,L) mean over the working points, lag 0 first
    spread: FloatArray  # (C,L) standard deviation over the working points
    linear: float  # 0–1: share of the energy that is the same at all working points
    fps: float


def response(network: PhaseNet, z: Tensor, moments: int = MOMENTS) -> Response:
    """Linearise the temporal part along the features z (T,C) of a recording, e.g. `Output.raw[0]`.

    The derivative includes the path through v, which is a difference of z.
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
    slopes = []
    for t in np.linspace(lags, len(z) - 1, moments).astype(int).tolist():
        (slope,) = torch.autograd.grad(wave[t], features, retain_graph=True)
        slopes.append((slope[t - lags + 1 : t + 1].flip(0) * unit).T.double().numpy())  # (C,L)
    every = np.stack(slopes)  # (N,C,L)
    mean = every.mean(0)
    return Response(
        jacobian=mean,
        spread=every.std(0),
        linear=float((mean**2).sum() / max(float((every**2).sum((1, 2)).mean()), 1e-300)),
        fps=network.config.fps,
    )


@torch.no_grad()
def still_face_features(network: PhaseNet) -> Tensor:
    """Return the features z (T,C) of a synthetic face without motion: working points for `response`."""
    raw = network.eval()(torch.from_numpy(still_face(network.size)[None])).raw
    assert raw is not None
    z: Tensor = raw[0]
    return z


@functools.cache
def still_face(size: int) -> ByteArray:
    """Return a synthetic face (T,S,S,3) without motion in constant light; always the same one."""
    fixed = {"motion.kind": "still", "light.kind": "constant", "pulse.bpm": 72.0}
    return sample(load_world("studio"), 7, 0, seconds=STILL_S, size=size, fixed=fixed).pixels


def _wave(network: PhaseNet, z: Tensor) -> Tensor:
    """Return the wave (T,) of features (T,C)."""
    whole = z
    if network.filter.derivative:
        whole = torch.cat([z, torch.cat([torch.zeros_like(z[:1]), z[1:] - z[:-1]])], 1)
    state = network.initial_state()
    wave, *_ = network.temporal(whole[None], state["tcn"])
    return wave[0]


def _lags(network: PhaseNet) -> int:
    return 1 + network.filter.derivative + network.tcn.past
