"""ICA: three independent sources behind three channels; one of them is the pulse."""

from __future__ import annotations

import numpy as np

from ..signal import filters
from ..types import FloatArray, RgbTrace, Waveform
from . import common, sources

NAME = "ica"
CITATION = (
    "M.-Z. Poh, D. J. McDuff, R. W. Picard, "
    '"Advancements in noncontact, multiparameter physiological measurements using a webcam", '
    "IEEE Trans. Biomed. Eng. 58(1), 2011; sources by JADE: J.-F. Cardoso, A. Souloumiac, "
    '"Blind beamforming for non-Gaussian signals", IEE Proc. F 140(6), 1993'
)
INPUT = "trace"
_SWEEPS = 50


def extract(trace: RgbTrace) -> Waveform:
    """Band-passed, standardised channels → JADE → the source with the clearest line."""
    values = common.colours(trace)
    relative = filters.pulse_band(common.normalised(values), trace.fps)
    wave = sources.clearest(jade(relative), trace.fps, trace.valid)
    return common.wave_on_clock_of(trace, common.upright(wave, values, trace.fps))


def jade(values: FloatArray) -> FloatArray:
    """Independent sources (T,n) of mixtures (T,n): whiten, then diagonalise all fourth-order cumulants
    together.
    """
    x = values - values.mean(0)
    power, axes = np.linalg.eigh(x.T @ x / len(x))
    scale = np.where(power > 1e-12 * max(float(power.max()), 1e-300), power, np.inf)
    white = x @ axes / np.sqrt(scale)  # (T,n)
    return white @ _joint_diagonaliser(_cumulants(white))


def _cumulants(white: FloatArray) -> FloatArray:
    """(n(n+1)/2,n,n) cumulant matrices of white signals, those of mixed indices weighted by √2."""
    count, n = white.shape
    identity = np.eye(n)
    found = []
    for i in range(n):
        for j in range(i + 1):
            weighted = white * (white[:, i] * white[:, j])[:, None]
            q = weighted.T @ white / count
            q = q - identity[:, [i]] @ identity[[j]] - identity[:, [j]] @ identity[[i]]
            q = q - identity if i == j else q * np.sqrt(2)
            found.append(q)
    return np.array(found)


def _joint_diagonaliser(matrices: FloatArray) -> FloatArray:
    """The rotation that makes all matrices as diagonal as possible, by Jacobi angles."""
    n = matrices.shape[1]
    rotation = np.eye(n)
    for _ in range(_SWEEPS):
        largest = 0.0
        for p in range(n - 1):
            for q in range(p + 1, n):
                g = np.stack([matrices[:, p, p] - matrices[:, q, q], matrices[:, p, q] + matrices[:, q, p]])
                gram = g @ g.T
                on, off = gram[0, 0] - gram[1, 1], gram[0, 1] + gram[1, 0]
                angle = 0.5 * np.arctan2(off, on + np.hypot(on, off))
                largest = max(largest, abs(angle))
                c, s = np.cos(angle), np.sin(angle)
                turn = np.array([[c, -s], [s, c]])
                pair = [p, q]
                rotation[:, pair] = rotation[:, pair] @ turn
                matrices[:, pair] = np.einsum("ab,kbn->kan", turn.T, matrices[:, pair])
                matrices[:, :, pair] = matrices[:, :, pair] @ turn
        if largest < 1e-8:
            break
    return rotation
