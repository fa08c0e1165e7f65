"""Find what silently spoils a data set: shifted, copied or flat labels, cut videos, missing faces, gaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import registry
from ..errors import RecordingError, VideoError
from ..face.crop import CROP_PX
from ..face.skin_mask import skin_weights
from ..methods import pos
from ..signal import filters, resample
from ..types import FloatArray, Recording, RgbTrace, Waveform
from ..workers import Job, run_jobs
from . import base, reference_rate
from .face_crops import Seen, follow

FPS = 30.0
MAX_LAG_S = 3.0
ENOUGH_S = 4.0  # a correlation of less than this says nothing
SHIFTED_S = 0.3  # a label further off than this is called shifted; finger and face differ by up to 0.2 s
MOSTLY_ALIVE = 0.1  # share of a label that may stand still before its lag means nothing
SAME_RHYTHM = 0.3  # correlation from which on a lag can be told
COPY = 0.995  # correlation of two references from which on one is a copy of the other
LONG_GAP_S = 0.25
LOW_COVERAGE = 0.9
CUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with a recording."""

    recording: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What the audit saw of one recording."""

    name: str
    subject: str
    conditions: dict[str, str]
    frames: int
    video_s: float
    fps: float  # median
    longest_gap_s: float
    gaps: int  # pauses longer than LONG_GAP_S
    steps_s: FloatArray  # (T−1,) time from frame to frame
    coverage: float  # 0–1 of the frames with a face
    cut: str  # what was said at the end of the video, if it ended too early
    reference: Waveform
    flat: list[tuple[float, float]]
    bpm: FloatArray  # rates of 10 s windows of the reference
    lag_s: float | None  # positive: the label comes later than the video; None: cannot be told
    agreement: float  # correlation at that lag
    lags_s: FloatArray
    lag_curve: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """All that was measured and found."""

    dataset: str
    root: str
    measured: tuple[Measured, ...]
    findings: tuple[Finding, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "dataset": self.dataset,
            "recordings": [
                {
                    "name": m.name,
                    "subject": m.subject,
                    "conditions": m.conditions,
                    "frames": m.frames,
                    "video_s": round(m.video_s, 3),
                    "reference_s": round(m.reference.duration_s, 3),
                    "fps": round(m.fps, 3),
                    "longest_gap_s": round(m.longest_gap_s, 3),
                    "face_coverage": round(m.coverage, 4),
                    "flat_s": round(sum(b - a for a, b in m.flat), 2),
                    "median_bpm": round(float(np.median(m.bpm)), 2) if len(m.bpm) else None,
                    "lag_s": None if m.lag_s is None else round(m.lag_s, 3),
                    "agreement": round(m.agreement, 3),
                }
                for m in self.measured
            ],
            "findings": [{"recording": f.recording, "kind": f.kind, "text": f.text} for f in self.findings],
        }


def audit(
    dataset: str, root: str | Path, *, workers: int = 1, on_done: Callable[[str], None] | None = None
) -> Audit:
    """Measure every recording of a data set and say what is wrong with it."""
    found = base.find(dataset, root)
    jobs = [Job(one.name, (dataset, one)) for one in found]
    measured: dict[str, Measured] = {}
    findings: list[Finding] = []
    for outcome in run_jobs(measure_one, jobs, workers):
        name = outcome.job.name
        if outcome.error is not None:
            findings.append(Finding(name, "unusable", base.recording_error(name, outcome.error).problem))
        else:
            measured[name] = outcome.result
        if on_done is not None:
            on_done(name)
    ordered = tuple(measured[one.name] for one in found if one.name in measured)
    findings += [finding for one in ordered for finding in check(one)]
    findings += copies(ordered)
    place = {one.name: index for index, one in enumerate(found)}
    findings.sort(key=lambda f: place[f.recording])
    return Audit(dataset, str(root), ordered, tuple(findings))


def measure_one(dataset: str, found: base.Found) -> Measured:
    return measure(base.read(registry.load("datasets", dataset), found))


def measure(recording: Recording) -> Measured:
    """Decode one recording once and keep the few numbers that matter."""
    times_s: list[float] = []
    present: list[bool] = []
    colours: list[FloatArray] = []
    cut = ""
    try:
        for frame_s, colour in _skin_colours(follow(recording.video, CROP_PX)):
            times_s.append(frame_s)
            present.append(colour is not None)
            colours.append(np.zeros(3) if colour is None else colour)
    except VideoError as error:
        if len(times_s) < 2:
            raise
        cut = error.problem
    if len(times_s) < 2:
        raise RecordingError(recording.name, "the video has fewer than two frames")
    t_s, seen = np.array(times_s), np.array(present)
    steps_s = np.diff(t_s)
    wave = _pulse(t_s, np.stack(colours), seen)
    lags_s, curve = lag_curve(wave, recording.reference)
    lag_s, agreement = best_lag(lags_s, curve, float(seen.sum()) * float(np.median(steps_s)))
    flat = reference_rate.flat_stretches(recording.reference)
    if sum(end_s - start_s for start_s, end_s in flat) > MOSTLY_ALIVE * recording.reference.duration_s:
        lag_s = None  # too much of the label stands still to be timed
    return Measured(
        name=recording.name,
        subject=recording.subject,
        conditions=dict(recording.conditions),
        frames=len(t_s),
        video_s=float(t_s[-1] - t_s[0] + np.median(steps_s)),
        fps=float(1 / np.median(steps_s)),
        longest_gap_s=float(steps_s.max()),
        gaps=int((steps_s > LONG_GAP_S).sum()),
        steps_s=steps_s,
        coverage=float(seen.mean()),
        cut=cut,
        reference=recording.reference,
        flat=flat,
        bpm=reference_rate.rates(recording.reference),
        lag_s=lag_s,
        agreement=agreement,
        lags_s=lags_s,
        lag_curve=curve,
    )


def _skin_colours(seen: Iterator[Seen]) -> Iterator[tuple[float, FloatArray | None]]:
    """The mean colour of the skin in each frame; the region is chosen anew only when the face's box moves."""
    face, weights = None, None
    for one in seen:
        if not one.present or one.landmarks is None or one.face is None:
            yield one.t_s, None
            continue
        if one.face != face or weights is None:
            face = one.face
            weights = skin_weights(one.picture, one.box, one.landmarks, one.face)
        yield one.t_s, np.tensordot(weights, one.picture, 2)


