"""Functions that several methods use: input checks, normalisation, overlap-add and the sign of a pulse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import ArgumentError
from ..signal import filters
from ..signal.resample import interpolate_invalid
from ..types import BoolArray, FloatArray, RgbTrace, Waveform


def checked_colours(trace: RgbTrace) -> FloatArray:
    """Check a trace and return its colours (T,3), with invalid frames interpolated."""
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
    return interpolate_invalid(values, np.asarray(trace.valid, bool))


def waveform_like(trace: RgbTrace, values: FloatArray) -> Waveform:
    """Return a waveform of these values with the clock of the trace."""
    return Waveform(values, trace.fps, trace.start_s, trace.valid)


def normalised(values: FloatArray) -> FloatArray:
    """Divide each channel by its mean and subtract one, which removes light and skin tone; black gives 0."""
    mean = values.mean(0)
    return values / np.where(mean > 0, mean, 1.0) - (mean > 0)


def running_mean(values: FloatArray, count: int) -> FloatArray:
    """Return the centred mean over `count` samples along axis 0, over fewer at the ends."""
    half = max(count, 1) // 2
    total = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    index = np.arange(len(values))
    first, last = np.maximum(index - half, 0), np.minimum(index + half + 1, len(values))
    return (total[last] - total[first]) / (last - first).reshape(-1, *[1] * (values.ndim - 1))


def window_length(seconds: float, fps: float, count: int) -> int:
    """Return the frames in a window of this duration, at least 2 and at most `count`."""
    return int(min(max(round(seconds * fps), 2), count))


def overlap_add(
    values: FloatArray, length: int, combine: Callable[[FloatArray, BoolArray], FloatArray]
) -> FloatArray:
    """Combine the channels of values (T,C) into (T,), in Hann windows that overlap by half.

    `combine` receives a window (L,C), padded with zeros outside the signal, and which of its frames are
    inside. The first and last windows extend beyond the signal by half, so that the sum of the weights is
    constant.
    """
    length -= length % 2 if length > 2 else 0
    hop = max(length // 2, 1)
    padded = np.pad(values, ((hop, length), (0, 0)))
    inside = np.pad(np.ones(len(values), bool), (hop, length))
    window = np.sin(np.pi * (np.arange(length) + 0.5) / length) ** 2
    out, weight = np.zeros(len(padded)), np.zeros(len(padded))
    for start in range(0, len(values) + hop, hop):
        part = slice(start, start + length)
        out[part] += window * combine(padded[part], inside[part])
        weight[part] += window
    kept = slice(hop, hop + len(values))
    return ratio(out[kept], weight[kept])


def orient_pulse(wave: FloatArray, values: FloatArray, fps: float) -> FloatArray:
    """Choose the sign of a waveform so that it rises with blood volume.

    Blood absorbs more green than red, so R/R̄ − G/Ḡ rises with blood volume, while changes of light cancel.
    """
    relative = filters.pulse_band(normalised(values), fps)
    return -wave if float(wave @ (relative[:, 0] - relative[:, 1])) < 0 else wave


def ratio(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return a / b, and 0 where b is not positive."""
    return np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=np.asarray(b) > 0)
