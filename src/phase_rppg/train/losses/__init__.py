"""The losses: of the waveform, its rate, the attention mask, unsupervised, and their objective."""

from __future__ import annotations

from .contrast import ContrastTerms, contrast_loss
from .frequency import FrequencyTerms, physformer_loss, rhythmformer_loss
from .mask import coverage_loss, off_skin_loss
from .objective import AUXILIARY, LatentDecoder, Objective, Terms
from .sinc import SincTerms, sinc_loss
from .waveform import (
    correlation,
    negative_pearson,
    oscillator_residual,
    slope,
    spectral_distance,
    standardised_error,
)

__all__ = [
    "AUXILIARY",
    "ContrastTerms",
    "FrequencyTerms",
    "LatentDecoder",
    "Objective",
    "SincTerms",
    "Terms",
    "contrast_loss",
    "correlation",
    "coverage_loss",
    "negative_pearson",
    "off_skin_loss",
    "oscillator_residual",
    "physformer_loss",
    "rhythmformer_loss",
    "sinc_loss",
    "slope",
    "spectral_distance",
    "standardised_error",
]
