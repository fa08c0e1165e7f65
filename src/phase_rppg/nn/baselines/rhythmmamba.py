"""RhythmMamba: a state space model that reads a clip from several starts, and a mixer of frequencies.

A stem fuses each frame with the differences around it, and attention weights its cells. In each block, one
Mamba layer reads the sequence from its beginning and from each of its last three quarters; the outputs are
averaged. A feed-forward part scales each channel of the Fourier transform over the clip by a complex number.

The release stores these numbers as the diagonals of two matrices per block and never uses the rest
(`torch.einsum("bnc,cc->bnc")`). Here only the diagonals are parameters.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import preprocessing
from ..output import Output
from ..published_training import PublishedTraining
from .physmamba import DirectionalScan, initialise

NAME = "rhythmmamba"
CITATION = (
    "B. Zou, Z. Guo, X. Hu and H. Ma, RhythmMamba: fast, lightweight and accurate remote physiological "
    "measurement, AAAI 2025"
)
CAUSAL = False
SIZE = 128
FRAMES = 160
TARGET = "wave"
# The authors' repository zizheng-guo/RhythmMamba: configs/train_configs/cross/PURE_UBFC-rPPG_RHYTHMMAMBA.yaml
# and trainer/RhythmMambaTrainer.py (AdamW without decay, OneCycleLR, the loss of RhythmFormer). Clips are
# mirrored, and the rate of half of them is halved above 90 bpm and doubled below 75.
TRAINING = PublishedTraining(
    source="zizheng-guo/RhythmMamba, PURE_UBFC-rPPG_RHYTHMMAMBA.yaml and RhythmMambaTrainer.py",
    loss="rhythmformer", target="wave", optimiser="adamw", lr=3e-4, schedule="one-cycle", epochs=30, batch=16,
    frames=160, size=128, pixels="Standardized", flip=0.5, octave=0.5,
    selection="validation",
)  # fmt: skip
# Layer sizes of the authors' release (width 96, 24 blocks), without the 1,760,256 numbers that it never uses.
REFERENCE_PARAMETERS = 3_161_869
SEGMENTS = 4  # starts of the Mamba layer
STATES = 48  # of the state space model, per channel


class FusionStem(nn.Module):
    """Fuse each frame twice with the differences between the five frames around it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        self.plain, self.change = self._layer(3, half, stride=2), self._layer(12, half, stride=2)
        self.mix_plain, self.mix_change = self._layer(half, width), self._layer(half, width)

    @staticmethod
    def _layer(inside: int, outside: int, stride: int = 1) -> nn.Sequential:
        conv = nn.Conv2d(inside, outside, 7, stride=stride, padding=3)
        return nn.Sequential(conv, nn.BatchNorm2d(outside), nn.ReLU(), nn.MaxPool2d(2))

    def forward(self, frames: Tensor) -> Tensor:  # (B,T,3,H,W) -> (B,C,T,H/8,W/8)
        count = frames.shape[1]
        place = torch.arange(count, device=frames.device)
        around = [frames[:, (place + step).clamp(0, count - 1)] for step in range(-2, 3)]
        changes = torch.cat([later - earlier for earlier, later in pairwise(around)], dim=2)
        change = self.change(changes.flatten(0, 1))
        plain = self.mix_plain((self.plain(frames.flatten(0, 1)) + change) / 2)
        fused = (plain + self.mix_change(change)) / 2
        return fused.unflatten(0, (-1, count)).transpose(1, 2)