def _pulse(t_s: FloatArray, colours: FloatArray, seen: np.ndarray) -> Waveform:
    """The pulse of the video by POS, which needs no training and adds no delay."""
    values, start_s, valid = resample.to_uniform(t_s, colours, FPS, valid=seen)
    return pos.extract(RgbTrace(values, FPS, start_s, valid))


def lag_curve(wave: Waveform, label: Waveform) -> tuple[FloatArray, FloatArray]:
    """Correlation of video and label for shifts of the label up to ±MAX_LAG_S: (lags in s, values −1…1).

    Every shift is judged on the same part of the video where that is long enough: else a shift that leaves
    out a stretch of bad video would look better than the true one.
    """
    lags_s = np.arange(-round(MAX_LAG_S * FPS), round(MAX_LAG_S * FPS) + 1) / FPS
    seen = _normal(wave.values, wave.fps)
    told = _normal(label.values, label.fps)
    curve = np.zeros(len(lags_s))
    start_s, end_s = label.t_s[0], label.t_s[-1]
    always = wave.valid & (wave.t_s - MAX_LAG_S >= start_s) & (wave.t_s + MAX_LAG_S <= end_s)
    for index, lag_s in enumerate(lags_s):
        at_s = wave.t_s + lag_s
        inside = wave.valid & (at_s >= start_s) & (at_s <= end_s)
        if always.sum() > ENOUGH_S * FPS:
            inside = always
        if inside.sum() > ENOUGH_S * FPS:
            shifted = np.interp(at_s[inside], label.t_s, told)
            spread = shifted.std() * seen[inside].std()
            curve[index] = np.mean(shifted * seen[inside]) / spread if spread > 0 else 0.0
    return lags_s, curve


