"""What one window shows before anyone decides: its line, and how far that line can be believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import registry
from ..signal import quality, rate
from ..signal.motion_removal import without_motion
from ..signal.rate_tracking import Tracked
from ..types import FloatArray, Quality, RgbTrace, Waveform

# A face that sways by this share of its width at the pulse's rate can fake the whole line.
_SWAY_FULL_SCALE = 0.01
_UNKNOWN_LAMP = 0.3  # where faces fill the picture: neither a lamp nor its absence is seen
_SECOND_OPINION = {"pos": "chrom"}  # every other method is checked against POS


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Everything known about one face during one window; all signals share the clock of `skin`."""

    wave: Waveform  # what the method or network made of it
    skin: RgbTrace  # raw mean colour of the skin, before any method
    background: RgbTrace | None  # mean colour beside the face; None when the face fills the picture
    centre: FloatArray | None  # (T,2) centre of the face in face widths; None when unknown
    method: str  # name of the method or network
    coverage: float  # 0–1: share of the window with a face
    face_px: float  # median face width
    clipped: float  # 0–1: share of skin pixels at the end of the range
    fps: float  # true frame rate
    max_gap_s: float  # longest pause between two frames


def assess(window: Window, tracked: Tracked | None = None) -> tuple[rate.Peak | None, Quality]:
    """The window's line, refined near the tracked rate if there is one, and its quality.

    The peak is None when there is no line at all (a flat signal, or fewer than three cycles).
    """
    near_bpm = tracked.bpm if tracked is not None else None
    peak = rate.spectral_peak(window.wave, near_bpm=near_bpm) if window.wave.valid.any() else None
    bpm = peak.bpm if peak is not None else 72.0  # features stay defined; decide() refuses a missing peak
    amplitude = quality.pulsation(window.skin, bpm)
    colour = _mean_colour(window.skin)
    return peak, Quality(
        snr_db=peak.snr_db if peak is not None else -60.0,
        amplitude=amplitude,
        background=_background(window, bpm, amplitude),
        motion=_motion(window, bpm),
        coverage=float(window.coverage),
        face_px=float(window.face_px),
        luma=float(colour @ (0.299, 0.587, 0.114)),
        clipped=float(window.clipped),
        colourfulness=quality.colourfulness(colour),
        fps=float(window.fps),
        max_gap_s=float(window.max_gap_s),
        support=tracked.support if tracked is not None else 0.0,
        agreement=_agreement(window, bpm),
        visible_db=quality.visible_db(window.skin, bpm),
        background_coherence=_lamp(window, bpm),
        red=quality.red(window.skin, bpm),
    )


def _mean_colour(trace: RgbTrace) -> FloatArray:
    return np.median(trace.values[trace.valid], axis=0) if trace.valid.any() else np.zeros(3)


def _background(window: Window, bpm: float, amplitude: float) -> float:
    trace = window.background
    if trace is None or not trace.valid.any():
        return 0.0
    relative = trace.values / np.maximum(_mean_colour(trace), 1.0)
    line = quality.shared_line(relative, trace.fps, bpm, trace.valid, full_scale=max(amplitude, 1e-6))
    return line * quality.in_phase(window.skin, trace, bpm)


def _lamp(window: Window, bpm: float) -> float:
    if window.background is None or not window.background.valid.any():
        return _UNKNOWN_LAMP
    return quality.background_coherence(window.skin, window.background, bpm)


def _motion(window: Window, bpm: float) -> float:
    if window.centre is None:
        return 0.0
    return quality.shared_line(
        window.centre, window.skin.fps, bpm, window.skin.valid, full_scale=_SWAY_FULL_SCALE
    )


def _agreement(window: Window, bpm: float) -> float:
    """How much of the line a second method shows, from the raw colours alone: networks invent pulses."""
    if not window.skin.valid.any():
        return 0.0
    second = registry.load("methods", _SECOND_OPINION.get(window.method, "pos"))
    wave: Waveform = second.extract(window.skin)
    if window.centre is not None:
        wave = without_motion(wave, window.centre)
    return quality.shared_line(wave.values, wave.fps, bpm, wave.valid)
