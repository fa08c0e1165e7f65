"""Compare a model with the reference on one prepared recording, by the rules of a convention.

A recording is prepared as its convention states, a predictor turns the crops into a waveform, and the
waveform is compared with the reference over the whole recording and in windows. `phase reproduce` and
`phase evaluate --convention` both call `evaluate_clip`, so the same model, recording and convention give the
same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from ..datasets.prepare import Settings
from ..signal import rate
from ..types import BoolArray, ByteArray, FloatArray, Waveform
from . import conventions, metrics
from .conventions import Convention

CROP_PX = 128  # side of prepared crops that follow the face; a predictor reduces them to its own input
MIN_FRAMES = 9  # shorter windows are not compared, as in rPPG-Toolbox
_COVERED = 0.9  # share of the frames of a window that have a face and a reference


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The output of a model for a recording."""

    values: FloatArray  # (n,) of the first n frames
    slope: bool = False  # the values are differences, which are integrated after the clips are joined
    ends_early: bool = False  # the reference keeps all its frames, as in rPPG-Toolbox for classical methods


class Predictor(Protocol):
    """A model as `evaluate_clip` calls it."""

    @property
    def size(self) -> int:
        """The side of its input in pixels."""
        ...

    def predict(self, pixels: ByteArray, fps: float, convention: Convention) -> Prediction:
        """Return the waveform of a recording (T,S,S,3) u8."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ClipResult:
    """The comparisons of one recording, and what was compared."""

    whole: metrics.Comparison | None  # None: the reference has no rate
    windows: tuple[tuple[float, metrics.Comparison | None], ...]  # start in seconds, comparison
    wave: Waveform
    reference: Waveform

    def as_json(self, convention: Convention) -> dict[str, Any]:
        """Return the comparisons as JSON values under the name of their convention."""
        return comparisons_json(self.whole, self.windows, convention)


def comparisons_json(
    whole: metrics.Comparison | None,
    windows: Iterable[tuple[float, metrics.Comparison | None]],
    convention: Convention,
) -> dict[str, Any]:
    """Return comparisons as JSON values under the name of their convention."""
    name = convention.name
    return {
        "whole": {name: _json(whole)},
        "windows": [{"start_s": start_s, name: _json(found)} for start_s, found in windows],
    }


def _json(found: metrics.Comparison | None) -> dict[str, Any] | None:
    return None if found is None else asdict(found)


def preparation(convention: Convention, size: int = CROP_PX) -> Settings:
    """Return how the recordings of a convention are cropped and labelled."""
    return Settings(size=size, fps=conventions.INDEX_FPS, crop=convention.crop, labels=convention.labels)


def crop_px(convention: Convention, predictor: Predictor, size: int = CROP_PX) -> int:
    """Return the side of the crops that a predictor is tested on; `size` is that of crops that follow.

    rPPG-Toolbox reduces a frame once, to the input of the model, and rounds it to bytes. Another size in
    between changes the rounding, which moves the largest bin of a weak pulse by up to 40 bpm.
    """
    return size if convention.crop == "followed" else predictor.size


def evaluate_clip(
    clip: tuple[ByteArray, FloatArray, BoolArray, float],
    predictor: Predictor,
    convention: Convention,
    window_s: float,
) -> ClipResult:
    """Compare a model with the reference on one prepared recording: (pixels, reference, valid, fps)."""
    pixels, reference, valid, fps = clip
    prediction = predictor.predict(pixels, fps, convention)
    wave, label = aligned(prediction, np.asarray(reference, float), valid, fps, convention)
    windows = tuple(
        (wave.start_s + first / fps, compare(*_parts(wave, label, first, last), prediction.slope, convention))
        for first, last in window_frames(label, window_s, convention)
    )
    whole = compare(wave, label, prediction.slope, convention)
    if prediction.slope:
        wave, label = _integrated(wave), _integrated(label)
    return ClipResult(whole, windows, wave, label)


def aligned(
    prediction: Prediction, reference: FloatArray, valid: BoolArray, fps: float, convention: Convention
) -> tuple[Waveform, Waveform]:
    """Return prediction and reference without the lead-in.

    For a slope, the reference becomes its differences over their standard deviation, with a last zero.
    Frames that a network has dropped are dropped from the reference.
    """
    first = round(convention.lead_in_s * fps)
    values = prediction.values
    label = _differences(reference) if prediction.slope else reference
    count = len(label) if prediction.ends_early else len(values)
    wave = Waveform(values[first:], fps, first / fps, valid[first : len(values)])
    return wave, Waveform(label[first:count], fps, first / fps, valid[first:count])


def _differences(reference: FloatArray) -> FloatArray:
    steps = np.diff(reference)
    return np.append(steps / (steps.std() or 1.0), 0.0)


def window_frames(label: Waveform, window_s: float, convention: Convention) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of the windows, one after the other."""
    count = len(label.values)
    length = min(round(window_s * label.fps), count)
    last_start = count if convention.partial_last_window else count - length + 1
    for first in range(0, last_start, max(length, 1)):
        last = min(first + length, count)
        if last - first >= MIN_FRAMES and label.valid[first:last].mean() > _COVERED:
            yield first, last


def _parts(wave: Waveform, label: Waveform, first: int, last: int) -> tuple[Waveform, Waveform]:
    left, right = (_part(one, first, last) for one in (wave, label))
    return left, right


def _part(wave: Waveform, first: int, last: int) -> Waveform:
    part = slice(first, last)
    return Waveform(wave.values[part], wave.fps, wave.start_s + first / wave.fps, wave.valid[part])


def compare(
    wave: Waveform, reference: Waveform, slope: bool, convention: Convention
) -> metrics.Comparison | None:
    """Compare two waveforms, or two slopes, which are integrated first; None if the reference has no rate.

    A model must always give a rate: a waveform without a spectral peak counts with its largest bin.
    """
    if slope:
        wave, reference = _integrated(wave), _integrated(reference)
    if len(wave.values) < MIN_FRAMES:
        return None
    name: Any = convention.name
    found = metrics.compare(wave, reference, name)
    if found is not None:
        return found
    truth = rate.spectral_peak(reference)
    if truth is None:
        return None
    band_hz = convention.band_hz
    truth_bpm = truth.bpm if convention.interpolates else rate.toolbox_bpm(reference, band_hz=band_hz)
    level = Waveform(wave.values - wave.values.mean(), wave.fps, wave.start_s, wave.valid)
    return metrics.Comparison(
        rate.toolbox_bpm(level, band_hz=band_hz),
        truth_bpm,
        metrics.toolbox_snr_db(level.values, wave.fps, truth_bpm, convention),
        metrics.macc(wave.values, reference.values[: len(wave.values)]),
    )


def _integrated(wave: Waveform) -> Waveform:
    return Waveform(np.cumsum(wave.values), wave.fps, wave.start_s, wave.valid)
