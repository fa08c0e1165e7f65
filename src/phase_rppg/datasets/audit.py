"""Find errors in a data set: shifted, copied or constant references, cut-off videos, missing faces, gaps."""

from __future__ import annotations

import contextlib
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
from .face_crops import FaceFrame, crop_faces

FPS = 30.0
MAX_LAG_S = 3.0
MIN_OVERLAP_S = 4.0  # of video and reference for a correlation
MAX_SHIFT_S = 0.3  # of a reference without a finding; finger and face differ by up to 0.2 s
MAX_FLAT_SHARE = 0.1  # constant share of a reference above which its lag is not estimated
MIN_CORRELATION = 0.3  # of video and reference at the lag that is reported
COPY_CORRELATION = 0.995  # two references that correlate more strongly are copies
LONG_GAP_S = 0.25  # between two frames; shorter than MAX_GAP_S, up to which gaps are interpolated
LOW_COVERAGE = 0.9
MAX_LENGTH_DIFFERENCE_S = 2.0  # of video and reference


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem of one recording."""

    recording: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class RecordingStats:
    """The statistics of one recording."""

    name: str
    subject: str
    conditions: dict[str, str]
    frames: int
    video_s: float
    fps: float  # median
    longest_gap_s: float
    gaps: int  # longer than LONG_GAP_S
    steps_s: FloatArray  # (T−1,) time from frame to frame
    coverage: float  # 0–1 of the frames with a face
    end_problem: str  # the error that ended the video early, or empty
    reference: Waveform
    flat: list[tuple[float, float]]
    bpm: FloatArray  # rates of 10 s windows of the reference
    lag_s: float | None  # positive: the reference is later than the video; None: unknown
    agreement: float  # correlation at that lag
    lags_s: FloatArray
    lag_curve: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Audit:
    """The statistics and findings of a data set."""

    dataset: str
    root: str
    measured: tuple[RecordingStats, ...]
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
    dataset: str,
    root: str | Path,
    *,
    workers: int = 1,
    allow_outside: bool = False,
    on_done: Callable[[str], None] | None = None,
) -> Audit:
    """Measure every recording of a data set and list the problems."""
    found = base.find(dataset, root, allow_outside=allow_outside)
    jobs = [Job(one.name, (dataset, one)) for one in found]
    measured: dict[str, RecordingStats] = {}
    findings: list[Finding] = []
    with contextlib.closing(run_jobs(measure_one, jobs, workers)) as running:
        for outcome in running:
            name = outcome.job.name
            if outcome.error is not None:
                findings.append(Finding(name, "unusable", base.recording_error(name, outcome.error).problem))
            else:
                measured[name] = outcome.result
            if on_done is not None:
                on_done(name)
    ordered = tuple(measured[one.name] for one in found if one.name in measured)
    findings += [finding for one in ordered for finding in check(one)]
    findings += copied_references(ordered)
    position = {one.name: index for index, one in enumerate(found)}
    findings.sort(key=lambda f: position[f.recording])
    return Audit(dataset, str(root), ordered, tuple(findings))


def measure_one(dataset: str, found: base.Found) -> RecordingStats:
    return measure(base.read(registry.load("datasets", dataset), found))


def measure(recording: Recording) -> RecordingStats:
    """Decode one recording once and return its statistics."""
    times_s: list[float] = []
    present: list[bool] = []
    colours: list[FloatArray] = []
    end_problem = ""
    try:
        for frame_s, colour in _skin_colours(crop_faces(recording.video, CROP_PX)):
            times_s.append(frame_s)
            present.append(colour is not None)
            colours.append(np.zeros(3) if colour is None else colour)
    except VideoError as error:
        if len(times_s) < 2:
            raise
        end_problem = error.problem
    if len(times_s) < 2:
        raise RecordingError(recording.name, "the video has fewer than two frames")
    t_s, seen = np.array(times_s), np.array(present)
    steps_s = np.diff(t_s)
    wave = _pulse(t_s, np.stack(colours), seen)
    lags_s, curve = lag_curve(wave, recording.reference)
    lag_s, agreement = best_lag(lags_s, curve, float(seen.sum()) * float(np.median(steps_s)))
    flat = reference_rate.flat_intervals(recording.reference)
    if sum(end_s - start_s for start_s, end_s in flat) > MAX_FLAT_SHARE * recording.reference.duration_s:
        lag_s = None  # too much of the reference is constant
    return RecordingStats(
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
        end_problem=end_problem,
        reference=recording.reference,
        flat=flat,
        bpm=reference_rate.window_rates(recording.reference),
        lag_s=lag_s,
        agreement=agreement,
        lags_s=lags_s,
        lag_curve=curve,
    )


def _skin_colours(seen: Iterator[FaceFrame]) -> Iterator[tuple[float, FloatArray | None]]:
    """Yield the mean skin colour of each frame; the skin mask is updated when the face box changes."""
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
    """Return the pulse of the video by POS, which needs no training and adds no delay."""
    values, start_s, valid = resample.to_uniform(t_s, colours, FPS, valid=seen)
    return pos.extract(RgbTrace(values, FPS, start_s, valid))


def lag_curve(video: Waveform, reference: Waveform) -> tuple[FloatArray, FloatArray]:
    """Return lags in s up to ±MAX_LAG_S, and the correlation of the video with the shifted reference.

    If it is long enough, the same part of the video is used for all lags. Otherwise a lag that excludes a
    bad part of the video could have a higher correlation than the true one.
    """
    lags_s = np.arange(-round(MAX_LAG_S * FPS), round(MAX_LAG_S * FPS) + 1) / FPS
    pulse = _envelope_normalised(video.values, video.fps)
    contact = _envelope_normalised(reference.values, reference.fps)
    curve = np.zeros(len(lags_s))
    start_s, end_s = reference.t_s[0], reference.t_s[-1]
    always = video.valid & (video.t_s - MAX_LAG_S >= start_s) & (video.t_s + MAX_LAG_S <= end_s)
    for index, lag_s in enumerate(lags_s):
        at_s = video.t_s + lag_s
        inside = video.valid & (at_s >= start_s) & (at_s <= end_s)
        if always.sum() > MIN_OVERLAP_S * FPS:
            inside = always
        if inside.sum() > MIN_OVERLAP_S * FPS:
            shifted = np.interp(at_s[inside], reference.t_s, contact)
            spread = shifted.std() * pulse[inside].std()
            curve[index] = np.mean(shifted * pulse[inside]) / spread if spread > 0 else 0.0
    return lags_s, curve


def _envelope_normalised(values: FloatArray, fps: float) -> FloatArray:
    """Return the pulse band with a normalised envelope, so that motion does not dominate the correlation."""
    band = filters.bandpass(values, fps)
    window = max(1, int(2 * fps))
    power = np.convolve(band**2, np.ones(window) / window, "same")
    return np.asarray(band / np.sqrt(power + 1e-3 * power.mean() + 1e-30))


def best_lag(lags_s: FloatArray, curve: FloatArray, duration_s: float) -> tuple[float | None, float]:
    """Return the smallest lag whose peak is not significantly below the highest, and its correlation.

    A pulse is periodic, so the curve has a peak at every beat. A band of about 1 Hz gives about n
    independent samples in n seconds, so the standard error of a correlation r is about (1 − r²)/√n.
    """
    peaks = [i for i in range(1, len(curve) - 1) if curve[i - 1] <= curve[i] > curve[i + 1]]
    if not peaks:
        return None, 0.0
    top = max(curve[i] for i in peaks)
    if top < MIN_CORRELATION:
        return None, float(top)
    margin = 2 * (1 - top**2) / np.sqrt(max(duration_s, 1.0))
    index = min((i for i in peaks if curve[i] >= top - margin), key=lambda i: abs(lags_s[i]))
    left, centre, right = curve[index - 1 : index + 2]
    curvature = left - 2 * centre + right
    shift = 0.5 * (left - right) / curvature if curvature < 0 else 0.0
    return float(lags_s[index] + shift / FPS), float(centre)


def check(one: RecordingStats) -> list[Finding]:
    """Return the findings of one recording."""
    found = []
    missing_s = one.reference.start_s + one.reference.duration_s - one.video_s
    if one.end_problem:
        found.append(Finding(one.name, "truncated video", f"the video {one.end_problem}"))
    elif missing_s > MAX_LENGTH_DIFFERENCE_S:
        found.append(
            Finding(
                one.name,
                "truncated video",
                f"the video ends after {one.video_s:.1f} s, the reference continues for {missing_s:.1f} s",
            )
        )
    elif missing_s < -MAX_LENGTH_DIFFERENCE_S:
        found.append(
            Finding(one.name, "short reference", f"the reference ends {-missing_s:.1f} s before the video")
        )
    for start_s, end_s in one.flat:
        found.append(
            Finding(one.name, "flat line", f"the reference is constant from {start_s:.1f} to {end_s:.1f} s")
        )
    if one.lag_s is not None and abs(one.lag_s) > MAX_SHIFT_S:
        side = "later" if one.lag_s > 0 else "earlier"
        found.append(
            Finding(
                one.name,
                "shifted label",
                f"the reference is about {abs(one.lag_s):.2f} s {side} than the video (± one beat)",
            )
        )
    if one.coverage < LOW_COVERAGE:
        found.append(
            Finding(one.name, "missing face", f"a face was detected in {one.coverage:.0%} of the frames")
        )
    if one.gaps:
        found.append(
            Finding(
                one.name, "gaps", f"{one.gaps} gaps between frames, the longest {one.longest_gap_s:.2f} s"
            )
        )
    if not one.reference.valid.all():
        share = float(np.mean(~one.reference.valid))
        found.append(Finding(one.name, "reference gaps", f"{share:.0%} of the reference is missing"))
    return found


def copied_references(measured: tuple[RecordingStats, ...]) -> list[Finding]:
    """Return a finding for each recording that has the same reference as an earlier one."""
    found = []
    shapes = [_shape(one.reference) for one in measured]
    for later, two in enumerate(measured):
        for earlier in range(later):
            length = min(len(shapes[earlier]), len(shapes[later]))
            a, b = shapes[earlier][:length], shapes[later][:length]
            if length > 4 * FPS and np.corrcoef(a, b)[0, 1] > COPY_CORRELATION:
                text = f"has the same reference as {measured[earlier].name}"
                found.append(Finding(two.name, "copied reference", text))
    return found


def _shape(wave: Waveform) -> FloatArray:
    """Return the band-passed reference on a common clock that starts with its first sample."""
    t_s = np.arange(0, wave.duration_s, 1 / FPS)
    return np.interp(t_s, wave.t_s - wave.start_s, filters.bandpass(wave.values, wave.fps))
