"""Measure a whole video: a loop over a session, so that a file and a camera take the same path.

The end of a file is known, so one thing is added: a face that turns out to be alive was so before, too.
(And its session may wait for the time around each window: `SessionConfig.around_s`.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ..errors import VideoError
from ..face.detector import Detector
from ..session import calibration as calibrations
from ..session.config import SessionConfig
from ..session.gate import in_hindsight
from ..session.results import FaceResult, Result, WindowResult
from ..session.session import Session
from ..signal import hrv, rate
from ..signal.beat_jitter import beat_jitter_s
from ..types import Estimate, FloatArray, Frame, FrameSource, NoReading, Reading, Reason, Waveform
from .result_buffer import ResultBuffer

_BLOCK_S, _MARGIN_S = 60.0, 10.0  # beats are looked for in blocks, with a margin for the filter to settle
MIN_SEEN_S = 2.0  # a face that was seen for less is reported only when there is no other


def measure(
    video: str | Path | FrameSource,
    config: SessionConfig | None = None,
    *,
    fps: float | None = None,
    progress: Callable[[float], None] | None = None,
    watch: Callable[[Session, Frame], None] | None = None,
    detector: Detector | None = None,
) -> Result:
    """Measure a video file, or any source of frames, and return a `Result`.

    `fps` replaces the timestamps of a file by an even clock. `progress` is called with the time reached, in
    seconds, `watch` with the session and the frame it just took in. A file that is damaged at the end is
    measured as far as it goes, with a warning; a file that cannot be read at all raises a VideoError.
    """
    from ..video.decode import VideoFile

    source: FrameSource = VideoFile(video, fps) if isinstance(video, (str, Path)) else video
    name = str(video) if isinstance(video, (str, Path)) else str(getattr(video, "path", type(video).__name__))
    # Decoding starts now, while the detector is loaded. A session keeps no frame, so copies can be saved.
    frames = source.passing_frames() if isinstance(source, VideoFile) else source.frames()
    session = Session(config, detector)
    gathered = ResultBuffer()
    warnings: list[str] = []
    first_s = last_s = None
    try:
        for frame in frames:
            if first_s is None:
                first_s = frame.t_s
            last_s = frame.t_s
            gathered.take(session.push(frame))
            if watch is not None:
                watch(session, frame)
            if progress is not None:
                progress(last_s - first_s)
    except VideoError as error:
        if first_s is None:
            raise
        warnings.append(f"{error.problem}; measured up to {_span(first_s, last_s):.1f} s")
    gathered.take(session.finish())
    if session.config.gated:
        _look_back(gathered, session.config.method)
    warnings += getattr(source, "notes", [])
    if session.late_frames:
        warnings.append(f"{session.late_frames} frames were not later than the one before: left out")
    duration_s, frame_count, method = _span(first_s, last_s), session.frame_count, session.config.method
    step_s = duration_s / (frame_count - 1) if frame_count > 1 else 0.0
    del session, frames  # their memory serves for looking at the whole wave
    faces = faces_of(gathered)
    return Result(
        video=name,
        method=method,
        duration_s=duration_s + step_s,  # the last frame is shown for one more step
        fps=1 / step_s if step_s else 0.0,
        frame_count=frame_count,
        faces=faces,
        reason=None if faces else _why_nobody(frame_count),
        warnings=tuple(warnings),
    )


def _look_back(gathered: ResultBuffer, method: str) -> None:
    """Show what the gate could not know to be a living face when it saw it."""
    calibration = calibrations.load(method)
    for face, windows in gathered.windows.items():
        for index, reading in in_hindsight(windows, calibration, gathered.lost_s.get(face, ())):
            windows.change(index, reading)


def summarise(windows: Sequence[WindowResult]) -> Reading:
    """One reading for all windows of a face: the middle of those that are believed, weighted by `p_ok`."""
    start_s, end_s = windows[0].start_s, windows[-1].end_s
    shown = _shown(windows)
    if not len(shown):
        refused = Counter(w.reading.reason for w in windows if isinstance(w.reading, NoReading))
        return NoReading(
            refused.most_common(1)[0][0], start_s, end_s, max(window.reading.p_ok for window in windows)
        )
    bpm, low, high, p_ok = shown[:, 2:].T
    weights = np.maximum(p_ok, 1e-6)
    middle = _middle(bpm, weights)
    low_end, high_end = min(_middle(low, weights), middle), max(_middle(high, weights), middle)
    return Estimate(middle, low_end, high_end, float(p_ok.mean()), start_s, end_s)


def _shown(windows: Sequence[WindowResult]) -> FloatArray:
    """The readings of the windows that have one, as rows (N,6): start_s, end_s, bpm, low, high, p_ok."""
    readings = (window.reading for window in windows if isinstance(window.reading, Estimate))
    rows = ((r.start_s, r.end_s, r.bpm, r.low, r.high, r.p_ok) for r in readings)
    return np.fromiter(rows, np.dtype((np.float64, 6)))


def faces_of(gathered: ResultBuffer) -> tuple[FaceResult, ...]:
    """The faces of a whole video, largest (by area and time) first."""
    found = [_face(gathered, face) for face in gathered.windows if face in gathered.waves]
    found.sort(key=lambda f: (-(f.face_px**2) * f.seen_s, f.id))
    long_enough = [f for f in found if f.seen_s >= MIN_SEEN_S]
    return tuple(long_enough or found[:1])


def _face(gathered: ResultBuffer, face: int) -> FaceResult:
    windows, wave = gathered.windows[face], gathered.waves[face].whole()
    beats_s = _beats(wave, windows)
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


def _beats(wave: Waveform, windows: Sequence[WindowResult]) -> np.ndarray:
    """Beats where there is a reading, looked for near the rate that was read."""
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


def _middle(values: np.ndarray, weights: np.ndarray) -> float:
    """Weighted median."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])])


def _why_nobody(frame_count: int) -> Reason:
    return Reason.TOO_SHORT if frame_count < 2 else Reason.NO_FACE


def _span(first_s: float | None, last_s: float | None) -> float:
    return 0.0 if first_s is None or last_s is None else last_s - first_s
