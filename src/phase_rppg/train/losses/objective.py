"""The training objective: a main loss plus λ times an auxiliary loss.

The paper has an auxiliary loss with the weight λ but does not define it. Here the recipe chooses it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import ArgumentError, UnknownNameError
from ...nn.output import Output
from ..recipe import Loss
from .contrast import contrast_loss
from .frequency import physformer_loss, rhythmformer_loss
from .mask import coverage_loss, off_skin_loss
from .sinc import sinc_loss
from .waveform import negative_pearson, oscillator_residual, slope, spectral_distance, standardised_error

MASK_LOSSES = {"skin": off_skin_loss, "cover": coverage_loss}
AUXILIARY = ("latent", "spectral", "oscillator", *MASK_LOSSES, "none")


@dataclass(frozen=True)
class Terms:
    """The terms of the loss; training minimises `total`."""

    total: Tensor
    pearson: Tensor  # mean correlation, −1…1
    auxiliary: Tensor


class LatentDecoder(nn.Module):
    """Reconstruct z_raw from the latent sequence: MSE + 0.1 (1 − cos), z_raw standardised over the clip."""

    def __init__(self, latent: int, raw: int) -> None:
        super().__init__()
        hidden = max(latent, raw // 2)
        self.layers = nn.Sequential(nn.Linear(latent, hidden), nn.GELU(), nn.Linear(hidden, raw))

    def forward(self, latent: Tensor, raw: Tensor) -> Tensor:
        """(B,T,D), (B,T,C) -> ()."""
        raw = raw.detach()
        wanted = (raw - raw.mean(1, keepdim=True)) / (raw.std(1, keepdim=True) + 1e-5)
        rebuilt = self.layers(latent)
        return F.mse_loss(rebuilt, wanted) + 0.1 * (1 - F.cosine_similarity(rebuilt, wanted, 2).mean())


class Objective(nn.Module):
    """The loss of a network's output: main + λ · auxiliary."""

    def __init__(self, loss: Loss, fps: float, *, delay_frames: int, example: Output) -> None:
        """`example` is an output of the network; it shows which losses the network supports."""
        super().__init__()
        main, auxiliary = loss.main, loss.auxiliary
        self.main, self.target = main, loss.target
        if main == "contrast" and not _is_block(example):
            raise ArgumentError("loss.main", main, "'pearson': only contrast-phys has an ST-rPPG block")
        if auxiliary not in AUXILIARY:
            raise UnknownNameError("auxiliary loss", auxiliary, AUXILIARY)
        self.auxiliary, self.weight, self.fps = auxiliary, loss.weight, fps
        self.first, self.delay = max(loss.warmup_frames, delay_frames), delay_frames
        self.decoder: LatentDecoder | None = None
        if auxiliary == "latent":
            if example.latent is None or example.raw is None:
                raise ArgumentError(
                    "loss.auxiliary", auxiliary, "another one: this network returns no latent sequence"
                )
            self.decoder = LatentDecoder(example.latent.shape[2], example.raw.shape[2])
        if auxiliary in MASK_LOSSES and example.mask is None:
            raise ArgumentError("loss.auxiliary", auxiliary, "another one: this network returns no mask")

    def forward(
        self,
        output: Output,
        target: Tensor,
        labelled: Tensor | None = None,
        skin: Tensor | None = None,
        progress: float = 0.0,
    ) -> Terms:
        """Compare the wave at t with the target (B,T) at t − delay, without the warm-up frames.

        `labelled` (B,) marks the clips whose target the contrastive loss uses; `skin` (B,S,S) is the skin
        mask for the losses of the attention mask; `progress` is the share of the epochs that are finished.
        """
        wave = output.wave[:, self.first :]
        if self.target == "difference":
            target = slope(target)
        target = target[:, self.first - self.delay : target.shape[1] - self.delay]
        pearson = negative_pearson(wave, target)
        main = self._main(output, wave, target, labelled, progress)
        main = pearson if main is None else main
        extra = main.new_zeros(())
        if self.decoder is not None and output.latent is not None and output.raw is not None:
            extra = self.decoder(output.latent[:, self.first :], output.raw[:, self.first :])
        elif self.auxiliary == "spectral":
            extra = spectral_distance(wave, target, self.fps)
        elif self.auxiliary == "oscillator":
            extra = oscillator_residual(wave)
        elif self.auxiliary in MASK_LOSSES and output.mask is not None and skin is not None:
            extra = MASK_LOSSES[self.auxiliary](output.mask[:, self.first :], skin)
        return Terms(main + self.weight * extra, -pearson.detach(), extra.detach())

    def _main(
        self, output: Output, wave: Tensor, target: Tensor, labelled: Tensor | None, progress: float
    ) -> Tensor | None:
        """Return the main loss; None if it is the negative Pearson correlation."""
        if self.main == "contrast" and output.latent is not None:
            block = output.latent[:, self.first :]
            return contrast_loss(block, self.fps, references=target, labelled=labelled).total
        if self.main == "mse":
            return standardised_error(wave, target)
        if self.main == "physformer":
            return physformer_loss(wave, target, self.fps, progress).total
        if self.main == "rhythmformer":
            return rhythmformer_loss(wave, target, self.fps).total
        if self.main == "sinc":
            return sinc_loss(wave, self.fps).total
        return None


def _is_block(example: Output) -> bool:
    """Whether the latent sequence is an ST-rPPG block, whose mean over places is the wave."""
    wave, latent = example.wave, example.latent
    return latent is not None and bool(wave.any()) and torch.allclose(latent.mean(-1), wave, atol=1e-5)
