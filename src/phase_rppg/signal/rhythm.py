"""The rhythm of a window: mean rate, spread and likeness of its beats.

A single spectral line describes a regular pulse. In an irregular rhythm, such as atrial fibrillation, the
energy spreads over many lines, and the strongest one is not the mean rate. The beats can still be counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import FloatArray, Waveform
from . import filters, rate
from .median import median
from .resample import interpolate_invalid

MIN_BEATS = 5  # fewer beats have no spread
_BAND = (0.4, 2.0)  # pass band of the beat detector in heart rates: wide, because the intervals differ
_SHORTEST = 0.45  # shortest interval between two beats, in mean intervals
_PASSES = 2  # the second pass uses the mean rate of the beats of the first one
_REACH = 0.4  # half length of a beat that is compared, in mean intervals


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The beats of one window."""

    bpm: float  # mean rate between the first and the last beat
    spread: float  # standard deviation of the intervals over their mean
    match: float  # −1 to 1: median correlation of a beat with the median beat; low if noise makes the beats


def rhythm(wave: Waveform, bpm: float) -> Rhythm | None:
    """Return the rhythm of the beats, searched near a rate; None if there are too few beats."""
    beats_s: FloatArray = np.zeros(0)
    for _ in range(_PASSES):
        found_s = rate.find_beats(wave, bpm, band=_BAND, shortest=_SHORTEST)
        if len(found_s) < MIN_BEATS:
            break
        beats_s, searched_bpm = found_s, bpm
        bpm = 60 / float(np.diff(beats_s).mean())
    if len(beats_s) < MIN_BEATS:
        return None
    intervals_s = np.diff(beats_s)
    mean_s = float(intervals_s.mean())
    match = _match(wave, beats_s, searched_bpm / 60, mean_s)
    return Rhythm(60 / mean_s, float(intervals_s.std()) / mean_s, match)


def _match(wave: Waveform, beats_s: FloatArray, searched_hz: float, mean_s: float) -> float:
    """Return the median correlation of the beats with their median; 0 if too few beats are complete."""
    high_hz = min(_BAND[1] * searched_hz, 0.95 * wave.fps / 2)
    x = filters.bandpass(
        interpolate_invalid(wave.values, wave.valid), wave.fps, _BAND[0] * searched_hz, high_hz
    )
    at = np.rint((beats_s - wave.start_s) * wave.fps).astype(np.int64)
    reach = int(_REACH * mean_s * wave.fps)
    at = at[(at >= reach) & (at + reach < len(x))]
    if len(at) < MIN_BEATS - 2:
        return 0.0
    beats = x[at[:, None] + np.arange(-reach, reach + 1)]  # (N,L)
    beats = beats - beats.mean(1, keepdims=True)
    middle = median(beats)
    size = np.linalg.norm(beats, axis=1) * np.linalg.norm(middle)
    return float(median(beats @ middle / np.maximum(size, 1e-300)))
