"""Which of several separated sources is the pulse."""

from __future__ import annotations

import numpy as np

from ..signal import rate
from ..types import BoolArray, FloatArray


def clearest(sources: FloatArray, fps: float, valid: BoolArray) -> FloatArray:
    """The column (T,) of sources (T,n) with the highest share of its band power in one line and its
    harmonic.
    """
    best, best_snr_db = sources[:, 0], -np.inf
    for column in sources.T:
        peak = rate.spectral_peak(column, fps, valid)
        if peak is not None and peak.snr_db > best_snr_db:
            best, best_snr_db = column, peak.snr_db
    return best
