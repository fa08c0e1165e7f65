"""Detrending and zero-phase band-pass filters along axis 0."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray
from .constants import BAND_HZ, PULSE_BAND_HZ


def detrend(values: FloatArray, strength: float = 100.0) -> FloatArray:
    """Remove the slow trend by smoothness priors: x − (I + λ²DᵀD)⁻¹x with second differences D.

    Tarvainen, Ranta-aho and Karjalainen, "An advanced detrending method with application to HRV analysis",
    IEEE TBME 49 (2002). `strength` is λ. The matrix has five diagonals, so time and memory are linear in the
    length.
    """
    values = np.asarray(values, float)
    count = len(values)
    if count < 3:
        return np.zeros_like(values)
    # DᵀD for rows (1, −2, 1): main diagonal 1,5,6,…,6,5,1, then −2,−4,…,−4,−2, then 1.
    main, first, second = np.zeros(count), np.zeros(count), np.zeros(count)
    main[:-2] += 1
    main[1:-1] += 4
    main[2:] += 1
    first[1:-1] -= 2  # entry (i−1, i) is stored at i: upper form
    first[2:] -= 2
    second[2:] += 1
    bands = strength**2 * np.stack([second, first, main])
    bands[2] += 1
    trend = _solve_banded(bands, values.reshape(count, -1))
    return values - trend.reshape(values.shape)


def _solve_banded(bands: FloatArray, values: FloatArray) -> FloatArray:
    """Solve A x = values (T,C) for a symmetric A of five diagonals in upper form, (3,T).

    SciPy does it fast where it is installed; an installation without extras uses the loop.
    """
    try:
        from scipy.linalg import solveh_banded
    except ModuleNotFoundError:
        return _solve_five_diagonals(bands, values)
    solved: FloatArray = solveh_banded(bands, values)
    return solved


def _solve_five_diagonals(bands: FloatArray, values: FloatArray) -> FloatArray:
    """Solve the same with A = LDLᵀ, whose L has ones and two more diagonals."""
    second, first, main = bands.tolist()
    count = len(main)
    pivots, near, far = [0.0] * count, [0.0] * count, [0.0] * count  # D, and L at distance 1 and 2
    solved = values.astype(float).copy()
    for i in range(count):
        far[i] = second[i] / pivots[i - 2] if i > 1 else 0.0
        coupling = first[i] - (far[i] * pivots[i - 2] * near[i - 1] if i > 1 else 0.0)
        near[i] = coupling / pivots[i - 1] if i else 0.0
        pivots[i] = main[i] - coupling * near[i] - (far[i] * second[i] if i > 1 else 0.0)
        if i:
            solved[i] -= near[i] * solved[i - 1]
        if i > 1:
            solved[i] -= far[i] * solved[i - 2]
    solved /= np.array(pivots)[:, None]
    for i in range(count - 2, -1, -1):
        solved[i] -= near[i + 1] * solved[i + 1]
        if i + 2 < count:
            solved[i] -= far[i + 2] * solved[i + 2]
    return solved


def remove_linear_trend(values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Subtract the straight line that weighted least squares fits."""
    values = np.asarray(values, float)
    count = len(values)
    w, t, weighted_t, total, spread = _ones(count) if weights is None else _line(np.asarray(weights, float))
    if total <= 0:
        return np.zeros_like(values)
    columns = values.reshape(count, -1)
    out = columns - (w @ columns) / total
    if spread > 0:
        out -= t[:, None] * (weighted_t @ out / spread)
    return out.reshape(values.shape)


