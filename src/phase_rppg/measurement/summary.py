"""Summarise the windows and the pulse wave of each face of a video."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..session.reasons import advice
from ..session.results import FaceResult, WindowResult
from ..signal import hrv, rate
from ..signal.beat_jitter import beat_jitter_s
from ..signal.beat_timing import refine_beats
from ..signal.breathing import breathing
from ..signal.median import median
from ..types import Estimate, FloatArray, NoReading, Reading, SummaryEstimate, Waveform
from .result_buffer import BoxBuffer, ResultBuffer

_BLOCK_S, _MARGIN_S = 60.0, 10.0  # beats are searched in blocks, with a margin for the filter to settle
_SAME_BEAT_S = 0.1  # beats of two blocks that are closer are one beat
_RANGE_PERCENT = (5, 95)  # of the rates of the windows
_AGREE_BPM = 5.0  # probable rates within this distance agree
_SAME_PLACE = 0.5  # faces nearer than this, in face widths, have no left and right
MIN_SEEN_S = 2.0  # a face that was seen for less is reported only if there is no other face


def summarise(windows: Sequence[WindowResult]) -> Reading:
    """Return one reading for all windows of a face: the median of the estimates, weighted by `p_ok`."""
    start_s, end_s = windows[0].start_s, windows[-1].end_s
    shown = _shown(windows)
    if not len(shown):
        return _refusal(windows)
    bpm, low, high, p_ok = shown[:, 2:].T
    weights = np.maximum(p_ok, 1e-6)
    middle = _weighted_median(bpm, weights)
    low_end, high_end = (
        min(_weighted_median(low, weights), middle),
        max(_weighted_median(high, weights), middle),
    )
    # The outer order statistics, so that the range of few windows contains all of them.
    range_low = float(np.percentile(bpm, _RANGE_PERCENT[0], method="lower"))
    range_high = float(np.percentile(bpm, _RANGE_PERCENT[1], method="higher"))
    interval = (middle, low_end, high_end, float(p_ok.mean()), start_s, end_s)
    p_alive = float(np.mean([w.reading.p_alive for w in windows if isinstance(w.reading, Estimate)]))
    bounds = (min(range_low, middle), max(range_high, middle))
    return SummaryEstimate(*interval, *bounds, p_alive=p_alive)


def _refusal(windows: Sequence[WindowResult]) -> NoReading:
    """Return the most common reason, and the probable rate if the windows with one agree on it."""
    refused = [window.reading for window in windows if isinstance(window.reading, NoReading)]
    reason = Counter(reading.reason for reading in refused).most_common(1)[0][0]
    start_s, end_s = windows[0].start_s, windows[-1].end_s
    probable = [(one, one.probable_bpm) for one in refused if one.probable_bpm is not None]
    best, best_bpm = max(probable, key=lambda pair: pair[0].p_probable, default=(None, 0.0))
    agreeing = sum(abs(bpm - best_bpm) <= _AGREE_BPM for _, bpm in probable)
    if best is not None and 2 * agreeing > len(probable):
        return NoReading(reason, start_s, end_s, best.p_ok, best_bpm, p_alive=best.p_alive)
    p_ok = max(reading.p_ok for reading in refused)
    return NoReading(reason, start_s, end_s, p_ok, p_alive=max(reading.p_alive for reading in refused))


def _shown(windows: Sequence[WindowResult]) -> FloatArray:
    """Return the estimates of the windows as rows (N,6): start_s, end_s, bpm, low, high, p_ok."""
    readings = (window.reading for window in windows if isinstance(window.reading, Estimate))
    rows = ((r.start_s, r.end_s, r.bpm, r.low, r.high, r.p_ok) for r in readings)
    return np.fromiter(rows, np.dtype((np.float64, 6)))


def summarise_faces(buffer: ResultBuffer, bits_per_pixel: float | None = None) -> tuple[FaceResult, ...]:
    """Return the faces of a whole video, ordered by area times duration, largest first.

    `bits_per_pixel` is the size of the file per pixel and frame, if known; the advice uses it.
    """
    found = [_face(buffer, face, bits_per_pixel) for face in buffer.windows if face in buffer.waves]
    found.sort(key=lambda f: (-(f.face_px**2) * f.seen_s, f.id))
    long_enough = [f for f in found if f.seen_s >= MIN_SEEN_S]
    return _with_positions(long_enough or found[:1])


def _with_positions(faces: Sequence[FaceResult]) -> tuple[FaceResult, ...]:
    """Return the faces with their positions from left to right in the picture, if these differ."""
    left_to_right = sorted((face for face in faces if len(face.boxes.t_s)), key=_centre_px)
    places: list[list[FaceResult]] = []
    for face in left_to_right:
        near = places and _centre_px(face) - _centre_px(places[-1][-1]) < _SAME_PLACE * face.face_px
        if near:
            places[-1].append(face)
        else:
            places.append([face])
    names = _position_names(len(places))
    position = {face.id: name for name, place in zip(names, places, strict=True) for face in place}
    return tuple(replace(face, position=position.get(face.id)) for face in faces)


def _centre_px(face: FaceResult) -> float:
    """Return the median horizontal position of a face."""
    return float(median(face.boxes.boxes[:, 0] + face.boxes.boxes[:, 2] / 2))


def _position_names(count: int) -> list[str | None]:
    """Return names of places from left to right; one place needs none."""
    if count <= 1:
        return [None] * count
    if count <= 3:
        return ["left", *["centre"] * (count - 2), "right"]
    return [f"{number} of {count} from left" for number in range(1, count + 1)]


def _face(buffer: ResultBuffer, face: int, bits_per_pixel: float | None) -> FaceResult:
    """Return the result of one face."""
    windows, wave = buffer.windows[face], buffer.waves[face].to_waveform()
    beats_s = find_shown_beats(wave, windows)
    jitter_s = beat_jitter_s(wave, beats_s)
    slow = buffer.slow.get(face)
    summary = summarise(windows)
    text = ""
    if isinstance(summary, NoReading):
        best = max(windows, key=lambda window: window.reading.p_ok)
        text = advice(summary, best.quality, bits_per_pixel)
    return FaceResult(
        id=face,
        summary=summary,
        windows=windows,
        wave=wave,
        beats_s=beats_s,
        hrv=hrv.hrv(beats_s, jitter_s),
        breathing=breathing(beats_s, wave, slow.to_signals() if slow is not None else None),
        hrv_limits=hrv.failed_limits(beats_s, jitter_s),
        boxes=buffer.boxes.get(face, BoxBuffer()).to_track(face),
        thumbnail=buffer.thumbnails.get(face),
        advice=text,
        face_px=float(median(np.fromiter((w.quality.face_px for w in windows), np.float64))),
        seen_s=float(wave.valid.sum() / wave.fps),
    )


def find_shown_beats(wave: Waveform, windows: Sequence[WindowResult]) -> np.ndarray:
    """Return the times of the beats in windows that have an estimate, searched near the estimated rate.

    Each beat is shifted to match the mean beat of its block.
    """
    shown = _shown(windows)
    if not len(shown):
        return np.zeros(0)
    middle_s, shown_bpm = shown[:, :2].mean(1), shown[:, 2]
    has_reading = np.zeros(len(wave.values), bool)
    for low, high in np.rint((shown[:, :2] - wave.start_s) * wave.fps).astype(int):
        has_reading[max(low, 0) : max(high, 0)] = True
    block, margin = round(_BLOCK_S * wave.fps), round(_MARGIN_S * wave.fps)
    found: list[FloatArray] = [np.zeros(0)]
    for first in range(0, len(wave.values), block):
        low, high = max(first - margin, 0), first + block + margin
        start_s, valid = wave.start_s + low / wave.fps, wave.valid[low:high] & has_reading[low:high]
        part = Waveform(wave.values[low:high], wave.fps, start_s, valid)
        beats_s = refine_beats(part, rate.find_beats(part, np.interp(part.t_s, middle_s, shown_bpm)))
        begin_s, end_s = (wave.start_s + tick / wave.fps for tick in (first, first + block))
        # Two blocks place a beat at their boundary slightly differently; it is kept once.
        begin_s = max(begin_s - _SAME_BEAT_S / 2, found[-1].max(initial=-np.inf) + _SAME_BEAT_S)
        found.append(beats_s[(beats_s >= begin_s) & (beats_s < end_s + _SAME_BEAT_S / 2)])
    return np.concatenate(found)


def _weighted_median(values: np.ndarray, weights: np.ndarray) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])])
