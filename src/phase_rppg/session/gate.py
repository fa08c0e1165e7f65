"""Decide whether a window gets a heart rate; the only implementation of the rule.

`p_ok` is P(|error| ≤ 5 bpm), from a logistic model of the window's quality. A window is shown if its `p_ok`
reaches `threshold`, or if it reaches `kept_threshold` within `memory_s` of a confident window of the same
face. A window is confident if its `p_ok` reaches `threshold`.

Coefficients, thresholds and limits come from data files. `phase calibrate` writes them from synthetic
recordings with and without a pulse. Three constants of this file are conventions:

- `_AMPLITUDE_CAP` bounds the amplitude feature. Above it, amplitude depends on light and compression, which
  differ between synthetic and real recordings.
- `_BLOOD_RED` is a published property of blood.
- `_MOST` selects the reason that a refusal names. It never causes a refusal.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from ..signal.constants import BAND_HZ
from ..signal.rate import Peak
from ..types import BoolArray, Estimate, FloatArray, NoReading, Quality, Reading, Reason
from .calibration import Calibration, Limits, Thresholds
from .results import WindowResult

_AMPLITUDE_CAP = 5e-4  # relative change of the skin colour
_BLOOD_RED = 0.43  # red over green of the blood-volume signature of de Haan and van Leest (2014): 0.33 / 0.77
_MOST = 0.5  # share of the spectral peak that the background or the motion must explain to be named
_TOLERANCE_S = 1e-6  # rounding of window times


def features(peak: Peak, quality: Quality) -> dict[str, float]:
    """Return the features of the logistic model; their names are the keys of the data files.

    Brightness, face size, clipping and coverage are not features. They have limits, and within these limits
    they affect the features below.
    """
    return {
        "snr_db": quality.snr_db,
        "share": peak.power,
        "log_sigma": math.log10(max(peak.sigma_bpm, 1e-3)),
        "log_amplitude": math.log10(min(max(quality.amplitude, 1e-6), _AMPLITUDE_CAP)),
        "background": quality.background,
        "motion": quality.motion,
        "support": quality.support,
        "agreement": quality.agreement,
        "visible_db": quality.visible_db,
        "background_coherence": quality.background_coherence,
        "off_colour": off_colour(quality),
    }


class Gate:
    """The gate of one face; it remembers the last confident window until the face is lost."""

    def __init__(self, calibration: Calibration, *, gated: bool = True) -> None:
        self._calibration, self._gated = calibration, gated
        self._confident_s: float | None = None  # end of the last confident window
        self._lost_s: deque[float] = deque()  # losses that are later than the last window

    def lost(self, t_s: float) -> None:
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
        if reading.p_ok >= self._calibration.threshold:
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
    `p_ok`, for evaluation.
    """
    reason = violated_limit(quality, calibration.limits, end_s - start_s)
    if peak is None:
        return NoReading(reason or Reason.NO_PULSE, start_s, end_s)
    p_ok = probability(peak, quality, calibration) if reason is None else 0.0
    if gated and reason is not None:
        return NoReading(reason, start_s, end_s)
    if gated:
        kept = confident_s is not None and _near(end_s - confident_s, calibration.thresholds)
        if not _shown(p_ok, kept, calibration.thresholds):
            return NoReading(_likely_cause(quality), start_s, end_s, p_ok)
    return _estimate(peak, p_ok, start_s, end_s, calibration)