def _line(w: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:
    """Return the weights w, the time t from their centre, w·t, and the sums of w and of w·t²."""
    at = np.arange(len(w), dtype=float)
    total = float(w.sum())
    t = at - (w @ at) / total if total > 0 else at
    return w, t, w * t, total, float(w @ t**2)


@lru_cache(maxsize=32)
def _ones(count: int) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:
    """Return the `_line` of equal weights."""
    return _line(np.ones(count))


def bandpass(
    values: FloatArray, fps: float, low_hz: float = BAND_HZ[0], high_hz: float = BAND_HZ[1], order: int = 2
) -> FloatArray:
    """Apply a zero-phase band-pass.

    The gain is that of a Butterworth filter run forwards and backwards, applied in the frequency domain. The
    ends are extended by point reflection, as in scipy's filtfilt.
    """
    values = np.asarray(values, float)
    _check_band(fps, low_hz, high_hz)
    count = len(values)
    if count < 2:
        return np.zeros_like(values)
    columns = values.reshape(count, -1)
    pad = min(count - 1, int(np.ceil(3 * fps / low_hz)))
    head = 2 * columns[0] - columns[pad:0:-1]
    tail = 2 * columns[-1] - columns[-2 : -pad - 2 : -1]
    padded = np.concatenate([head, columns, tail])
    size = fast_length(len(padded))
    gain = _butterworth_gain(size, fps, low_hz, high_hz, order)
    # Without the linear trend both ends have a similar level, so the circular transform has no step.
    padded = remove_linear_trend(padded)
    out = np.fft.irfft(np.fft.rfft(padded, size, axis=0) * gain[:, None], size, axis=0)
    return out[pad : pad + count].reshape(values.shape)


def pulse_band(values: FloatArray, fps: float, band_hz: tuple[float, float] = PULSE_BAND_HZ) -> FloatArray:
    """Band-pass the pulse and its harmonics; if the frame rate is too low, only remove the linear trend."""
    low_hz, high_hz = band_hz[0], min(band_hz[1], 0.45 * fps)
    if high_hz <= 2 * low_hz:
        return remove_linear_trend(values)
    return bandpass(values, fps, low_hz, high_hz, order=2)


def butterworth(values: FloatArray, fps: float, low_hz: float, high_hz: float, order: int = 1) -> FloatArray:
    """Apply a band-pass as common rPPG toolboxes do, with scipy's butter and filtfilt."""
    from scipy.signal import butter, filtfilt

    _check_band(fps, low_hz, high_hz)
    b, a = butter(order, [low_hz / fps * 2, high_hz / fps * 2], btype="bandpass")
    return np.asarray(filtfilt(b, a, np.asarray(values, float), axis=0))


@lru_cache(maxsize=64)
def fast_length(count: int) -> int:
    """Return the smallest length ≥ count of the form 2ᵃ·{1, 3, 5, 9, 15}, for which the FFT is fast."""
    best = 1 << max(count - 1, 0).bit_length()
    for odd in (3, 5, 9, 15):
        size = odd << max((count - 1) // odd, 0).bit_length()
        if count <= size < best:
            best = size
    return best


@lru_cache(maxsize=16)
def _butterworth_gain(size: int, fps: float, low_hz: float, high_hz: float, order: int) -> FloatArray:
    """Return |H|² of the digital Butterworth band-pass, the gain of a forward and a backward pass.

    It is that of each frequency of a real transform of `size` samples.
    """
    hz = np.fft.rfftfreq(size, 1 / fps)
    warp = np.tan(np.pi * np.minimum(hz, fps / 2 * (1 - 1e-9)) / fps)
    low, high = np.tan(np.pi * low_hz / fps), np.tan(np.pi * high_hz / fps)
    safe = np.where(warp > 0, warp, 1.0)
    q = (safe**2 - low * high) / (safe * (high - low))
    gain = np.where(warp > 0, 1 / (1 + np.minimum(np.abs(q), 1e12) ** (2 * order)), 0.0)
    gain.flags.writeable = False  # shared by all signals of this length
    return gain


def _check_band(fps: float, low_hz: float, high_hz: float) -> None:
    if not 0 < low_hz < high_hz < fps / 2:
        raise ArgumentError(
            "band", f"{low_hz}–{high_hz} Hz at {fps} fps", "0 < low < high < half the frame rate"
        )
