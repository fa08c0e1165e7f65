"""Selection of the pulse among separated sources."""

from __future__ import annotations

import numpy as np

from ..signal import rate
from ..types import BoolArray, FloatArray


def highest_snr_source(sources: FloatArray, fps: float, valid: BoolArray) -> FloatArray:
    """Return the column (T,) of sources (T,n) whose spectral peak has the highest SNR."""
    best, best_snr_db = sources[:, 0], -np.inf
    for column in sources.T:
        peak = rate.spectral_peak(column, fps, valid)
        if peak is not None and peak.snr_db > best_snr_db:
            best, best_snr_db = column, peak.snr_db
    return best
