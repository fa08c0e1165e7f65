"""LGI: projects out the colour direction of light and motion, and returns the remaining green."""

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
    """Return the green channel of (I − u·uᵀ)·C for the colours C (3,T).

    The vector u is the first left singular vector of C.
    """
    values = common.checked_colours(trace)
    _, axes = np.linalg.eigh(values.T @ values)
    direction = axes[:, -1]  # the first left singular vector of valuesᵀ
    rest = values - np.outer(values @ direction, direction)
    return common.waveform_like(trace, -filters.pulse_band(rest[:, 1], trace.fps))
