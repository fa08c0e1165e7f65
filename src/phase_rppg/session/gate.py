"""Decide whether a window gets a heart rate; the only implementation of the rule.

Two logistic models of the window's quality answer two questions. `p_alive` is the probability that a living
pulse causes the spectral peak. `p_ok` is P(|error| ≤ 5 bpm) if the face is alive.

A window is shown if `p_ok` reaches `ok` and `p_alive` reaches `alive`. Such a window is confident. Within
`memory_s` of a confident window of the same face, `p_alive` needs to reach only `kept_alive`, because a face
stays alive.

Coefficients, thresholds and limits come from data files. `phase calibrate` fits them to synthetic recordings
with and without a pulse. Some values are set by hand:

- `evaluate/fit_calibration.py` sets `memory_s`, the allowed error rates, and the limits on duration, frame
  rate, pauses and coverage.
- `_AMPLITUDE_CAP` bounds the amplitude feature. Above it, amplitude depends on light and compression, which
  differ between synthetic and real recordings.
- `_BLOOD_RED` and `_BLOOD_GREY` are published properties of blood.
- `_NOISE_FACTOR` sets how much noise `colour_deviation` subtracts; the features subtract it once.
- `_MIN_EXPLAINED` selects the reason that a refusal names. It never causes a refusal.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..signal.constants import BAND_HZ
from ..signal.rate import Peak
from ..types import BoolArray, Estimate, FloatArray, NoReading, Quality, Reading, Reason
from .calibration import Calibration, LogisticModel, QualityLimits, Thresholds
from .results import WindowResult
from .window_quality import BEATS_ALIKE

_AMPLITUDE_CAP = 5e-4  # relative change of the skin colour
_BLOOD_RED = 0.43  # red over green of the blood-volume signature of de Haan and van Leest (2014): 0.33 / 0.77
_BLOOD_GREY = 0.56  # mean of red and blue over green of the same signature; a tint changes it little
_NOISE_FACTOR = 2.0  # in multiples of the noise amplitude relative to the peak
_MIN_EXPLAINED = 0.5  # share of the spectral peak that the background or the motion must explain to be named
_UNKNOWN_DISTANCE_BPM = 20.0  # between rate and beats, if there are too few beats
PROBABLE_P_OK = 0.5  # a refused window from this `p_ok` on names its rate as probable
_TOLERANCE_S = 1e-6  # rounding of window times


def features(peak: Peak, quality: Quality) -> dict[str, float]:
    """Return the features of the logistic models; their names are the keys of the data files.

    Ratios of two lines have their noise subtracted, so that a weak peak is no evidence for light.
    Brightness, face size, clipping and coverage are not features. They have limits, and within these limits
    they affect the features below.
    """
    noise = 10 ** (-quality.visible_db / 20)  # of a colour ratio: noise relative to the peak
    return {
        "snr_db": quality.snr_db,
        "log_sigma": math.log10(max(peak.sigma_bpm, 1e-3)),
        "log_track_sigma": math.log10(max(quality.track_sigma_bpm, 1e-2)),
        "log_change": math.log10(1 + quality.change_bpm),
        "log_beat_distance": math.log10(1 + _beat_distance_bpm(peak, quality)),
        "log_beat_difference": math.log10(1 + quality.beat_difference_bpm),
        "beat_match": quality.beat_match,
        "irregularity": _irregularity(peak, quality),
        "log_amplitude": math.log10(min(max(quality.amplitude, 1e-6), _AMPLITUDE_CAP)),
        "background": quality.background,
        "motion": quality.motion,
        "support": quality.support,
        "agreement": quality.agreement,
        "visible_db": quality.visible_db,
        "background_coherence": quality.background_coherence,
        "red_excess": max(quality.red - _BLOOD_RED - noise, 0.0),
        "red_deficit": max(_BLOOD_RED - quality.red - noise, 0.0),
        "grey_excess": max((quality.red + quality.blue) / 2 - _BLOOD_GREY - noise, 0.0),
    }


class Gate:
    """The gate of one face; it remembers the last confident window until the face is lost."""

    def __init__(self, calibration: Calibration, *, gated: bool = True) -> None:
        self._calibration, self._gated = calibration, gated
        self._confident_s: float | None = None  # end of the last confident window
        self._lost_s: deque[float] = deque()  # losses that are later than the last window

    def record_loss(self, t_s: float) -> None:
        """Record that the face was lost at `t_s`."""
        self._lost_s.append(t_s)

    def push(self, peak: Peak | None, quality: Quality, start_s: float, end_s: float) -> Reading:
        """Return the reading of the next window. See `gate` for the parameters."""
        while self._lost_s and self._lost_s[0] <= end_s:
            self._lost_s.popleft()
            self._confident_s = None  # a face that returns may belong to another person
        reading = gate(
            peak,
            quality,
            start_s,
            end_s,
            calibration=self._calibration,
            gated=self._gated,
            confident_s=self._confident_s,
        )
        if confident(reading.p_ok, reading.p_alive, self._calibration.thresholds):
            self._confident_s = end_s
        return reading


def gate(
    peak: Peak | None,
    quality: Quality,
    start_s: float,
    end_s: float,
    *,
    calibration: Calibration,
    gated: bool = True,
    confident_s: float | None = None,
) -> Reading:
    """Return an `Estimate` if the window passes the gate, otherwise `NoReading` with the reason.

    `peak` and `quality` come from `assess()`. `confident_s` is the end of a confident window of the same
    face, earlier or later. With `gated=False` every window that has a peak gets an `Estimate` with its
    `p_ok` and `p_alive`, for evaluation.
    """
    reason = violated_limit(quality, calibration.limits, end_s - start_s)
    if peak is None:
        return NoReading(reason or Reason.NO_PULSE, start_s, end_s)
    p_ok, p_alive = probabilities(peak, quality, calibration) if reason is None else (0.0, 0.0)
    if gated and reason is not None:
        return NoReading(reason, start_s, end_s)
    if gated:
        kept = confident_s is not None and bool(_near(end_s - confident_s, calibration.thresholds))
        if not _shown(p_ok, p_alive, kept, calibration.thresholds):
            likely = min(p_ok, p_alive) >= PROBABLE_P_OK
            cause = _likely_cause(quality)
            return NoReading(cause, start_s, end_s, p_ok, peak.bpm if likely else None, p_alive=p_alive)
    return _estimate(peak, quality, (p_ok, p_alive), start_s, end_s, calibration)


def shown_windows(
    p_ok: FloatArray,
    p_alive: FloatArray,
    end_s: FloatArray,
    recording: np.ndarray,
    thresholds: Thresholds,
    *,
    past: bool = True,
) -> BoolArray:
    """Return which windows (W,) are shown when all windows are known, as in a video file.

    Only windows with the same number in `recording` (W,) affect each other. With `past=False` only later
    confident windows lower the threshold.
    """
    order = np.lexsort((end_s, recording))
    certain = confident(p_ok[order], p_alive[order], thresholds)
    place, count = np.arange(len(p_ok)), len(p_ok)
    following = np.minimum.accumulate(np.where(certain, place, count)[::-1])[::-1]
    sides = [following]
    if past:
        sides.append(np.maximum.accumulate(np.where(certain, place, -1)))
    sorted_s, sorted_recording = end_s[order], recording[order]
    kept = np.zeros(count, bool)
    for side in sides:
        known = (side >= 0) & (side < count)
        at = np.clip(side, 0, count - 1)
        same = known & (sorted_recording[at] == sorted_recording)
        kept[order] |= same & _near(sorted_s - sorted_s[at], thresholds)
    return _shown(p_ok, p_alive, kept, thresholds)


def in_hindsight(
    windows: Sequence[WindowResult], calibration: Calibration, lost_s: Sequence[float] = ()
) -> Iterator[tuple[int, Estimate]]:
    """Yield (index, reading) of refused windows of one face that a later confident window confirms.

    A confident window confirms no window from before a time in `lost_s`, when the face was lost.
    """
    if not len(windows):
        return
    columns = ((w.start_s, w.end_s, w.reading.p_ok, w.reading.p_alive) for w in windows)
    start_s, end_s, p_ok, p_alive = np.fromiter(columns, np.dtype((np.float64, 4))).T
    lost = np.sort(np.asarray(lost_s, float))
    losses_before = np.searchsorted(lost, end_s, side="right")
    whole = losses_before == np.searchsorted(lost, start_s, side="right")  # no loss within the window
    thresholds = calibration.thresholds
    shown = whole & shown_windows(p_ok, p_alive, end_s, losses_before, thresholds, past=False)
    for index in np.flatnonzero(shown).tolist():
        window = windows[index]
        if isinstance(window.reading, NoReading) and window.peak is not None:
            chances = (window.reading.p_ok, window.reading.p_alive)
            span_s = (window.start_s, window.end_s)
            yield index, _estimate(window.peak, window.quality, chances, *span_s, calibration)


def _near(distance_s: FloatArray | float, thresholds: Thresholds) -> BoolArray:
    """Return whether a confident window at this distance still lowers the threshold."""
    near: BoolArray = np.abs(distance_s) <= thresholds.memory_s + _TOLERANCE_S
    return near


def confident(p_ok: FloatArray | float, p_alive: FloatArray | float, thresholds: Thresholds) -> BoolArray:
    """Return whether a window is confident: shown whatever the windows near it."""
    return _shown(p_ok, p_alive, False, thresholds)


def _shown(
    p_ok: FloatArray | float,
    p_alive: FloatArray | float,
    kept: BoolArray | bool,
    thresholds: Thresholds,
) -> BoolArray:
    """Return whether the probabilities are high enough; `kept` marks windows near a confident one."""
    alive = np.asarray(p_alive) >= np.where(kept, thresholds.kept_alive, thresholds.alive)
    shown: BoolArray = alive & (np.asarray(p_ok) >= thresholds.ok)
    return shown


def _estimate(
    peak: Peak,
    quality: Quality,
    chances: tuple[float, float],
    start_s: float,
    end_s: float,
    calibration: Calibration,
) -> Estimate:
    half_bpm = half_width_bpm(peak, quality, calibration)
    low, high = max(peak.bpm - half_bpm, 60 * BAND_HZ[0]), min(peak.bpm + half_bpm, 60 * BAND_HZ[1])
    p_ok, p_alive = chances
    low, high = min(low, peak.bpm), max(high, peak.bpm)
    return Estimate(peak.bpm, low, high, p_ok, start_s, end_s, p_alive=p_alive)


def half_width_bpm(peak: Peak, quality: Quality, calibration: Calibration) -> float:
    """Return half the width of the interval, which holds the mean rate of the window in 90 % of windows."""
    terms = interval_terms(peak, quality)
    interval = calibration.interval
    return interval.floor_bpm + sum(scale * terms[name] for name, scale in interval.scales.items())


def interval_terms(peak: Peak, quality: Quality) -> dict[str, float]:
    """Return the terms of the half width in bpm; their names are the keys of the data files."""
    return {
        "sigma_bpm": peak.sigma_bpm,
        "track_sigma_bpm": quality.track_sigma_bpm,
        "change_bpm": quality.change_bpm,
        "beat_distance_bpm": _beat_distance_bpm(peak, quality),
        "beat_difference_bpm": quality.beat_difference_bpm,
        "irregular_bpm": peak.bpm * _irregularity(peak, quality),
    }


def _irregularity(peak: Peak, quality: Quality) -> float:
    """Return the spread of the beat intervals; 0 if noise makes the beats, or if their mean is the rate."""
    unlike = quality.beat_match < BEATS_ALIKE
    return 0.0 if unlike or _beat_distance_bpm(peak, quality) == 0 else quality.beat_spread


def _beat_distance_bpm(peak: Peak, quality: Quality) -> float:
    """Return the difference between the rate and the mean rate of the beats."""
    return abs(peak.bpm - quality.beat_bpm) if quality.beat_bpm > 0 else _UNKNOWN_DISTANCE_BPM


def colour_deviation(quality: Quality) -> float:
    """Return the red-to-green ratio, mirrored at that of blood so that every deviation increases it.

    The ratio is about 0.4 for blood and 1 for a change of the light. A negative ratio indicates motion. Twice
    the noise is subtracted, because noise dominates the ratio of a weak peak.
    """
    away = _BLOOD_RED + abs(quality.red - _BLOOD_RED)
    return max(away - _NOISE_FACTOR * 10 ** (-quality.visible_db / 20), 0.0)


def refuse_bad_timestamps(reading: Reading) -> NoReading:
    """Refuse a reading because the video has no true timestamps, so its rate is unknown."""
    return NoReading(Reason.BAD_TIMESTAMPS, reading.start_s, reading.end_s)


def probabilities(peak: Peak, quality: Quality, calibration: Calibration) -> tuple[float, float]:
    """Return `p_ok` and `p_alive` of a window by the calibrated models."""
    values = features(peak, quality)
    return probability(values, calibration.ok), probability(values, calibration.alive)


def probability(values: Mapping[str, float], model: LogisticModel) -> float:
    """Return the probability that a logistic model gives to these features."""
    logit = model.bias
    for name, feature in model.features.items():
        value = min(max(values[name], feature.low), feature.high)
        logit += feature.weight * (value - feature.mean) / feature.std
    return 1 / (1 + math.exp(-min(max(logit, -30.0), 30.0)))


def within_limits(quality: Quality, limits: QualityLimits) -> bool:
    """Return whether a window of sufficient duration can be judged by its probabilities."""
    return violated_limit(quality, limits) is None


def violated_limit(q: Quality, limits: QualityLimits, duration_s: float = math.inf) -> Reason | None:
    """Return the reason for refusing a window whatever its probabilities, the most basic reason first."""
    checks = (
        (duration_s < limits.min_seconds - 1e-6, Reason.TOO_SHORT),
        (q.fps < limits.min_fps, Reason.LOW_FPS),
        (q.max_gap_s > limits.max_gap_s, Reason.BAD_TIMESTAMPS),
        (q.coverage <= 0, Reason.NO_FACE),
        (q.coverage < limits.min_coverage, Reason.FACE_LOST),
        (q.face_px < limits.min_face_px, Reason.FACE_TOO_SMALL),
        (q.luma < limits.min_luma, Reason.TOO_DARK),
        (q.clipped > limits.max_clipped, Reason.CLIPPED),
        (q.colourfulness < limits.min_colourfulness, Reason.NO_COLOUR),
        (colour_deviation(q) > limits.max_colour_deviation, _cause_by_colour(q)),
        (q.background > limits.max_background or q.motion > limits.max_motion, _likely_cause(q)),
    )
    return next((reason for failed, reason in checks if failed), None)


def _cause_by_colour(q: Quality) -> Reason:
    """Return the reason for a peak whose colour is not that of blood."""
    return Reason.LIGHT_FLICKER if q.red > _BLOOD_RED else Reason.NO_PULSE


def _likely_cause(q: Quality) -> Reason:
    """Return the reason for a refused peak: the signal that shares most of it, if any does."""
    if max(q.background, q.motion) < _MIN_EXPLAINED:
        return Reason.NO_PULSE
    return Reason.LIGHT_FLICKER if q.background >= q.motion else Reason.MOTION
