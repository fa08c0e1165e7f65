"""What a network is told: negative Pearson or the contrast of spectra, and λ times one auxiliary objective.

The paper weighs an auxiliary loss by λ without defining it; here it is a choice, so that λ means something.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..errors import ArgumentError, UnknownNameError
from ..nn.output import Output
from ..signal.constants import BAND_HZ
from .contrast import contrast_loss, normalised_spectrum

AUXILIARY = ("latent", "spectral", "oscillator", "skin", "cover", "none")
LAG = 3  # frames between the samples that the oscillator's recurrence links
_TINY = 1e-8


@dataclass(frozen=True)
class Terms:
    """The parts of a loss; `total` is what is minimised."""

    total: Tensor
    pearson: Tensor  # mean correlation, −1…1
    auxiliary: Tensor


def correlation(wave: Tensor, target: Tensor) -> Tensor:
    """Pearson's r of each row, (B,T), (B,T) -> (B,); a constant row correlates with nothing: 0."""
    a, b = wave - wave.mean(1, keepdim=True), target - target.mean(1, keepdim=True)
    return (a * b).sum(1) / torch.sqrt((a.square().sum(1) * b.square().sum(1)).clamp_min(_TINY**2))


def negative_pearson(wave: Tensor, target: Tensor) -> Tensor:
    """L_pred of the paper: minus the mean correlation."""
    return -correlation(wave, target).mean()


def spectral(wave: Tensor, target: Tensor, fps: float) -> Tensor:
    """Half the distance of the normalised spectra within the cardiac band: 0 if equal, 1 if disjoint."""
    p, q = (normalised_spectrum(x, fps, BAND_HZ) for x in (wave, target))
    return 0.5 * (p - q).abs().sum(1).mean()


def oscillator_residual(wave: Tensor) -> Tensor:
    """What no damped oscillator explains: 0 for any α, ω of its own, 1 for white noise.

    A free damped oscillator obeys z_t = a z_{t−L} + b z_{t−2L}; a and b are fitted to each wave by least
    squares (closed form), and the share of the energy that is left is returned.
    """
    z = wave - wave.mean(1, keepdim=True)
    now, one, two = z[:, 2 * LAG :], z[:, LAG:-LAG], z[:, : -2 * LAG]
    s11, s12, s22 = (one * one).sum(1), (one * two).sum(1), (two * two).sum(1)
    y1, y2, yy = (now * one).sum(1), (now * two).sum(1), (now * now).sum(1)
    det = (s11 * s22 - s12 * s12).clamp_min(_TINY)
    a, b = (y1 * s22 - y2 * s12) / det, (y2 * s11 - y1 * s12) / det
    left = yy - a * y1 - b * y2
    return (left / yy.clamp_min(_TINY)).mean()


def off_skin(mask: Tensor, skin: Tensor) -> Tensor:
    """−log of the share of each mask that lies on skin: 0 if all of it does, log n if one n-th does.

    mask (B,T,M,h,w) sums to 1, skin (B,S,S) is 0–1; a clip whose skin nobody knows (all 0) costs nothing.
    A second mask is free: it may watch the background.
    """
    known, small = _on_mask(mask, skin)
    if not known.any():
        return mask.new_zeros(())
    small = small / small.amax((1, 2, 3), keepdim=True)
    share = (mask[known, :, 0] * small).sum((-1, -2))  # (B,T)
    return -share.clamp_min(1e-4).log().mean()


def uncovered(mask: Tensor, skin: Tensor) -> Tensor:
    """Kullback–Leibler distance of an even look at all skin from each mask: 0 if the mask is that look.

    Shapes as in `off_skin`. A mask that sits on one cheek is on skin, but averages noise and codec over that
    cheek only; here every part of the skin that it leaves out costs.
    """
    known, small = _on_mask(mask, skin)
    if not known.any():
        return mask.new_zeros(())
    even = small / small.sum((1, 2, 3), keepdim=True)  # (B,1,h,w)
    distance = even * (even.clamp_min(1e-9).log() - mask[known, :, 0].clamp_min(1e-6).log())
    return distance.sum((-1, -2)).mean()


