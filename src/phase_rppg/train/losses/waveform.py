"""Losses that compare the predicted waveform with the reference, or with a damped oscillator."""

from __future__ import annotations

import torch
from torch import Tensor

from ...signal.constants import BAND_HZ
from .contrast import normalised_spectrum

LAG = 3  # frames between the samples in the recurrence of the oscillator
_TINY = 1e-8


def correlation(wave: Tensor, target: Tensor) -> Tensor:
    """Return Pearson's r of each row, (B,T), (B,T) -> (B,); 0 if a row is constant."""
    a, b = wave - wave.mean(1, keepdim=True), target - target.mean(1, keepdim=True)
    return (a * b).sum(1) / torch.sqrt((a.square().sum(1) * b.square().sum(1)).clamp_min(_TINY**2))


def negative_pearson(wave: Tensor, target: Tensor) -> Tensor:
    """Return L_pred of the paper: minus the mean correlation of (B,T) and (B,T)."""
    return -correlation(wave, target).mean()


def standardised_error(wave: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared error of (B,T) to the target (B,T), each clip of which has unit variance."""
    spread = target.std(1, correction=0, keepdim=True).clamp_min(_TINY)
    return (wave - (target - target.mean(1, keepdim=True)) / spread).square().mean()


def spectral_distance(wave: Tensor, target: Tensor, fps: float) -> Tensor:
    """Return half the L1 distance of the normalised spectra in the cardiac band, from 0 (equal) to 1."""
    p, q = (normalised_spectrum(x, fps, BAND_HZ) for x in (wave, target))
    return 0.5 * (p - q).abs().sum(1).mean()


def oscillator_residual(wave: Tensor) -> Tensor:
    """Return the share of the energy that no damped oscillator explains: 1 for white noise.

    A free damped oscillator obeys z_t = a z_{t−L} + b z_{t−2L}. Least squares gives a and b for each wave in
    closed form. The residual is 0 for a free oscillation with any α and ω.
    """
    z = wave - wave.mean(1, keepdim=True)
    now, one, two = z[:, 2 * LAG :], z[:, LAG:-LAG], z[:, : -2 * LAG]
    s11, s12, s22 = (one * one).sum(1), (one * two).sum(1), (two * two).sum(1)
    y1, y2, yy = (now * one).sum(1), (now * two).sum(1), (now * now).sum(1)
    det = (s11 * s22 - s12 * s12).clamp_min(_TINY)
    a, b = (y1 * s22 - y2 * s12) / det, (y2 * s11 - y1 * s12) / det
    left = yy - a * y1 - b * y2
    return (left / yy.clamp_min(_TINY)).mean()


def slope(wave: Tensor) -> Tensor:
    """Return the difference to the next frame, (B,T) -> (B,T); the last one is 0."""
    return torch.diff(wave, dim=1, append=wave[:, -1:])
