"""Summarise the windows and the pulse wave of each face of a video."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..session.results import FaceResult, WindowResult
from ..signal import hrv, rate
from ..signal.beat_jitter import beat_jitter_s
from ..types import Estimate, FloatArray, NoReading, Reading, Waveform
from .result_buffer import ResultBuffer

_BLOCK_S, _MARGIN_S = 60.0, 10.0  # beats are searched in blocks, with a margin for the filter to settle
MIN_SEEN_S = 2.0  # a face that was seen for less is reported only if there is no other face


def summarise(windows: Sequence[WindowResult]) -> Reading:
    """Return one reading for all windows of a face: the median of the estimates, weighted by `p_ok`."""
    start_s, end_s = windows[0].start_s, windows[-1].end_s
    shown = _shown(windows)
    if not len(shown):
        refused = Counter(w.reading.reason for w in windows if isinstance(w.reading, NoReading))
        return NoReading(
            refused.most_common(1)[0][0], start_s, end_s, max(window.reading.p_ok for window in windows)
        )
    bpm, low, high, p_ok = shown[:, 2:].T
    weights = np.maximum(p_ok, 1e-6)
    middle = _weighted_median(bpm, weights)
    low_end, high_end = (
        min(_weighted_median(low, weights), middle),
        max(_weighted_median(high, weights), middle),
    )
    return Estimate(middle, low_end, high_end, float(p_ok.mean()), start_s, end_s)


def _shown(windows: Sequence[WindowResult]) -> FloatArray:
    """Return the estimates of the windows as rows (N,6): start_s, end_s, bpm, low, high, p_ok."""
    readings = (window.reading for window in windows if isinstance(window.reading, Estimate))
    rows = ((r.start_s, r.end_s, r.bpm, r.low, r.high, r.p_ok) for r in readings)
    return np.fromiter(rows, np.dtype((np.float64, 6)))


def faces_of(gathered: ResultBuffer) -> tuple[FaceResult, ...]:
    """Return the faces of a whole video, ordered by area times duration, largest first."""
    found = [_face(gathered, face) for face in gathered.windows if face in gathered.waves]
    found.sort(key=lambda f: (-(f.face_px**2) * f.seen_s, f.id))
    long_enough = [f for f in found if f.seen_s >= MIN_SEEN_S]
    return tuple(long_enough or found[:1])


def _face(gathered: ResultBuffer, face: int) -> FaceResult:
    windows, wave = gathered.windows[face], gathered.waves[face].whole()
    beats_s = beats_of(wave, windows)
    return FaceResult(
        id=face,
        summary=summarise(windows),
        windows=windows,
        wave=wave,
        beats_s=beats_s,
        hrv=hrv.hrv(beats_s, beat_jitter_s(wave, beats_s)),
        face_px=float(np.median(np.fromiter((w.quality.face_px for w in windows), np.float64))),
        seen_s=float(wave.valid.sum() / wave.fps),
    )


def beats_of(wave: Waveform, windows: Sequence[WindowResult]) -> np.ndarray:
    """Return the beats in windows with a reading, searched near the rate that was read."""
    shown = _shown(windows)
    if not len(shown):
        return np.zeros(0)
    middle_s, shown_bpm = shown[:, :2].mean(1), shown[:, 2]
    believed = np.zeros(len(wave.values), bool)
    for low, high in np.rint((shown[:, :2] - wave.start_s) * wave.fps).astype(int):
        believed[max(low, 0) : max(high, 0)] = True
    block, margin = round(_BLOCK_S * wave.fps), round(_MARGIN_S * wave.fps)
    found: list[FloatArray] = [np.zeros(0)]
    for first in range(0, len(wave.values), block):
        low, high = max(first - margin, 0), first + block + margin
        start_s, valid = wave.start_s + low / wave.fps, wave.valid[low:high] & believed[low:high]
        part = Waveform(wave.values[low:high], wave.fps, start_s, valid)
        beats_s = rate.find_beats(part, np.interp(part.t_s, middle_s, shown_bpm))
        begin_s, end_s = (wave.start_s + tick / wave.fps for tick in (first, first + block))
        found.append(beats_s[(beats_s >= begin_s) & (beats_s < end_s)])
    return np.concatenate(found)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])])
