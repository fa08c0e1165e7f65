"""ICA: separates three channels into three independent sources, one of which is the pulse."""

from __future__ import annotations

import numpy as np

from ..signal import filters
from ..types import FloatArray, RgbTrace, Waveform
from . import common, source_selection

NAME = "ica"
CITATION = (
    "M.-Z. Poh, D. J. McDuff, R. W. Picard, "
    '"Non-contact, automated cardiac pulse measurements using video imaging and blind source separation", '
    "Optics Express 18(10), 2010; sources by JADE: J.-F. Cardoso, A. Souloumiac, "
    '"Blind beamforming for non-Gaussian signals", IEE Proc. F 140(6), 1993'
)
INPUT = "trace"
DETREND = 100.0  # λ of the smoothness priors at 30 fps, a high-pass at 0.5 Hz
_SWEEPS = 50


def extract(trace: RgbTrace) -> Waveform:
    """Return the source with the highest SNR that JADE finds in the detrended, standardised channels."""
    values = common.checked_colours(trace)
    sources = filters.pulse_band(jade(standardised(values, trace.fps)), trace.fps)
    wave = source_selection.highest_snr_source(sources, trace.fps, trace.valid)
    return common.waveform_like(trace, common.orient_pulse(wave, values, trace.fps))


def standardised(values: FloatArray, fps: float) -> FloatArray:
    """Return channels (T,3) without their trend, with zero mean and unit variance; constant ones give 0."""
    smooth = filters.detrend(values, DETREND * (fps / 30) ** 2)
    spread = smooth.std(0)
    known = spread > 1e-12 * np.abs(values).max()
    return (smooth - smooth.mean(0)) * known / np.where(known, spread, 1.0)


def jade(values: FloatArray, *, eigenmatrices: int | None = None, least_angle: float = 1e-8) -> FloatArray:
    """Return the independent sources (T,n) of mixtures (T,n).

    JADE whitens the mixtures and jointly diagonalises their fourth-order cumulants: all of them, or the given
    number of most significant eigenmatrices. Rotations below `least_angle` end it.
    """
    x = values - values.mean(0)
    power, axes = np.linalg.eigh(x.T @ x / len(x))
    scale = np.where(power > 1e-12 * max(float(power.max()), 1e-300), power, np.inf)
    white = x @ axes / np.sqrt(scale)  # (T,n)
    matrices = _cumulants(white) if eigenmatrices is None else _eigenmatrices(white, eigenmatrices)
    return white @ _joint_diagonaliser(matrices, least_angle)


def _eigenmatrices(white: FloatArray, count: int) -> FloatArray:
    """Return the most significant eigenmatrices (count,n,n) of the cumulants, times their eigenvalues."""
    frames, n = white.shape
    pairs = (white[:, :, None] * white[:, None, :]).reshape(frames, n * n)  # (T,n²)
    identity = np.eye(n)
    tensor = pairs.T @ pairs / frames
    tensor -= np.outer(identity.ravel(), identity.ravel()) + np.eye(n * n)
    tensor -= np.einsum("il,jk->ijkl", identity, identity).reshape(n * n, n * n)
    power, vectors = np.linalg.eigh(tensor)
    largest = np.argsort(-np.abs(power))[:count]
    return (vectors[:, largest] * power[largest]).T.reshape(count, n, n)


def _cumulants(white: FloatArray) -> FloatArray:
    """Return the cumulant matrices (n(n+1)/2,n,n) of white signals, weighted by √2 for mixed indices."""
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


def _joint_diagonaliser(matrices: FloatArray, least_angle: float) -> FloatArray:
    """Return the rotation that jointly diagonalises the matrices, by Jacobi angles."""
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
        if largest < least_angle:
            break
    return rotation
