"""PCA: the principal component of the colours with the highest signal-to-noise ratio."""

from __future__ import annotations

import numpy as np

from ..signal import filters
from ..types import RgbTrace, Waveform
from . import common, source_selection

NAME = "pca"
CITATION = (
    "M. Lewandowska, J. Rumiński, T. Kocejko, J. Nowak, "
    '"Measuring pulse rate with a webcam — a non-contact method for evaluating cardiac activity", '
    "FedCSIS 2011"
)
INPUT = "trace"


def extract(trace: RgbTrace) -> Waveform:
    """Return the principal component of the normalised, band-passed colours with the highest SNR."""
    values = common.checked_colours(trace)
    relative = filters.pulse_band(common.normalised(values), trace.fps)
    relative = relative - relative.mean(0)
    _, axes = np.linalg.eigh(relative.T @ relative)
    wave = source_selection.highest_snr_source(relative @ axes, trace.fps, trace.valid)
    return common.waveform_like(trace, common.orient_pulse(wave, values, trace.fps))
