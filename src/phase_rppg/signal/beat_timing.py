"""Beat times by comparison with a template: each beat is shifted to where it matches the mean beat best.

The position of a maximum depends only on the few samples around it, so noise shifts it. The template uses
the whole upstroke and the harmonics up to the fourth, so noise shifts a beat less. The template is the median
of all beats of the wave, and a beat is shifted by the maximum of its correlation with the template. Beats
next to a gap are left out, because the transients of the filter distort them.
"""

from __future__ import annotations

import numpy as np

from ..types import BoolArray, FloatArray, Waveform
from . import filters
from .median import median
from .resample import interpolate_invalid

MIN_BEATS = 8  # fewer beats give no template
_BAND = (0.6, 4.5)  # pass band, in heart rates
_REACH = 0.4  # half length of the template, in beat intervals
_MAX_SHIFT_S, _MAX_SHIFT = 0.08, 0.12  # largest correction: in seconds, and in beat intervals
_EDGE = 0.3  # beats nearer to an invalid sample are left out, in beat intervals
_UPSAMPLING = 8  # the band-limited wave is interpolated between samples
_PAD_S = 2.0  # reflection at both ends, for the interpolation
_ROUNDS = 2  # the template of the second round is made of shifted beats


def refine_beats(wave: Waveform, beats_s: FloatArray) -> FloatArray:
    """Return the beats, each shifted to match the template; the median of the shifts is 0.

    Beats at the ends of the valid samples are left out. Few beats are returned as they are.
    """
    if len(beats_s) < MIN_BEATS:
        return beats_s
    interval_s = float(median(np.diff(beats_s)))
    beats_s = beats_s[_has_samples(wave, beats_s, _EDGE * interval_s)]
    low_hz, high_hz = _BAND[0] / interval_s, min(_BAND[1] / interval_s, 0.45 * wave.fps)
    if low_hz >= high_hz or len(beats_s) < MIN_BEATS:
        return beats_s
    x = filters.bandpass(interpolate_invalid(wave.values, wave.valid), wave.fps, low_hz, high_hz)
    fine, start_s, fine_hz = _interpolated(x, wave)
    reach = round(_REACH * interval_s * fine_hz)
    most = round(min(_MAX_SHIFT_S, _MAX_SHIFT * interval_s) * fine_hz)
    whole = _has_samples(wave, beats_s, (reach + most) / fine_hz)
    if whole.sum() < MIN_BEATS:
        return beats_s
    offsets = np.arange(-reach - most, reach + most + 1)
    times_s = beats_s.copy()
    for _ in range(_ROUNDS):
        at = np.rint((times_s[whole] - start_s) * fine_hz).astype(np.int64)
        shift, found = _shifts(fine[np.clip(at[:, None] + offsets, 0, len(fine) - 1)], most)
        moved_s = np.where(found, start_s + (at + shift) / fine_hz, times_s[whole])
        times_s[whole] = moved_s - median(moved_s - times_s[whole])
    return times_s


def _interpolated(x: FloatArray, wave: Waveform) -> tuple[FloatArray, float, float]:
    """Return the wave on a finer clock, the time of its first sample and its sample rate."""
    pad = min(round(_PAD_S * wave.fps), len(x) - 1)
    padded = np.concatenate([2 * x[0] - x[pad:0:-1], x, 2 * x[-1] - x[-2 : -pad - 2 : -1]])
    fade = np.sin(np.pi / 2 * (np.arange(pad) + 0.5) / max(pad, 1)) ** 2  # no step at the ends
    padded[:pad] *= fade
    padded[len(padded) - pad :] *= fade[::-1]
    size = filters.fast_length(len(padded))
    half = np.fft.rfft(padded, size)
    fine = _UPSAMPLING * np.fft.irfft(half, size * _UPSAMPLING)
    return fine, wave.start_s - pad / wave.fps, wave.fps * _UPSAMPLING


def _has_samples(wave: Waveform, beats_s: FloatArray, reach_s: float) -> BoolArray:
    """Return which beats have only valid samples within `reach_s`."""
    invalid = np.concatenate([[0], np.cumsum(~wave.valid)])
    first = np.floor((beats_s - reach_s - wave.start_s) * wave.fps).astype(np.int64)
    stop = np.ceil((beats_s + reach_s - wave.start_s) * wave.fps).astype(np.int64) + 1
    inside = (first >= 0) & (stop <= len(wave.values))
    first, stop = np.clip(first, 0, len(wave.values)), np.clip(stop, 0, len(wave.values))
    return np.asarray(inside & (invalid[stop] == invalid[first]))


def _shifts(pieces: FloatArray, most: int) -> tuple[FloatArray, BoolArray]:
    """Return the shift of each piece (N,L+2·most) against the median piece, and whether it is a maximum."""
    middle = pieces[:, most : pieces.shape[1] - most]  # (N,L)
    weights = np.hanning(middle.shape[1] + 2)[1:-1]
    centred = middle - (middle @ weights / weights.sum())[:, None]
    template = median(centred / np.sqrt(centred**2 @ weights)[:, None].clip(1e-300), axis=0)  # (L,)
    kernel = weights * (template - template @ weights / weights.sum())
    windows = np.lib.stride_tricks.sliding_window_view(pieces, len(kernel), axis=1)  # (N,2·most+1,L)
    match = windows @ kernel  # (N,2·most+1)
    best = match.argmax(1)
    found = (best > 0) & (best < match.shape[1] - 1)
    row, best = np.arange(len(match)), np.clip(best, 1, match.shape[1] - 2)
    left, top, right = match[row, best - 1], match[row, best], match[row, best + 1]
    bend = left - 2 * top + right
    between = np.divide(0.5 * (left - right), bend, out=np.zeros(len(row)), where=bend < 0)
    return best + between - most, found
