"""Measure a whole video: a loop over a session, so that a file and a camera give the same numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..errors import VideoError
from ..face.detect import Detector
from ..signal import hrv, rate
from ..types import Estimate, FrameSource, NoReading, Reading, Reason, Waveform
from .config import SessionConfig
from .result import Event, FaceResult, Result, WavePiece, WindowResult
from .session import Session

MIN_SEEN_S = 2.0  # a face that was seen for less is reported only when there is no other


def measure(
    video: str | Path | FrameSource,
    config: SessionConfig | None = None,
    *,
    fps: float | None = None,
    progress: Callable[[float], None] | None = None,
    detector: Detector | None = None,
) -> Result:
    """Measure a video file, or any source of frames, and return a `Result`.

    `fps` replaces the timestamps of a file by an even clock. `progress` is called with the time reached, in
    seconds. A file that is damaged at the end is measured as far as it goes, with a warning; a file that
    cannot be read at all raises a VideoError.
    """
    from ..video.decode import VideoFile

    source: FrameSource = VideoFile(video, fps) if isinstance(video, (str, Path)) else video
    name = str(video) if isinstance(video, (str, Path)) else str(getattr(video, "path", type(video).__name__))
    # Decoding starts now, while the detector is loaded. A session keeps no frame, so copies can be saved.
    frames = source.passing_frames() if isinstance(source, VideoFile) else source.frames()
    session = Session(config, detector)
    collected = _Collector()
    warnings: list[str] = []
    first_s = last_s = None
    try:
        for frame in frames:
            if first_s is None:
                first_s = frame.t_s
            last_s = frame.t_s
            collected.take(session.push(frame))
            if progress is not None:
                progress(last_s - first_s)
    except VideoError as error:
        if first_s is None:
            raise
        warnings.append(f"{error.problem}; measured up to {_span(first_s, last_s):.1f} s")
    collected.take(session.finish())
    warnings += getattr(source, "notes", [])
    if session.late_frames:
        warnings.append(f"{session.late_frames} frames were not later than the one before: left out")
    duration_s = _span(first_s, last_s)
    steps = max(session.frame_count - 1, 0)
    step_s = duration_s / steps if steps else 0.0
    faces = collected.faces()
    return Result(
        video=name,
        method=session.config.method,
        duration_s=duration_s + step_s,  # the last frame is shown for one more step
        fps=1 / step_s if step_s else 0.0,
        frame_count=session.frame_count,
        faces=faces,
        reason=None if faces else _why_nobody(session.frame_count),
        warnings=tuple(warnings),
    )


def summarise(windows: list[WindowResult]) -> Reading:
    """One reading for all windows of a face: the middle of those that are believed, weighted by `p_ok`."""
    start_s, end_s = windows[0].start_s, windows[-1].end_s
    shown = [w.reading for w in windows if isinstance(w.reading, Estimate)]
    if not shown:
        refused = [w.reading for w in windows if isinstance(w.reading, NoReading)]
        reason, _ = Counter(reading.reason for reading in refused).most_common(1)[0]
        return NoReading(reason, start_s, end_s, max(reading.p_ok for reading in refused))
    weights = np.array([max(reading.p_ok, 1e-6) for reading in shown])
    bpm = _middle(np.array([reading.bpm for reading in shown]), weights)
    low = min(_middle(np.array([reading.low for reading in shown]), weights), bpm)
    high = max(_middle(np.array([reading.high for reading in shown]), weights), bpm)
    return Estimate(bpm, low, high, float(np.average([r.p_ok for r in shown])), start_s, end_s)


class _Collector:
    """Gathers what a session says: small results per window, and the one-dimensional wave."""

    def __init__(self) -> None:
        self._windows: dict[int, list[WindowResult]] = {}
        self._pieces: dict[int, list[Waveform]] = {}

    def take(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, WindowResult):
                self._windows.setdefault(event.face, []).append(event)
            elif isinstance(event, WavePiece):
                self._pieces.setdefault(event.face, []).append(event.wave)

    def faces(self) -> tuple[FaceResult, ...]:
        """The faces, largest (by area and time) first."""
        found = [self._face(face) for face in self._windows if face in self._pieces]
        found.sort(key=lambda f: (-(f.face_px**2) * f.seen_s, f.id))
        long_enough = [f for f in found if f.seen_s >= MIN_SEEN_S]
        return tuple(long_enough or found[:1])

    def _face(self, face: int) -> FaceResult:
        windows, wave = self._windows[face], _joined(self._pieces[face])
        beats_s = _beats(wave, windows)
        return FaceResult(
            id=face,
            summary=summarise(windows),
            windows=tuple(windows),
            wave=wave,
            beats_s=beats_s,
            hrv=hrv.hrv(beats_s),
            face_px=float(np.median([w.quality.face_px for w in windows])),
            seen_s=float(wave.valid.sum() / wave.fps),
        )


def _joined(pieces: list[Waveform]) -> Waveform:
    """One wave on one clock; what lies between two pieces was not seen."""
    fps, start_s = pieces[0].fps, pieces[0].start_s
    starts = [round((piece.start_s - start_s) * fps) for piece in pieces]
    count = max(start + len(piece.values) for start, piece in zip(starts, pieces, strict=True))
    values, valid = np.zeros(count, np.float32), np.zeros(count, bool)
    for start, piece in zip(starts, pieces, strict=True):
        values[start : start + len(piece.values)] = piece.values
        valid[start : start + len(piece.values)] = piece.valid
    return Waveform(values, fps, start_s, valid)


def _beats(wave: Waveform, windows: list[WindowResult]) -> np.ndarray:
    """Beats where there is a reading, looked for near the rate that was read."""
    shown = [w.reading for w in windows if isinstance(w.reading, Estimate)]
    if not shown:
        return np.zeros(0)
    middle_s = np.array([(reading.start_s + reading.end_s) / 2 for reading in shown])
    bpm = np.interp(wave.t_s, middle_s, [reading.bpm for reading in shown])
    believed = np.zeros(len(wave.values), bool)
    for reading in shown:
        low, high = (round((t - wave.start_s) * wave.fps) for t in (reading.start_s, reading.end_s))
        believed[max(low, 0) : max(high, 0)] = True
    return rate.find_beats(Waveform(wave.values, wave.fps, wave.start_s, wave.valid & believed), bpm)


def _middle(values: np.ndarray, weights: np.ndarray) -> float:
    """Weighted median."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])])


def _why_nobody(frame_count: int) -> Reason:
    return Reason.TOO_SHORT if frame_count < 2 else Reason.NO_FACE


def _span(first_s: float | None, last_s: float | None) -> float:
    return 0.0 if first_s is None or last_s is None else last_s - first_s
