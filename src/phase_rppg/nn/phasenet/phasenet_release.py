"""The network of the authors' public code for PHASE-Net, which differs from the paper and is not causal.

Written from the layer list of the repository Alex036225/PhaseNet, so that anybody can test which of the two
networks gives the paper's table. Differences from `phasenet`:

- a shift by one frame replaces ZAS: an eighth of the channels comes from the next frame, and the next eighth,
  meant for the previous frame, is always zero, because its slice is empty;
- instance norm and squeeze-excite use the whole clip;
- four gated layers (k = 3, dilations 1, 2, 4, 8) are padded on both sides and have weight norms;
- a recurrent head (two GRU layers) gives the wave.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from .. import preprocessing
from ..output import Output
from ..published_layout import PublishedLayout
from ..published_training import PublishedTraining

NAME = "phasenet-release"
CITATION = (
    "B. Zhao, D. Guo, J. Cao, Y. Xu, B. Zou, T. Tan, Y. Sun and Z. Yu, PHASE-Net: Physics-Grounded Harmonic "
    "Attention System for Efficient Remote Photoplethysmography Measurement, CVPR 2026 (public code)"
)
CAUSAL = False
SIZE = 128
FRAMES = 128
TARGET = "wave"
# Alex036225/PhaseNet, configs/PhaseNet_UBFC_UBFC_072_100_train_test.yaml and trainer/PhaseNetTrainer.py:
# Adam, 10 epochs, batch 1, the reconstruction of the latent sequence with the weight 0.2, no validation.
# After each epoch the release also tests on the test subjects; this package does not.
TRAINING = PublishedTraining(
    source="Alex036225/PhaseNet, PhaseNet_UBFC_UBFC_072_100_train_test.yaml and PhaseNetTrainer.py",
    loss="pearson", target="wave", lr=1e-4, epochs=10, batch=1, frames=128, size=128, pixels="Raw",
    auxiliary="latent", weight=0.2,
)  # fmt: skip
# At inference; the release has 2.5 M more for the auxiliary loss. The paper prints 0.29 M.
REFERENCE_PARAMETERS = 812_290
CHANNELS = (16, 32, 64, 128)
EXPANSION = 4
FEATURES = 128  # of the sequences before and after the temporal part
RECURRENT = 64  # of the GRU
SHIFTED = 8  # one of so many channels comes from the next frame, and another one is zero


class Shift(nn.Module):
    """Take an eighth of the channels from the next frame and set the following eighth to zero."""

    def forward(self, x: Tensor) -> Tensor:  # (B,C,T,H,W) -> same
        fold = x.shape[1] // SHIFTED
        ahead = F.pad(x[:, :fold, 1:], (0, 0, 0, 0, 0, 1))
        return torch.cat([ahead, torch.zeros_like(x[:, fold : 2 * fold]), x[:, 2 * fold :]], dim=1)


class SpaceConv(nn.Conv3d):
    """A depthwise 1×3×3 convolution; frame by frame in 2-D, which is faster on a CPU."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, (1, 3, 3), padding=(0, 1, 1), groups=channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        frames = x.transpose(1, 2)  # (B,T,C,H,W)
        y = F.conv2d(frames.flatten(0, 1), self.weight[:, :, 0], padding=1, groups=self.groups)
        return y.unflatten(0, frames.shape[:2]).transpose(1, 2)


