"""Measure a whole video with the session that a camera uses.

A file differs from a camera in two ways. The gate also uses later windows (`gate.in_hindsight`), and the
session may use the signal around each window (`SessionConfig.context_s`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..errors import VideoError
from ..face.detector import Detector
from ..session import calibration as calibrations
from ..session.config import SessionConfig
from ..session.gate import in_hindsight
from ..session.results import Result
from ..session.session import Session
from ..types import Frame, FrameSource, Reason
from .result_buffer import ResultBuffer
from .summary import faces_of


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
        _apply_hindsight(gathered, session.config.method)
    warnings += getattr(source, "notes", [])
    if session.late_frames:
        warnings.append(f"{session.late_frames} frames were not later than the one before: left out")
    duration_s, frame_count, method = _span(first_s, last_s), session.frame_count, session.config.method
    step_s = duration_s / (frame_count - 1) if frame_count > 1 else 0.0
    del session, frames  # free their memory before the whole wave is analysed
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


def _apply_hindsight(gathered: ResultBuffer, method: str) -> None:
    """Show the windows that a later confident window confirms."""
    calibration = calibrations.load(method)
    for face, windows in gathered.windows.items():
        for index, reading in in_hindsight(windows, calibration, gathered.lost_s.get(face, ())):
            windows.change(index, reading)


def _why_nobody(frame_count: int) -> Reason:
    return Reason.TOO_SHORT if frame_count < 2 else Reason.NO_FACE


def _span(first_s: float | None, last_s: float | None) -> float:
    return 0.0 if first_s is None or last_s is None else last_s - first_s
