"""Small networks and clips, so that laws are cheap to check."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from phase_rppg.nn import build
from phase_rppg.nn.phasenet.model import PhaseNet

SMALL: dict[str, object] = {
    "size": 18, "stem": 6, "stem_stride": 2, "channels": (8, 10, 12), "pools": (2, 1, 1), "expansion": 2,
    "asf_hidden": 5, "hidden": 8, "tcn_dilations": (1, 2),
}  # fmt: skip


def small(seed: int = 0, *, name: str = "phasenet-stream", **overrides: object) -> PhaseNet:
    """Return a small network in evaluation mode with BatchNorm statistics and a wave of about ±1."""
    torch.manual_seed(seed)
    plain = {"variance_channels": 0, "smooth_mask": False} if name == "phasenet-stream" else {}
    network = build(name, **{**SMALL, **plain, **overrides})
    assert isinstance(network, PhaseNet)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.reset_running_stats()
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.3, 0.3)
            module.momentum = None  # plain average
    with torch.no_grad():
        network(clip(4, 24, seed=seed + 1, size=network.size))
        wave = network.eval()(clip(1, 24, seed=seed + 2, size=network.size)).wave
        network.head.weight /= wave.abs().max()
    return network


def clip(batch: int = 1, frames: int = 24, *, seed: int = 0, size: int = 18) -> Tensor:
    """A random scene with small changes from frame to frame, (B,T,S,S,3) u8."""
    generator = torch.Generator().manual_seed(seed)
    scene = torch.randint(20, 235, (batch, 1, size, size, 3), generator=generator)
    noise = torch.randint(-12, 13, (batch, frames, size, size, 3), generator=generator)
    return (scene + noise).to(torch.uint8)