def _on_mask(mask: Tensor, skin: Tensor) -> tuple[Tensor, Tensor]:
    """Whose skin is known (B,), and how much of it each cell of their masks shows (known,1,h,w)."""
    height, width = mask.shape[-2:]
    small = F.adaptive_avg_pool2d(skin[:, None], (height, width))  # (B,1,h,w)
    known = small.amax((1, 2, 3)) > 0
    return known, small[known]


_OF_MASKS = {"skin": off_skin, "cover": uncovered}


class LatentDecoder(nn.Module):
    """Rebuild z_raw from the cleaned sequence: MSE + 0.1 (1 − cos), on z_raw standardised over the clip."""

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


def slope(wave: Tensor) -> Tensor:
    """The change to the next frame (B,T); the last one is 0."""
    return torch.diff(wave, dim=1, append=wave[:, -1:])


class Objective(nn.Module):
    """Main loss + λ·auxiliary of an output, against a wave that may be delayed, or against its slope."""

    def __init__(
        self,
        auxiliary: str,
        weight: float,
        fps: float,
        *,
        warmup_frames: int,
        delay_frames: int,
        example: Output,
        main: str = "pearson",
        target: str = "wave",
    ) -> None:
        super().__init__()
        self.main, self.target = main, target
        # The block of contrast-phys: its waves have the wave itself as their mean.
        if main == "contrast" and not _is_block(example):
            raise ArgumentError("loss.main", main, "'pearson': only contrast-phys shows a block of waves")
        if auxiliary not in AUXILIARY:
            raise UnknownNameError("auxiliary loss", auxiliary, AUXILIARY)
        self.auxiliary, self.weight, self.fps = auxiliary, weight, fps
        self.first, self.delay = max(warmup_frames, delay_frames), delay_frames
        self.decoder: LatentDecoder | None = None
        if auxiliary == "latent":
            if example.latent is None or example.raw is None:
                raise ArgumentError(
                    "loss.auxiliary", auxiliary, "another one: this network shows no latent sequence"
                )
            self.decoder = LatentDecoder(example.latent.shape[2], example.raw.shape[2])
        if auxiliary in _OF_MASKS and example.mask is None:
            raise ArgumentError("loss.auxiliary", auxiliary, "another one: this network shows no mask")

    def forward(
        self, output: Output, target: Tensor, labelled: Tensor | None = None, skin: Tensor | None = None
    ) -> Terms:
        """Judge the frames from `first` on: the wave at t should be the target at t − delay.

        `labelled` (B,) says whose target the contrast may look at, `skin` (B,S,S) where masks should lie.
        """
        wave = output.wave[:, self.first :]
        if self.target == "difference":
            target = slope(target)
        target = target[:, self.first - self.delay : target.shape[1] - self.delay]
        agreement = correlation(wave, target).mean()
        main = -agreement
        if self.main == "contrast" and output.latent is not None:
            block = output.latent[:, self.first :]
            main = contrast_loss(block, self.fps, references=target, labelled=labelled).total
        extra = main.new_zeros(())
        if self.decoder is not None and output.latent is not None and output.raw is not None:
            extra = self.decoder(output.latent[:, self.first :], output.raw[:, self.first :])
        elif self.auxiliary == "spectral":
            extra = spectral(wave, target, self.fps)
        elif self.auxiliary == "oscillator":
            extra = oscillator_residual(wave)
        elif self.auxiliary in _OF_MASKS and output.mask is not None and skin is not None:
            extra = _OF_MASKS[self.auxiliary](output.mask[:, self.first :], skin)
        return Terms(main + self.weight * extra, agreement.detach(), extra.detach())


def _is_block(example: Output) -> bool:
    wave, latent = example.wave, example.latent
    return latent is not None and bool(wave.any()) and torch.allclose(latent.mean(-1), wave, atol=1e-5)
