"""The reference heart rate of a window, computed from the waveform instead of the rate of the device."""

from __future__ import annotations

import numpy as np

from ..signal import rate
from ..types import BoolArray, FloatArray, Waveform

MIN_COVERAGE = 0.9  # share of valid samples in a window


def window_of(wave: Waveform, start_s: float, end_s: float) -> Waveform:
    """Return the part of a waveform inside a time window."""
    first = max(0, int(np.ceil((start_s - wave.start_s) * wave.fps - 1e-6)))
    last = max(first, min(len(wave.values), int(np.ceil((end_s - wave.start_s) * wave.fps - 1e-6))))
    return Waveform(
        wave.values[first:last], wave.fps, wave.start_s + first / wave.fps, wave.valid[first:last]
    )


def window_bpm(wave: Waveform, start_s: float, end_s: float) -> float | None:
    """Return the rate in a window, or None where the reference has gaps or is constant."""
    part = window_of(wave, start_s, end_s)
    if part.valid.sum() < MIN_COVERAGE * (end_s - start_s) * wave.fps:
        return None
    peak = rate.spectral_peak(part)
    return None if peak is None else peak.bpm


def window_rates(wave: Waveform, window_s: float = 10.0, step_s: float = 5.0) -> FloatArray:
    """Return the rates of all windows that have one."""
    starts = wave.start_s + np.arange(0, max(wave.duration_s - window_s, 0) + 1e-6, step_s)
    found = [window_bpm(wave, float(s), float(s) + window_s) for s in starts]
    return np.array([bpm for bpm in found if bpm is not None])


def flat_intervals(wave: Waveform, shortest_s: float = 1.5) -> list[tuple[float, float]]:
    """Return (start, end) in seconds of every interval in which the reference is constant."""
    count = max(2, int(shortest_s * wave.fps))
    if len(wave.values) < count:
        return []
    low, high = np.percentile(wave.values[wave.valid], [5, 95]) if wave.valid.any() else (0.0, 0.0)
    windows = np.lib.stride_tricks.sliding_window_view(wave.values, count)
    constant = np.ptp(windows, axis=1) <= 0.02 * (high - low)  # window i covers samples i … i+count−1
    flat: BoolArray = np.zeros(len(wave.values), bool)
    for start in np.flatnonzero(constant):
        flat[start : start + count] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flat, [False]]).astype(int)))
    return [
        (wave.start_s + a / wave.fps, wave.start_s + b / wave.fps)
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
