"""OMIT: projects out the first axis of a QR decomposition of the colours."""

from __future__ import annotations

import numpy as np

from ..signal import filters
from ..types import RgbTrace, Waveform
from . import common

NAME = "omit"
CITATION = (
    "C. Álvarez Casado, M. Bordallo López, "
    '"Face2PPG: An unsupervised pipeline for blood volume pulse extraction from faces", '
    "IEEE J. Biomed. Health Inform. 27(11), 2023"
)
INPUT = "trace"


def extract(trace: RgbTrace) -> Waveform:
    """Return the green channel of (I − q·qᵀ)·C for the colours C (3,T).

    The vector q is the first column of Q in the QR decomposition of C.
    """
    values = common.checked_colours(trace)
    q, _ = np.linalg.qr(values.T)  # Q (3,3)
    direction = q[:, 0]
    rest = values - np.outer(values @ direction, direction)
    return common.waveform_like(trace, -filters.pulse_band(rest[:, 1], trace.fps))
