"""What the methods share: checked input, channel normalisation, windows that overlap and add, and the
sign.
"""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError
from ..signal import filters
from ..signal.resample import bridge
from ..types import FloatArray, RgbTrace, Waveform

LOWEST_HZ, HIGHEST_HZ = 0.6, 8.0  # the pulse with its harmonics


def colours(trace: RgbTrace) -> FloatArray:
    """The trace as finite values (T,3) with invalid stretches bridged, or our error if it is no trace."""
    if not isinstance(trace, RgbTrace):
        raise ArgumentError("trace", type(trace).__name__, "an RgbTrace")
    values = np.asarray(trace.values, float)
    if values.ndim != 2 or values.shape[1] != 3 or len(values) < 2:
        raise ArgumentError("trace.values", values.shape, "(T,3) with at least 2 frames")
    if len(trace.valid) != len(values):
        raise ArgumentError("trace.valid", len(trace.valid), f"one entry per frame ({len(values)})")
    if not (np.isfinite(trace.fps) and trace.fps > 0):
        raise ArgumentError("trace.fps", trace.fps, "a positive number")
    if not np.isfinite(values[trace.valid]).all():
        raise ArgumentError("trace.values", "not finite in valid frames", "finite colours")
    return bridge(values, np.asarray(trace.valid, bool))


def wave_on_clock_of(trace: RgbTrace, values: FloatArray) -> Waveform:
    return Waveform(values, trace.fps, trace.start_s, trace.valid)


def normalised(values: FloatArray) -> FloatArray:
    """Each channel relative to its mean, minus one: light and skin tone drop out. A black channel gives 0."""
    mean = values.mean(0)
    return values / np.where(mean > 0, mean, 1.0) - (mean > 0)


def running_mean(values: FloatArray, count: int) -> FloatArray:
    """Centred mean over `count` samples along axis 0, over fewer at the ends."""
    half = max(count, 1) // 2
    total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    index = np.arange(len(values))
    first, last = np.maximum(index - half, 0), np.minimum(index + half + 1, len(values))
    return (total[last] - total[first]) / (last - first).reshape(-1, *[1] * (values.ndim - 1))


def pulse_band(values: FloatArray, fps: float) -> FloatArray:
    """Keep the pulse and its harmonics; a clock too slow for that is only freed of its drift."""
    high_hz = min(HIGHEST_HZ, 0.45 * fps)
    if high_hz <= 2 * LOWEST_HZ:
        return filters.remove_line(values)
    return filters.bandpass(values, fps, LOWEST_HZ, high_hz, order=2)


def window_length(seconds: float, fps: float, count: int) -> int:
    """Frames in a window of the paper's duration at this frame rate, at most what there is."""
    return int(min(max(round(seconds * fps), 2), count))


def upright(wave: FloatArray, values: FloatArray, fps: float) -> FloatArray:
    """Turn a wave of unknown sign so that more blood is up.

    Blood absorbs green more than red, so R/R̄ − G/Ḡ rises with it, while changes of light cancel.
    """
    relative = pulse_band(normalised(values), fps)
    return -wave if float(wave @ (relative[:, 0] - relative[:, 1])) < 0 else wave


def ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    """a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=np.asarray(b) > 0)
