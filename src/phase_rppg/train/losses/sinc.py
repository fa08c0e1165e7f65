"""SiNC: training without references and without contrast, from assumptions about the spectrum of a pulse.

The power of the wave is made to lie within the band of heart rates (bandwidth), close to one frequency
(sparsity), and the frequencies of a batch are made to spread over the band (variance).

J. Speth, N. Vance, P. Flynn and A. Czajka, Non-contrastive unsupervised learning of physiological signals
from video, CVPR 2023. Band, tolerance and length of the transform are those of the authors' repository
CVRL/SiNC-rPPG (src/utils/losses.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...errors import ArgumentError

SINC_BAND_HZ = (40 / 60, 180 / 60)
PEAK_WIDTH_HZ = 0.1  # power this close to the largest bin counts as signal
TRANSFORM = 5400  # points of the zero-padded Fourier transform
_TINY = 1e-5


@dataclass(frozen=True)
class SincTerms:
    """The three terms, each between 0 and 1; training minimises `total`."""

    bandwidth: Tensor  # share of the power outside of the band
    sparsity: Tensor  # share of the power in the band that is not at its peak
    variance: Tensor  # squared distance of the batch's cumulative spectrum from that of the uniform one

    @property
    def total(self) -> Tensor:
        return self.bandwidth + self.sparsity + self.variance


def sinc_loss(waves: Tensor, fps: float, band_hz: tuple[float, float] = SINC_BAND_HZ) -> SincTerms:
    """Return the loss of the waves (B,T) of a batch.

    terms = sinc_loss(network(pixels).wave, fps=30)
    terms.total.backward()
    """
    if waves.ndim != 2 or waves.shape[1] < 2:
        raise ArgumentError("waves", f"shape {tuple(waves.shape)}", "(B,T)")
    points = max(TRANSFORM, waves.shape[1])
    spectrum = torch.fft.rfft(waves - waves.mean(1, keepdim=True), n=points)
    power = spectrum.real**2 + spectrum.imag**2  # (B,F)
    # A wave has no scale of its own; without this the constant in the denominators would matter.
    power = power / power.sum(1, keepdim=True).clamp_min(torch.finfo(power.dtype).tiny)
    hz = torch.fft.rfftfreq(points, 1 / fps, device=waves.device)
    inside = (hz >= band_hz[0]) & (hz <= band_hz[1])
    bandwidth = (power[:, ~inside].sum(1) / (power.sum(1) + _TINY)).mean()
    return SincTerms(bandwidth, _sparsity(power[:, inside], hz[inside]), _variance(power[:, inside]))


def _sparsity(power: Tensor, hz: Tensor) -> Tensor:
    peak = hz[power.argmax(1)][:, None]  # (B,1)
    signal = (power * ((hz - peak).abs() <= PEAK_WIDTH_HZ)).sum(1)
    total = power.sum(1)
    return ((total - signal) / (total + _TINY)).mean()


def _variance(power: Tensor) -> Tensor:
    shares = power / power.sum(1, keepdim=True).clamp_min(torch.finfo(power.dtype).tiny)
    uniform = torch.full_like(shares[0], 1 / shares.shape[1])
    return (shares.mean(0).cumsum(0) - uniform.cumsum(0)).square().mean()
