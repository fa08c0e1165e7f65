"""Losses of the heart rate: the power spectrum of the wave as a classifier of beats per minute.

PhysFormer (Z. Yu et al., CVPR 2022) adds two terms to the negative Pearson correlation: the cross entropy of
the spectrum with the reference rate, and the Kullback–Leibler divergence from a normal distribution around
it. Their weight grows over the epochs (curriculum). RhythmFormer (B. Zou et al., 2025) uses the correlation
and the cross entropy. The spectra have one bin per beat per minute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import ArgumentError
from .waveform import correlation

PHYSFORMER_BPM = (40, 180)  # of the authors' release; the upper limit is excluded
RHYTHMFORMER_BPM = (45, 150)
PHYSFORMER_ALPHA = 0.1  # weight of the correlation
PHYSFORMER_GROWTH = 5.0  # of the weight of the frequency terms, from the first to the last epoch
PHYSFORMER_STD_BPM = 1.0  # of the label distribution
RHYTHMFORMER_ALPHA = 0.2
_FLOOR = 1e-15  # of the label distribution, as in the releases
_REFERENCE_STEP_BPM = 0.5


@dataclass(frozen=True)
class FrequencyTerms:
    """The terms of a frequency loss, each a mean over the clips; training minimises `total`."""

    correlation: Tensor  # 1 − r
    cross_entropy: Tensor
    divergence: Tensor
    total: Tensor


def physformer_loss(wave: Tensor, target: Tensor, fps: float, progress: float = 0.0) -> FrequencyTerms:
    """Return the loss of PhysFormer for waves and references (B,T) after a share `progress` of the epochs.

    Weights: 0.1 for the correlation, 5^progress for the sum of cross entropy and divergence.
    """
    logits, rate = _spectrum_and_rate(wave, target, fps, PHYSFORMER_BPM)
    low, high = PHYSFORMER_BPM
    bins = torch.arange(low, high, device=wave.device, dtype=wave.dtype)
    normal = torch.exp(-((bins - rate[:, None]) ** 2) / (2 * PHYSFORMER_STD_BPM**2))
    labels = (normal / (math.sqrt(2 * math.pi) * PHYSFORMER_STD_BPM)).clamp_min(_FLOOR)  # (B,F)
    divergence = F.kl_div(logits.log_softmax(-1), labels, reduction="sum") / len(wave)
    entropy = F.cross_entropy(logits, rate - low)
    apart = 1 - correlation(wave, target).mean()
    total = PHYSFORMER_ALPHA * apart + PHYSFORMER_GROWTH**progress * (entropy + divergence)
    return FrequencyTerms(apart, entropy, divergence, total)


def rhythmformer_loss(wave: Tensor, target: Tensor, fps: float) -> FrequencyTerms:
    """Return the loss of RhythmFormer for waves and references (B,T): 0.2 (1 − r) + cross entropy.

    The release adds a divergence between two histograms of largest bins. It has no gradient, because
    a largest bin is constant almost everywhere, so it is left out here.
    """
    logits, rate = _spectrum_and_rate(wave, target, fps, RHYTHMFORMER_BPM)
    entropy = F.cross_entropy(logits, rate - RHYTHMFORMER_BPM[0])
    apart = 1 - correlation(wave, target).mean()
    return FrequencyTerms(apart, entropy, torch.zeros_like(entropy), RHYTHMFORMER_ALPHA * apart + entropy)


def bpm_spectrum(wave: Tensor, fps: float, bpm: Tensor) -> Tensor:
    """Return the power (B,F) of waves (B,T) at rates (F,), with a Hann window; each row sums to 1."""
    frames = wave.shape[-1]
    window = torch.hann_window(frames, periodic=False, device=wave.device, dtype=wave.dtype)
    t_s = torch.arange(frames, device=wave.device, dtype=wave.dtype) / fps
    phase = 2 * math.pi * (bpm.to(wave.dtype) / 60)[:, None] * t_s  # (F,T)
    windowed = wave * window
    power = (windowed @ phase.sin().T) ** 2 + (windowed @ phase.cos().T) ** 2  # (B,F)
    return power / power.sum(-1, keepdim=True).clamp_min(torch.finfo(power.dtype).tiny)


def reference_bpm(target: Tensor, fps: float, limits_bpm: tuple[int, int]) -> Tensor:
    """Return the rate (B,) of references (B,T) in whole beats per minute, by the largest spectral bin."""
    low, high = limits_bpm
    bpm = torch.arange(low, high, _REFERENCE_STEP_BPM, device=target.device, dtype=target.dtype)
    centred = target - target.mean(-1, keepdim=True)
    return bpm[bpm_spectrum(centred, fps, bpm).argmax(-1)].long()


def _spectrum_and_rate(
    wave: Tensor, target: Tensor, fps: float, limits_bpm: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Return the spectrum of the standardised wave and the reference rate."""
    if wave.ndim != 2 or wave.shape != target.shape or wave.shape[1] < 2:
        raise ArgumentError(
            "wave", f"shape {tuple(wave.shape)}", f"(B,T) like the target {tuple(target.shape)}"
        )
    spread = wave.std(-1, keepdim=True).clamp_min(1e-8)
    standard = (wave - wave.mean(-1, keepdim=True)) / spread
    bpm = torch.arange(*limits_bpm, device=wave.device)
    return bpm_spectrum(standard, fps, bpm), reference_bpm(target, fps, limits_bpm)