class Mamba(nn.Module):
    """A gated selective state space model in the direction of time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        inner = 2 * width
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.scan = DirectionalScan(inner, -(-width // 16), STATES)
        self.out_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:  # (B,T,C) -> same
        x, gate = self.in_proj(x).chunk(2, dim=-1)
        out: Tensor = self.out_proj(self.scan(x) * F.silu(gate))
        return out


class FrequencyMixer(nn.Module):
    """Scale each channel of the Fourier transform over the clip, between two linear layers."""

    def __init__(self, width: int, ratio: int) -> None:
        super().__init__()
        wide = width * ratio
        self.before = nn.Sequential(nn.Conv1d(width, wide, 1, bias=False), nn.BatchNorm1d(wide), nn.ReLU())
        self.after = nn.Sequential(nn.Conv1d(wide, width, 1, bias=False), nn.BatchNorm1d(width))
        self.real, self.imag, self.real_bias, self.imag_bias = (
            nn.Parameter(0.02 * torch.randn(wide, 1)) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:  # (B,T,C) -> same
        spectrum = torch.fft.fft(self.before(x.transpose(1, 2)), dim=-1, norm="ortho")  # (B,2C,T)
        real = (spectrum.real * self.real - spectrum.imag * self.imag + self.real_bias).relu()
        imag = (spectrum.imag * self.real + spectrum.real * self.imag + self.imag_bias).relu()
        back = torch.fft.ifft(torch.complex(real, imag), dim=-1, norm="ortho").real
        out: Tensor = self.after(back).transpose(1, 2)
        return out


class Block(nn.Module):
    def __init__(self, width: int, ratio: int, drop: float) -> None:
        super().__init__()
        self.norm, self.norm_mamba, self.norm_mixer = (nn.LayerNorm(width) for _ in range(3))
        self.mamba, self.mixer = Mamba(width), FrequencyMixer(width, ratio)
        self.drop = drop  # probability of leaving out a branch of a clip during training

    def forward(self, x: Tensor) -> Tensor:  # (B,T,C) -> same
        x = x + self._dropped(self.norm_mamba(self.from_several_starts(self.norm(x))))
        return x + self._dropped(self.mixer(self.norm_mixer(x)))

    def from_several_starts(self, x: Tensor) -> Tensor:
        """Return the mean, at each time, of the outputs of the starts that come before it."""
        step = x.shape[1] // SEGMENTS
        total = self.mamba(x)
        for start in range(1, SEGMENTS):
            later = self.mamba(x[:, start * step :])
            total = total + F.pad(later, (0, 0, start * step, 0))
        place = torch.arange(x.shape[1], device=x.device) // step
        return total / (place + 1).clamp(max=SEGMENTS).view(1, -1, 1)

    def _dropped(self, x: Tensor) -> Tensor:
        if not (self.training and self.drop):
            return x
        kept = torch.rand(x.shape[0], 1, 1, device=x.device) >= self.drop
        return x * kept / (1 - self.drop)


class RhythmMamba(nn.Module):
    def __init__(
        self, size: int = SIZE, width: int = 96, depth: int = 24, ratio: int = 2, drop: float = 0.1
    ) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=8, multiple=8)
        self.stem = FusionStem(width // 4)
        conv = nn.Conv3d(width // 4, width, (2, 5, 5), stride=(2, 1, 1), padding=(0, 2, 2))
        self.tokens = nn.Sequential(conv, nn.BatchNorm3d(width))
        # The release shifts the rates by one block: the first two blocks never drop a branch.
        rates = [0.0, *torch.linspace(0, drop, depth).tolist()]
        self.blocks = nn.Sequential(*(Block(width, ratio, rates[index]) for index in range(depth)))
        self.head = nn.Conv1d(width, 1, 1)
        initialise(self)

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size, min_frames=8, frames_multiple=8)
        x = self.tokens(self.stem(preprocessing.standardise(frames)))  # (B,C,T/2,H/8,W/8)
        gate = x.sigmoid()
        mask = gate / gate.sum((-1, -2), keepdim=True) * (x.shape[-1] * x.shape[-2] / 2)
        x = (x * mask).mean((-1, -2)).transpose(1, 2)  # (B,T/2,C)
        latent = self.blocks(x).repeat_interleave(2, dim=1)  # (B,T,C)
        return Output(self.head(latent.transpose(1, 2)).squeeze(1), latent)


def build(**overrides: Any) -> RhythmMamba:
    """Build RhythmMamba for crops of `size` pixels (steps of 8), clips in steps of eight frames."""
    return RhythmMamba(**preprocessing.options_of(RhythmMamba, NAME, overrides))
