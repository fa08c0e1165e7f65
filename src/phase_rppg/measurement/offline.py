"""Measure a whole video with the same session as for a camera.

A file differs from a camera in two ways. The gate also uses later windows (`gate.in_hindsight`), and the
session may use the signal around each window (`SessionConfig.context_s`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import VideoError
from ..face.detector import Detector
from ..picture import AnyFrame, decoded_frames
from ..session import calibration as calibrations
from ..session.config import SessionConfig
from ..session.gate import in_hindsight
from ..session.results import Event, FaceEvent, FaceResult, Result
from ..session.session import Session
from ..types import FrameSource, Reason
from .input_check import InputCheck
from .result_buffer import ResultBuffer
from .summary import summarise_faces

log = logging.getLogger(__name__)


def measure(
    video: str | Path | FrameSource,
    config: SessionConfig | None = None,
    *,
    fps: float | None = None,
    progress: Callable[[float], None] | None = None,
    on_frame: Callable[[Session, AnyFrame], None] | None = None,
    detector: Detector | None = None,
    name: str | None = None,
    check: InputCheck | None = None,
) -> Result:
    """Measure a video file or any other source of frames.

    `fps` replaces the timestamps of a file by a constant frame rate. `progress` is called with the time
    reached, in seconds, `on_frame` with the session and the frame that it has just processed. A file that is
    damaged at the end is measured up to the damage, with a warning. A file that cannot be read at all raises
    a VideoError. `name` is the name of the video in the result. `check` inspects frames that were not decoded
    from a file.
    """
    from ..video.decode import VideoFile

    source: FrameSource = VideoFile(video, fps) if isinstance(video, (str, Path)) else video
    # Decoding starts here, in parallel with loading the detector. A session keeps no frame, so that the
    # decoder may reuse their memory.
    frames = decoded_frames(source)
    session = Session(config, detector)
    buffer = ResultBuffer()
    duration_s, warnings = _push_all(frames, session, buffer, _Observers(progress, on_frame, check))
    bits_per_pixel = _bits_per_pixel(source, session)
    if session.config.gated:
        apply_hindsight(buffer, session.config.method)
    warnings += [*getattr(source, "notes", []), *(check.warnings if check is not None else [])]
    if session.late_frames:
        warnings.append(f"{session.late_frames} frames were not later than the previous one and were skipped")
    frame_count, method = session.frame_count, session.config.method
    step_s = duration_s / (frame_count - 1) if frame_count > 1 else 0.0
    del session, frames  # free their memory before the whole wave is analysed
    faces = summarise_faces(buffer, bits_per_pixel)
    _log(warnings, frame_count, faces)
    return Result(
        video=name or _name(video),
        method=method,
        duration_s=duration_s + step_s,  # the last frame is shown for one more step
        fps=1 / step_s if step_s else 0.0,
        frame_count=frame_count,
        faces=faces,
        reason=None if faces else _reason_without_face(frame_count),
        warnings=tuple(warnings),
        bits_per_pixel=bits_per_pixel,
    )


@dataclass(frozen=True, slots=True)
class _Observers:
    """What is called with every frame."""

    progress: Callable[[float], None] | None
    on_frame: Callable[[Session, AnyFrame], None] | None
    check: InputCheck | None

    def before(self, frame: AnyFrame) -> None:
        if self.check is not None:
            self.check.check_time(frame.t_s)

    def after(self, session: Session, frame: AnyFrame, events: Sequence[Event], reached_s: float) -> None:
        if self.check is not None:
            self.check.check_colour(frame, events)
        if self.on_frame is not None:
            self.on_frame(session, frame)
        if self.progress is not None:
            self.progress(reached_s)
        for event in events:
            if isinstance(event, FaceEvent):
                log.debug("face %d %s at %.1f s", event.face, event.kind, event.t_s)


def _push_all(
    frames: Iterator[AnyFrame], session: Session, buffer: ResultBuffer, observers: _Observers
) -> tuple[float, list[str]]:
    """Push all frames and finish the session; return the time between first and last frame, and warnings."""
    warnings: list[str] = []
    first_s = last_s = None
    try:
        for frame in frames:
            if first_s is None:
                first_s = frame.t_s
            observers.before(frame)
            last_s = frame.t_s
            events = session.push(frame)
            buffer.add(events, frame)
            observers.after(session, frame, events, last_s - first_s)
    except VideoError as error:
        if first_s is None:
            raise
        warnings.append(f"{error.problem}; measured up to {_span_s(first_s, last_s):.1f} s")
    buffer.add(session.finish())
    return _span_s(first_s, last_s), warnings


def _name(video: str | Path | FrameSource) -> str:
    """Return the name of a video in its result."""
    if isinstance(video, (str, Path)):
        return str(video)
    return str(getattr(video, "path", None) or getattr(video, "name", type(video).__name__))


def _log(warnings: Sequence[str], frame_count: int, faces: Sequence[FaceResult]) -> None:
    for text in warnings:
        log.warning("%s", text)
    for face in faces:
        log.info("face %d: %s", face.id, face.summary)
    log.info("%d frames, %d faces", frame_count, len(faces))


def _bits_per_pixel(source: FrameSource, session: Session) -> float | None:
    """Return the size of a file per pixel and frame; None for other sources and empty files."""
    from ..video.decode import VideoFile

    pixels = session.frame_count * session.frame_pixels
    if not isinstance(source, VideoFile) or not pixels:
        return None
    try:
        return 8 * os.path.getsize(source.path) / pixels
    except OSError:
        return None  # removed while it was read


def apply_hindsight(buffer: ResultBuffer, method: str) -> None:
    """Show the windows that a later confident window confirms."""
    calibration = calibrations.load(method)
    for face, windows in buffer.windows.items():
        for index, reading in in_hindsight(windows, calibration, buffer.lost_s.get(face, ())):
            windows.replace_reading(index, reading)


def _reason_without_face(frame_count: int) -> Reason:
    return Reason.TOO_SHORT if frame_count < 2 else Reason.NO_FACE


def _span_s(first_s: float | None, last_s: float | None) -> float:
    return 0.0 if first_s is None or last_s is None else last_s - first_s
