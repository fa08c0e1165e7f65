"""Detrending and band limits; all work along axis 0 and keep phase."""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray
from .constants import BAND_HZ, PULSE_BAND_HZ


def detrend(values: FloatArray, strength: float = 100.0) -> FloatArray:
    """Remove the slow trend by smoothness priors: x − (I + λ²DᵀD)⁻¹x with second differences D.

    Tarvainen, Ranta-aho and Karjalainen, "An advanced detrending method with application to HRV analysis",
    IEEE TBME 49 (2002). `strength` is λ. The matrix has five diagonals, so time and memory grow with the
    length only.
    """
    values = np.asarray(values, float)
    count = len(values)
    if count < 3:
        return np.zeros_like(values)
    from scipy.linalg import solveh_banded

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
    trend = solveh_banded(bands, values.reshape(count, -1))
    return values - trend.reshape(values.shape)


def remove_line(values: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Subtract the best straight line (weighted least squares)."""
    values = np.asarray(values, float)
    count = len(values)
    w = np.ones(count) if weights is None else np.asarray(weights, float)
    total = w.sum()
    if total <= 0:
        return np.zeros_like(values)
    columns = values.reshape(count, -1)
    t = np.arange(count) - (w @ np.arange(count)) / total
    out = columns - (w @ columns) / total
    spread = w @ t**2
    if spread > 0:
        out = out - np.outer(t, (w * t) @ out / spread)
    return out.reshape(values.shape)


def bandpass(
    values: FloatArray, fps: float, low_hz: float = BAND_HZ[0], high_hz: float = BAND_HZ[1], order: int = 2
) -> FloatArray:
    """Keep what lies between two frequencies, without moving it in time.

    The gain is that of a Butterworth filter run forwards and backwards, applied in the frequency domain
    with the ends continued by point reflection (as filtfilt does).
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
    hz = np.fft.rfftfreq(size, 1 / fps)
    gain = _butterworth_gain(hz, fps, low_hz, high_hz, order)
    # Even the padded ends to one level so that the circular transform meets no jump.
    padded = remove_line(padded)
    out = np.fft.irfft(np.fft.rfft(padded, size, axis=0) * gain[:, None], size, axis=0)
    return out[pad : pad + count].reshape(values.shape)


def pulse_band(values: FloatArray, fps: float, band_hz: tuple[float, float] = PULSE_BAND_HZ) -> FloatArray:
    """Keep the pulse and its harmonics; if the frame rate is too low, only remove the linear trend."""
    low_hz, high_hz = band_hz[0], min(band_hz[1], 0.45 * fps)
    if high_hz <= 2 * low_hz:
        return remove_line(values)
    return bandpass(values, fps, low_hz, high_hz, order=2)


def butterworth(values: FloatArray, fps: float, low_hz: float, high_hz: float, order: int = 1) -> FloatArray:
    """Band-pass exactly as the field's toolboxes do: scipy's butter and filtfilt."""
    from scipy.signal import butter, filtfilt

    _check_band(fps, low_hz, high_hz)
    b, a = butter(order, [low_hz / fps * 2, high_hz / fps * 2], btype="bandpass")
    return np.asarray(filtfilt(b, a, np.asarray(values, float), axis=0))


def fast_length(count: int) -> int:
    """The next length ≥ count of the form 2ᵃ·{1, 3, 5, 9, 15}: transforms of such lengths are fast."""
    best = 1 << max(count - 1, 0).bit_length()
    for odd in (3, 5, 9, 15):
        size = odd << max((count - 1) // odd, 0).bit_length()
        if count <= size < best:
            best = size
    return best


def _butterworth_gain(hz: FloatArray, fps: float, low_hz: float, high_hz: float, order: int) -> FloatArray:
    """|H|² of the digital Butterworth band-pass (bilinear transform), that is, forwards and backwards."""
    warp = np.tan(np.pi * np.minimum(hz, fps / 2 * (1 - 1e-9)) / fps)
    low, high = np.tan(np.pi * low_hz / fps), np.tan(np.pi * high_hz / fps)
    safe = np.where(warp > 0, warp, 1.0)
    q = (safe**2 - low * high) / (safe * (high - low))
    return np.where(warp > 0, 1 / (1 + np.minimum(np.abs(q), 1e12) ** (2 * order)), 0.0)


def _check_band(fps: float, low_hz: float, high_hz: float) -> None:
    if not 0 < low_hz < high_hz < fps / 2:
        raise ArgumentError(
            "band", f"{low_hz}–{high_hz} Hz at {fps} fps", "0 < low < high < half the frame rate"
        )