def _normal(values: FloatArray, fps: float) -> FloatArray:
    """The band of the pulse with an even envelope, so that no burst of motion decides alone."""
    band = filters.bandpass(values, fps)
    window = max(1, int(2 * fps))
    power = np.convolve(band**2, np.ones(window) / window, "same")
    return np.asarray(band / np.sqrt(power + 1e-3 * power.mean() + 1e-30))


def best_lag(lags_s: FloatArray, curve: FloatArray, duration_s: float) -> tuple[float | None, float]:
    """The lag nearest to zero among the peaks that chance cannot tell from the highest; None if unclear.

    A pulse repeats itself, so the curve has a peak at every beat. The error of a correlation r over n seconds
    of a band about one hertz wide is about (1 − r²)/√n.
    """
    peaks = [i for i in range(1, len(curve) - 1) if curve[i - 1] <= curve[i] > curve[i + 1]]
    if not peaks:
        return None, 0.0
    top = max(curve[i] for i in peaks)
    if top < SAME_RHYTHM:
        return None, float(top)
    slack = 2 * (1 - top**2) / np.sqrt(max(duration_s, 1.0))
    index = min((i for i in peaks if curve[i] >= top - slack), key=lambda i: abs(lags_s[i]))
    left, centre, right = curve[index - 1 : index + 2]
    bend = left - 2 * centre + right
    shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return float(lags_s[index] + shift / FPS), float(centre)


def check(one: Measured) -> list[Finding]:
    """What is wrong with one recording."""
    found = []
    missing_s = one.reference.start_s + one.reference.duration_s - one.video_s
    if one.cut:
        found.append(Finding(one.name, "truncated video", f"the video {one.cut}"))
    elif missing_s > CUT_S:
        found.append(
            Finding(
                one.name,
                "truncated video",
                f"the video ends after {one.video_s:.1f} s, the reference goes on for {missing_s:.1f} s",
            )
        )
    elif missing_s < -CUT_S:
        found.append(
            Finding(one.name, "short reference", f"the reference ends {-missing_s:.1f} s before the video")
        )
    for start_s, end_s in one.flat:
        found.append(
            Finding(one.name, "flat line", f"the reference stands still from {start_s:.1f} to {end_s:.1f} s")
        )
    if one.lag_s is not None and abs(one.lag_s) > SHIFTED_S:
        side = "later" if one.lag_s > 0 else "earlier"
        found.append(
            Finding(
                one.name,
                "shifted label",
                f"the label comes about {abs(one.lag_s):.2f} s {side} than the video (± one beat)",
            )
        )
    if one.coverage < LOW_COVERAGE:
        found.append(
            Finding(one.name, "missing face", f"a face was seen in {one.coverage:.0%} of the frames")
        )
    if one.gaps:
        found.append(
            Finding(
                one.name, "gaps", f"{one.gaps} pauses between frames, the longest {one.longest_gap_s:.2f} s"
            )
        )
    if not one.reference.valid.all():
        share = float(np.mean(~one.reference.valid))
        found.append(Finding(one.name, "reference gaps", f"{share:.0%} of the reference is missing"))
    return found


def copies(measured: tuple[Measured, ...]) -> list[Finding]:
    """Pairs of recordings with the same reference."""
    found = []
    shapes = [_shape(one.reference) for one in measured]
    for later, two in enumerate(measured):
        for earlier in range(later):
            length = min(len(shapes[earlier]), len(shapes[later]))
            a, b = shapes[earlier][:length], shapes[later][:length]
            if length > 4 * FPS and np.corrcoef(a, b)[0, 1] > COPY:
                text = f"has the same reference as {measured[earlier].name}"
                found.append(Finding(two.name, "copied reference", text))
    return found


def _shape(wave: Waveform) -> FloatArray:
    """The reference on a common clock that starts with its first sample."""
    t_s = np.arange(0, wave.duration_s, 1 / FPS)
    return np.interp(t_s, wave.t_s - wave.start_s, filters.bandpass(wave.values, wave.fps))
