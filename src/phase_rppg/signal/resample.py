"""Resampling to a uniform clock by timestamps; samples inside gaps are marked as invalid."""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError
from ..types import BoolArray, FloatArray
from .constants import CLOCK_TOLERANCE, MAX_GAP_S
from .uniform_clock import can_interpolate, ticks_until


def to_uniform(
    t_s: FloatArray,
    values: FloatArray,
    fps: float,
    *,
    valid: BoolArray | None = None,
    max_gap_s: float = MAX_GAP_S,
) -> tuple[FloatArray, float, BoolArray]:
    """Resample values (T,…) with timestamps t_s (T,) to a clock of `fps` that starts at the first timestamp.

    Values are interpolated linearly between neighbouring valid samples. A tick in a gap longer than
    `max_gap_s`, or outside the valid samples, gets a finite placeholder and valid=False. Returns (values,
    start_s, valid).
    """
    t_s, values = np.asarray(t_s, float), np.asarray(values, float)
    if t_s.ndim != 1 or len(t_s) == 0 or len(values) != len(t_s):
        raise ArgumentError("t_s, values", (t_s.shape, values.shape), "one timestamp per value, at least one")
    if not np.all(np.isfinite(t_s)) or np.any(np.diff(t_s) <= 0):
        raise ArgumentError(
            "t_s", "times that repeat, decrease or are not finite", "strictly increasing timestamps"
        )
    if not (np.isfinite(fps) and fps > 0):
        raise ArgumentError("fps", fps, "a positive number")
    count = ticks_until(float(t_s[-1] - t_s[0]), fps)
    grid_s = t_s[0] + np.arange(count) / fps
    usable = np.isfinite(values.reshape(len(values), -1)).all(1)  # (T,)
    if valid is not None:
        usable &= np.asarray(valid, bool)
    if not usable.any():
        return np.zeros((count, *values.shape[1:])), float(t_s[0]), np.zeros(count, bool)

    known_s, known = t_s[usable], values[usable]
    right = np.clip(np.searchsorted(known_s, grid_s - CLOCK_TOLERANCE / fps), 0, len(known_s) - 1)
    left = np.where(np.abs(known_s[right] - grid_s) <= CLOCK_TOLERANCE / fps, right, np.maximum(right - 1, 0))
    span_s = known_s[right] - known_s[left]
    share = np.divide(grid_s - known_s[left], span_s, out=np.zeros(count), where=span_s > 0)
    share = np.clip(share, 0.0, 1.0).reshape(-1, *[1] * (values.ndim - 1))
    out = known[left] * (1 - share) + known[right] * share
    slack_s = CLOCK_TOLERANCE / fps
    inside = (grid_s >= known_s[0] - slack_s) & (grid_s <= known_s[-1] + slack_s)
    return out, float(t_s[0]), inside & can_interpolate(span_s, max_gap_s)


def interpolate_invalid(values: FloatArray, valid: BoolArray) -> FloatArray:
    """Replace invalid samples of (T,…) by linear interpolation, so that filters see no steps."""
    values = np.asarray(values, float)
    if valid.all():
        return values
    if not valid.any():
        return np.zeros_like(values)
    index = np.arange(len(values))
    columns = values.reshape(len(values), -1)
    filled = [np.interp(index, index[valid], column[valid]) for column in columns.T]
    return np.stack(filled, 1).reshape(values.shape)
