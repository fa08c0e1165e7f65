"""LGI: remove the direction in which light and motion move the colour, and look at green in what is left."""

from __future__ import annotations

import numpy as np

from ..signal import filters
from ..types import RgbTrace, Waveform
from . import common

NAME = "lgi"
CITATION = (
    "C. S. Pilz, S. Zaunseder, J. Krajewski, V. Blazek, "
    '"Local group invariance for heart rate estimation from face videos in the wild", CVPR Workshops 2018'
)
INPUT = "trace"


def extract(trace: RgbTrace) -> Waveform:
    """Green of (I − u·uᵀ)·C, where u is the first left singular vector of the colours C (3,T)."""
    values = common.colours(trace)
    _, axes = np.linalg.eigh(values.T @ values)
    direction = axes[:, -1]  # the first left singular vector of valuesᵀ
    rest = values - np.outer(values @ direction, direction)
    return common.wave_on_clock_of(trace, -filters.pulse_band(rest[:, 1], trace.fps))