def shown_windows(
    p_ok: FloatArray,
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
    confident = p_ok[order] >= thresholds.threshold
    place, count = np.arange(len(p_ok)), len(p_ok)
    following = np.minimum.accumulate(np.where(confident, place, count)[::-1])[::-1]
    sides = [following]
    if past:
        sides.append(np.maximum.accumulate(np.where(confident, place, -1)))
    sorted_s, sorted_recording = end_s[order], recording[order]
    kept = np.zeros(count, bool)
    for side in sides:
        known = (side >= 0) & (side < count)
        at = np.clip(side, 0, count - 1)
        same = known & (sorted_recording[at] == sorted_recording)
        kept[order] |= same & _near(sorted_s - sorted_s[at], thresholds)
    return _shown(p_ok, kept, thresholds)


def in_hindsight(
    windows: Sequence[WindowResult], calibration: Calibration, lost_s: Sequence[float] = ()
) -> Iterator[tuple[int, Estimate]]:
    """Yield (index, reading) of refused windows of one face that a later confident window confirms.

    A confident window confirms no window from before a time in `lost_s`, when the face was lost.
    """
    if not len(windows):
        return
    columns = ((w.start_s, w.end_s, w.reading.p_ok) for w in windows)
    start_s, end_s, p_ok = np.fromiter(columns, np.dtype((np.float64, 3))).T
    lost = np.sort(np.asarray(lost_s, float))
    visit = np.searchsorted(lost, end_s, side="right")  # number of losses before the end of each window
    whole = visit == np.searchsorted(lost, start_s, side="right")  # no loss within the window
    shown = whole & shown_windows(p_ok, end_s, visit, calibration.thresholds, past=False)
    for index in np.flatnonzero(shown).tolist():
        window = windows[index]
        if isinstance(window.reading, NoReading) and window.peak is not None:
            yield (
                index,
                _estimate(window.peak, window.reading.p_ok, window.start_s, window.end_s, calibration),
            )


def _near(distance_s: FloatArray | float, thresholds: Thresholds) -> BoolArray:
    """Return whether a confident window at this distance still lowers the threshold."""
    near: BoolArray = np.abs(distance_s) <= thresholds.memory_s + _TOLERANCE_S
    return near


def _shown(p_ok: FloatArray | float, kept: BoolArray | bool, thresholds: Thresholds) -> BoolArray:
    """Return whether `p_ok` is high enough; `kept` marks windows near a confident one."""
    shown: BoolArray = np.asarray(p_ok) >= np.where(kept, thresholds.kept_threshold, thresholds.threshold)
    return shown


def _estimate(peak: Peak, p_ok: float, start_s: float, end_s: float, calibration: Calibration) -> Estimate:
    half_bpm = calibration.interval_floor_bpm + calibration.interval_scale * peak.sigma_bpm
    low, high = max(peak.bpm - half_bpm, 60 * BAND_HZ[0]), min(peak.bpm + half_bpm, 60 * BAND_HZ[1])
    return Estimate(peak.bpm, min(low, peak.bpm), max(high, peak.bpm), p_ok, start_s, end_s)


def off_colour(quality: Quality) -> float:
    """Return a lower bound of the distance between the peak's red-to-green ratio and that of blood.

    The ratio is about 0.4 for blood and 1 for a change of the light. A negative ratio indicates motion. The
    bound subtracts twice the noise, because noise dominates the ratio of a weak peak.
    """
    away = _BLOOD_RED + abs(quality.red - _BLOOD_RED)
    return max(away - 2 * 10 ** (-quality.visible_db / 20), 0.0)


def distrust(reading: Reading) -> NoReading:
    """Refuse a reading because the video has no true timestamps, so its rate is unknown."""
    return NoReading(Reason.BAD_TIMESTAMPS, reading.start_s, reading.end_s)


def probability(peak: Peak, quality: Quality, calibration: Calibration) -> float:
    """Return P(|error| ≤ 5 bpm) of a window by the calibrated logistic model."""
    logit = calibration.bias
    values = features(peak, quality)
    for name, feature in calibration.features.items():
        value = min(max(values[name], feature.low), feature.high)
        logit += feature.weight * (value - feature.mean) / feature.std
    return 1 / (1 + math.exp(-min(max(logit, -30.0), 30.0)))


def within_limits(quality: Quality, limits: Limits) -> bool:
    """Return whether a window of sufficient duration can be judged by its `p_ok`."""
    return violated_limit(quality, limits) is None


def violated_limit(q: Quality, limits: Limits, duration_s: float = math.inf) -> Reason | None:
    """Return the reason for refusing a window whatever its `p_ok`, the most basic reason first."""
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
        (off_colour(q) > limits.max_off_colour, _cause_by_colour(q)),
        (q.background > limits.max_background or q.motion > limits.max_motion, _likely_cause(q)),
    )
    return next((reason for failed, reason in checks if failed), None)


def _cause_by_colour(q: Quality) -> Reason:
    """Return the reason for a peak whose colour is not that of blood."""
    return Reason.LIGHT_FLICKER if q.red > _BLOOD_RED else Reason.NO_PULSE


def _likely_cause(q: Quality) -> Reason:
    """Return the reason for a refused peak: the signal that shares most of it, if any does."""
    if max(q.background, q.motion) < _MOST:
        return Reason.NO_PULSE
    return Reason.LIGHT_FLICKER if q.background >= q.motion else Reason.MOTION
