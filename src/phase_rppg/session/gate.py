"""The only gate: what is known about a window → a heart rate, or the reason why there is none.

`p_ok` is P(|error| ≤ 5 bpm), from a logistic model of the window's quality. Its coefficients, the threshold
and the limits come from data files that `phase calibrate` writes by running the generator's worlds, those
without a pulse included, through the pipeline. Nothing that decides is set by hand in this file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..signal.rate import BAND_HZ, Peak
from ..types import Estimate, NoReading, Quality, Reading, Reason
from .calibration import Calibration, load
from .results import WindowResult

# A skin that changes by this share is no photo. Beyond it, strength tells of light and compression, which are
# other in life than in the worlds of the calibration, and nothing of blood.
_PLAIN_AMPLITUDE = 5e-4
_BLOOD_RED = 0.43  # red over green of the blood-volume signature of de Haan and van Leest (2014): 0.33 / 0.77
_MOST = 0.5  # a cause is named when it shows most of the line; it decides only the word, not the refusal


def features(peak: Peak, quality: Quality) -> dict[str, float]:
    """The terms of the logistic model; their names are the keys of the data files.

    Darkness, size, clipping and coverage are limits, not terms: within their limits they act through these.
    """
    return {
        "snr_db": quality.snr_db,
        "share": peak.power,
        "log_sigma": math.log10(max(peak.sigma_bpm, 1e-3)),
        "log_amplitude": math.log10(min(max(quality.amplitude, 1e-6), _PLAIN_AMPLITUDE)),
        "background": quality.background,
        "motion": quality.motion,
        "support": quality.support,
        "agreement": quality.agreement,
        "visible_db": quality.visible_db,
        "background_coherence": quality.background_coherence,
        "off_colour": off_colour(quality),
    }


def gate(
    peak: Peak | None,
    quality: Quality,
    start_s: float,
    end_s: float,
    *,
    method: str = "pos",
    gated: bool = True,
    sure_s: float | None = None,
    calibration: Calibration | None = None,
) -> Reading:
    """An `Estimate` when the window can be believed, otherwise `NoReading` with the reason.

    `peak` and `quality` come from `assess()`. `method` chooses the calibration. `sure_s` is when this face
    was sure, before or after: that it is alive need not be shown anew in every window, so for a while a
    fainter line is enough. With `gated=False` every window that has a line at all gets its number with its
    honest `p_ok`, for evaluation.
    """
    calibration = calibration or load(method)
    reason = _unfit(quality, end_s - start_s, calibration)
    if peak is None:
        return NoReading(reason or Reason.NO_PULSE, start_s, end_s)
    p_ok = probability(peak, quality, calibration) if reason is None else 0.0
    if gated and reason is not None:
        return NoReading(reason, start_s, end_s)
    if gated and p_ok < needed(calibration, end_s, sure_s):
        return NoReading(_why(quality), start_s, end_s, p_ok)
    half_bpm = calibration.interval_floor_bpm + calibration.interval_scale * peak.sigma_bpm
    low, high = max(peak.bpm - half_bpm, 60 * BAND_HZ[0]), min(peak.bpm + half_bpm, 60 * BAND_HZ[1])
    return Estimate(peak.bpm, min(low, peak.bpm), max(high, peak.bpm), p_ok, start_s, end_s)


def needed(calibration: Calibration, end_s: float, sure_s: float | None) -> float:
    """The least p_ok that is shown in a window that ends at `end_s`."""
    alive = sure_s is not None and abs(end_s - sure_s) <= calibration.memory_s + 1e-6
    return calibration.kept_threshold if alive else calibration.threshold


def is_sure(reading: Reading, method: str) -> bool:
    """Whether a window alone shows that the face is alive."""
    return reading.p_ok >= load(method).threshold


def in_hindsight(
    windows: Sequence[WindowResult], method: str, lost_s: Sequence[float] = ()
) -> Iterator[tuple[int, Estimate]]:
    """What the windows of one face show after all, once all have been seen: (number of the window, reading).

    A face that is sure now was alive a moment ago, too, unless it was lost in between (`lost_s`).
    """
    sure_s: float | None = None
    for index in reversed(range(len(windows))):
        window = windows[index]
        if is_sure(window.reading, method):
            sure_s = window.end_s
        elif sure_s is not None and isinstance(window.reading, NoReading):
            if any(window.start_s < t_s <= sure_s for t_s in lost_s):
                continue
            start_s, end_s = window.start_s, window.end_s
            now = gate(window.peak, window.quality, start_s, end_s, method=method, sure_s=sure_s)
            if isinstance(now, Estimate):
                yield index, now


def off_colour(quality: Quality) -> float:
    """How far red over green of the line is from that of blood, at the least: noise blurs a faint line.

    Blood has about 0.4 and so a little of it, the noise taken off. A lamp has 1; where red goes against
    green, something moves.
    """
    away = _BLOOD_RED + abs(quality.red - _BLOOD_RED)
    return max(away - 2 * 10 ** (-quality.visible_db / 20), 0.0)


def distrust(reading: Reading) -> NoReading:
    """Without true timestamps there is no rate, however clear the line is."""
    return NoReading(Reason.BAD_TIMESTAMPS, reading.start_s, reading.end_s)


def probability(peak: Peak, quality: Quality, calibration: Calibration) -> float:
    """P(|error| ≤ 5 bpm) of this window by the calibrated logistic model."""
    logit = calibration.bias
    values = features(peak, quality)
    for name, feature in calibration.features.items():
        value = min(max(values[name], feature.low), feature.high)
        logit += feature.weight * (value - feature.mean) / feature.std
    return 1 / (1 + math.exp(-min(max(logit, -30.0), 30.0)))


def _unfit(q: Quality, duration_s: float, calibration: Calibration) -> Reason | None:
    """What makes a window unusable whatever its line looks like, the most basic first."""
    limits = calibration.limits
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
        (off_colour(q) > limits.max_off_colour, _colour_of(q)),
        (q.background > limits.max_background or q.motion > limits.max_motion, _why(q)),
    )
    return next((reason for failed, reason in checks if failed), None)


def _colour_of(q: Quality) -> Reason:
    """What a line whose colour is not that of blood may be."""
    return Reason.LIGHT_FLICKER if q.red > _BLOOD_RED else Reason.NO_PULSE


def _why(q: Quality) -> Reason:
    """The most likely cause of a line that is not believed: what shows most of the same line."""
    if max(q.background, q.motion) < _MOST:
        return Reason.NO_PULSE
    return Reason.LIGHT_FLICKER if q.background >= q.motion else Reason.MOTION