class TimeConv(nn.Conv3d):
    """A depthwise 3×1×1 convolution, padded on both sides, in 2-D over time and cells."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels, (3, 1, 1), padding=(1, 0, 0), groups=channels, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y = F.conv2d(x.flatten(3), self.weight[..., 0], padding=(1, 0), groups=self.groups)  # (B,C,T,H·W)
        return y.unflatten(3, x.shape[3:])


class ClipExcite(nn.Module):
    """Squeeze-excite whose weights come from the mean over the whole clip."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(channels, channels // 4, 1, bias=False),
            nn.ReLU(),
            nn.Conv3d(channels // 4, channels, 1, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.layers(x.mean((2, 3, 4), keepdim=True))


def _normed(conv: nn.Module, channels: int) -> nn.Sequential:
    return nn.Sequential(conv, nn.InstanceNorm3d(channels), nn.ReLU())


def _block(inputs: int, outputs: int) -> nn.Sequential:
    """Return a block: expand, shift, space, time, squeeze-excite, project, pool by 2."""
    wide = inputs * EXPANSION
    return nn.Sequential(
        _normed(nn.Conv3d(inputs, wide, 1, bias=False), wide),
        Shift(),
        _normed(SpaceConv(wide), wide),
        _normed(TimeConv(wide), wide),
        ClipExcite(wide),
        nn.Sequential(nn.Conv3d(wide, outputs, 1, bias=False), nn.InstanceNorm3d(outputs)),
        nn.MaxPool3d((1, 2, 2)),
    )


class GatedLayer(nn.Module):
    """tanh × sigmoid of two dilated convolutions, padded on both sides, with a residual connection."""

    def __init__(self, inputs: int, outputs: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.value, self.gate = (
            weight_norm(nn.Conv1d(inputs, outputs, 3, padding=dilation, dilation=dilation)) for _ in range(2)
        )
        self.residual = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:  # (B,C,T) -> (B,C,T)
        gated = self.drop(self.value(x).tanh() * self.gate(x).sigmoid())
        return (gated + self.residual(x)).relu()


class PhaseNetRelease(nn.Module):
    def __init__(self, size: int = SIZE, layers: int = 4, hidden: int = 128, dropout: float = 0.2) -> None:
        super().__init__()
        self.size = preprocessing.legal_size(size, at_least=8)
        self.stem = _normed(nn.Conv3d(3, CHANNELS[0], (1, 5, 5), padding=(0, 2, 2)), CHANNELS[0])
        self.blocks = nn.Sequential(*map(_block, CHANNELS[:-1], CHANNELS[1:]))
        width = CHANNELS[-1]
        self.attention = nn.Sequential(
            nn.Conv2d(width, width // 2, 3, padding=1), nn.ReLU(), nn.Conv2d(width // 2, 1, 3, padding=1)
        )
        self.features = nn.Linear(width, FEATURES)
        sizes = [2 * FEATURES, *[hidden] * layers]
        self.temporal = nn.Sequential(
            *(GatedLayer(sizes[i], sizes[i + 1], 2**i, dropout) for i in range(layers))
        )
        self.mix = nn.Conv1d(hidden, FEATURES, 1)
        self.recurrent = nn.GRU(FEATURES, RECURRENT, num_layers=2, batch_first=True)
        self.head = nn.Sequential(nn.Linear(RECURRENT, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, pixels: Tensor) -> Output:  # (B,T,H,W,3)
        frames = preprocessing.frames_of(pixels, size=self.size)
        x = self.blocks(self.stem(preprocessing.channels_first(frames)))  # (B,128,T,H/8,W/8)
        maps = x.transpose(1, 2)  # (B,T,128,h,w)
        scores = self.attention(maps.flatten(0, 1)).flatten(1).softmax(-1)  # (B·T,h·w)
        mask = scores.view(*maps.shape[:2], 1, *maps.shape[3:])  # (B,T,1,h,w)
        raw = self.features((maps * mask).sum((-1, -2)))  # (B,T,128)
        slope = F.pad(raw[:, 1:] - raw[:, :-1], (0, 0, 1, 0))  # the first one is 0
        z = self.temporal(torch.cat([raw, slope], dim=-1).transpose(1, 2))  # (B,128,T)
        latent = self.mix(z).transpose(1, 2)  # (B,T,128)
        wave = self.head(self.recurrent(latent)[0]).squeeze(-1)
        return Output(wave, latent, mask, raw)


def _published_names() -> dict[str, str]:
    names = {"stem.0": "base_encoder.0", "features": "encoder_head", "mix": "temporal_model.final_conv"}
    names |= {f"attention.{part}": f"attention_head.attention_conv.{part}" for part in (0, 2)}
    names |= {"recurrent": "regressor_head.gru"}
    names |= {f"head.{part}": f"regressor_head.head.{part}" for part in (0, 2)}
    parts = {"0.0": "stage1.0", "2.0": "stage2.0", "3.0": "stage3.0", "5.0": "proj.0"}
    parts |= {"4.layers.0": "se.fc.0", "4.layers.2": "se.fc.2"}
    for index in range(3):
        names |= {
            f"blocks.{index}.{ours}": f"base_encoder.{index + 3}.{part}" for ours, part in parts.items()
        }
    for index in range(4):
        ours, theirs = f"temporal.{index}", f"temporal_model.network.{index}"
        names |= {f"{ours}.value": f"{theirs}.conv_linear", f"{ours}.gate": f"{theirs}.conv_gate"}
        names[f"{ours}.residual"] = f"{theirs}.downsample"
    return names


# The tensors of the auxiliary loss are not used at inference.
PUBLISHED_LAYOUT = PublishedLayout(_published_names(), ignored=("projection_encoder.*", "decoder.*"))


def build(**overrides: Any) -> PhaseNetRelease:
    """Build the network of the public code for crops of `size` pixels (8 or more)."""
    return PhaseNetRelease(**preprocessing.options_of(PhaseNetRelease, NAME, overrides))
