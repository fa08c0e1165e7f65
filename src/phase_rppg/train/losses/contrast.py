"""Contrast-Phys+: a contrastive loss for videos without references, or with references for some of them.

The loss uses two assumptions. Over a short time the pulse has the same spectrum at every place of a face,
and the spectra of two videos differ. Short pieces are drawn at random from the waves at several places (the
ST-rPPG block). The distance between normalised power spectra in the band of heart rates is made small within
a video and large between videos. The reference of a video, if there is one, is treated as another wave of
that video. Its delay does not matter, because power spectra ignore it.

Z. Sun and X. Li, Contrast-Phys+, IEEE TPAMI 2024.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import ArgumentError

CONTRAST_PHYS_BAND_HZ = (40 / 60, 250 / 60)  # of the paper


@dataclass(frozen=True)
class ContrastTerms:
    """The four terms, each a mean squared distance of spectra; training minimises `total`."""

    attract: Tensor  # between pieces of one video
    repel: Tensor  # minus the distance between pieces of different videos
    attract_reference: Tensor  # between pieces of a video and of its own reference
    repel_reference: Tensor  # minus the distance between pieces of a video and of another video's reference

    @property
    def total(self) -> Tensor:
        return self.attract + self.repel + self.attract_reference + self.repel_reference


def contrast_loss(
    block: Tensor,
    fps: float,
    *,
    references: Tensor | None = None,
    labelled: Tensor | None = None,
    pieces: int = 4,
    piece_s: float | None = None,
    band_hz: tuple[float, float] = CONTRAST_PHYS_BAND_HZ,
    generator: torch.Generator | None = None,
) -> ContrastTerms:
    """Return the loss of ST-rPPG blocks (B,T,S) of two or more different videos.

    `labelled` (B,) marks the videos whose `references` (B,T) are used; the default is all. From each place,
    `pieces` of `piece_s` seconds are drawn (default: half the clip). Without references the loss is
    unsupervised.

        terms = contrast_loss(network(pixels).latent, fps=30)
        terms.total.backward()
    """
    videos, frames = _checked(block)
    length = frames // 2 if piece_s is None else round(piece_s * fps)
    if not 2 <= length <= frames:
        raise ArgumentError("piece_s", piece_s, f"2 frames to the whole clip ({frames / fps:.2f} s)")
    if pieces < 1:
        raise ArgumentError("pieces", pieces, "at least 1")
    mean = block.mean(-1, keepdim=True)
    waves = torch.cat([block, mean], dim=-1).transpose(1, 2)  # (B,S+1,T): the places and their mean
    spectra = piece_spectra(waves, length, pieces, fps, band_hz, generator)  # (B,M,F)

    other = ~torch.eye(videos, dtype=torch.bool, device=block.device)  # (B,B)
    between = _distances(spectra, spectra)  # (B,B): mean over pairs of pieces
    count = spectra.shape[1]
    # A piece has no distance to itself: the mean is over the other pieces only.
    attract = between.diagonal().mean() * (count / (count - 1)) if count > 1 else block.new_zeros(())
    repel = -between[other].mean()

    known = _known(references, labelled, block)
    if references is None or not known.any():
        zero = block.new_zeros(())
        return ContrastTerms(attract, repel, zero, zero)
    per_place = waves.shape[1]
    reference_waves = references[known].to(block.dtype).unsqueeze(1).expand(-1, per_place, -1)  # (L,S+1,T)
    reference_spectra = piece_spectra(reference_waves, length, pieces, fps, band_hz, generator)
    to_reference = _distances(spectra, reference_spectra)  # (B,L)
    own = torch.eye(videos, dtype=torch.bool, device=block.device)[:, known]  # (B,L)
    return ContrastTerms(attract, repel, to_reference[own].mean(), -to_reference[~own].mean())


def piece_spectra(
    waves: Tensor,
    length: int,
    pieces: int,
    fps: float,
    band_hz: tuple[float, float],
    generator: torch.Generator | None,
) -> Tensor:
    """Return normalised spectra (B,N·pieces,F) of randomly placed pieces of waves (B,N,T)."""
    batch, places, frames = waves.shape
    starts = torch.randint(0, frames - length + 1, (batch, places, pieces), generator=generator)
    windows = waves.unfold(-1, length, 1)  # (B,N,T−length+1,length), a view
    index = starts.to(waves.device).unsqueeze(-1).expand(-1, -1, -1, length)
    return normalised_spectrum(windows.gather(2, index).flatten(1, 2), fps, band_hz)


def normalised_spectrum(
    waves: Tensor, fps: float, band_hz: tuple[float, float] = CONTRAST_PHYS_BAND_HZ
) -> Tensor:
    """Return the power spectrum of (…,T) within the band, with sum one: (…,F)."""
    frames = waves.shape[-1]
    hz = torch.fft.rfftfreq(frames, 1 / fps, device=waves.device)
    inside = (hz >= band_hz[0]) & (hz <= band_hz[1])
    if not inside.any():
        raise ArgumentError("piece_s", f"{frames / fps:.2f} s", f"pieces long enough to resolve {band_hz} Hz")
    spectrum = torch.fft.rfft(waves - waves.mean(-1, keepdim=True), norm="forward")
    power = (spectrum.real**2 + spectrum.imag**2)[..., inside]
    return power / power.sum(-1, keepdim=True).clamp_min(torch.finfo(power.dtype).tiny)


def _distances(left: Tensor, right: Tensor) -> Tensor:
    """Return the mean squared difference over all pairs of spectra (A,M,F) and (B,N,F): (A,B).

    It is computed from moments: the mean of |x − y|² is the mean of |x|² plus that of |y|² minus twice the
    product of the means.
    """
    bins = left.shape[-1]
    left_power, right_power = (side.square().sum(-1).mean(-1) for side in (left, right))
    products = left.mean(1) @ right.mean(1).T
    return (left_power[:, None] + right_power[None] - 2 * products) / bins


def _checked(block: Tensor) -> tuple[int, int]:
    if block.ndim != 3 or block.shape[-1] < 1:
        raise ArgumentError("block", f"shape {tuple(block.shape)}", "(B,T,S), the latent of contrast-phys")
    if block.shape[0] < 2:
        raise ArgumentError("block", f"{block.shape[0]} video", "two or more different videos to contrast")
    return block.shape[0], block.shape[1]


def _known(references: Tensor | None, labelled: Tensor | None, block: Tensor) -> Tensor:
    videos, frames = block.shape[:2]
    if references is not None and references.shape != (videos, frames):
        raise ArgumentError("references", f"shape {tuple(references.shape)}", f"({videos},{frames})")
    if labelled is None:
        return torch.ones(videos, dtype=torch.bool, device=block.device)
    if labelled.shape != (videos,):
        raise ArgumentError("labelled", f"shape {tuple(labelled.shape)}", f"({videos},)")
    return labelled.to(block.device).bool()
