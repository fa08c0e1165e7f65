"""PCA: the principal component of the colours that beats most clearly."""

from __future__ import annotations

import numpy as np

from ..signal import filters
from ..types import RgbTrace, Waveform
from . import common, sources

NAME = "pca"
CITATION = (
    "M. Lewandowska, J. Rumiński, T. Kocejko, J. Nowak, "
    '"Measuring pulse rate with a webcam — a non-contact method for evaluating cardiac activity", '
    "FedCSIS 2011"
)
INPUT = "trace"


def extract(trace: RgbTrace) -> Waveform:
    """Principal components of the band-passed relative colours; the one with the clearest line is the
    pulse.
    """
    values = common.colours(trace)
    relative = filters.pulse_band(common.normalised(values), trace.fps)
    relative = relative - relative.mean(0)
    _, axes = np.linalg.eigh(relative.T @ relative)
    wave = sources.clearest(relative @ axes, trace.fps, trace.valid)
    return common.wave_on_clock_of(trace, common.upright(wave, values, trace.fps))
