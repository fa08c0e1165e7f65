"""The streaming core: the same measurement for a file and for a camera, frame by frame.

    session = Session(SessionConfig(method="pos"))
    for frame in source.frames():
        for event in session.push(frame):
            ...
    session.finish()

A session buffers the last window of each face. Its memory does not grow with time.
"""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError
from ..face.detection_scheduler import DetectionScheduler
from ..face.detector import Detector
from ..picture import AnyFrame, YuvFrame, picture_of
from ..types import is_finite_number
from .config import SessionConfig
from .face_pipeline import FacePipeline
from .results import Event
from .segment import Segment

MAX_PAUSE_S = 60.0  # a longer pause between two frames begins a new segment


class Session:
    """Turns frames into events: `push` every frame, then call `finish`; both return the new events.

    `detector` is any object with the methods of `face.detector.Detector`, which is the default.
    """

    def __init__(self, config: SessionConfig | None = None, detector: Detector | None = None) -> None:
        self.config = config or SessionConfig()
        self.frame_count = 0
        self.late_frames = 0  # frames that were skipped because they were not later than the previous one
        self._scheduler = DetectionScheduler(detector)
        self._segment = Segment(self.config, self._scheduler)

    @property
    def present(self) -> list[FacePipeline]:
        """The faces that are measured and in the picture."""
        return self._segment.present

    @property
    def frame_pixels(self) -> int:
        """Number of pixels of a frame; 0 before the first one."""
        height, width = (*self._segment.shape, 0, 0)[:2]
        return height * width

    def push(self, frame: AnyFrame) -> list[Event]:
        """Process the next frame and return its events: windows, pieces of the wave, changes of faces."""
        _check(frame)
        pause_s = float(frame.t_s) - self._segment.last_s  # NaN for the first frame
        if pause_s <= 0:
            self.late_frames += 1
            return []
        events: list[Event] = []
        shape = picture_of(frame).shape
        if shape != self._segment.shape or pause_s > MAX_PAUSE_S:
            events += self._begin_segment(shape)
        self.frame_count += 1
        return events + self._segment.push(frame)

    def finish(self) -> list[Event]:
        """End the measurement and return the remaining events."""
        return self._segment.finish()

    def interrupt(self) -> list[Event]:
        """End all faces, because the source was interrupted; further frames may follow."""
        return self._begin_segment(())

    def _begin_segment(self, shape: tuple[int, ...]) -> list[Event]:
        """Finish the current segment and begin one with frames of this shape."""
        events = self._segment.finish()
        self._segment = Segment(self.config, self._scheduler, shape, self._segment.next_id)
        return events


def _check(frame: AnyFrame) -> None:
    """Raise an ArgumentError if the frame has no finite time, no pixels, or is no uint8 picture."""
    if not is_finite_number(frame.t_s):
        raise ArgumentError("frame.t_s", repr(frame.t_s), "a finite time")
    if isinstance(frame, YuvFrame):
        return  # from our decoder
    rgb = np.asarray(frame.rgb)
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype.kind != "u" or rgb.dtype.itemsize != 1 or not rgb.size:
        raise ArgumentError("frame.rgb", f"{rgb.dtype} {rgb.shape}", "uint8 (H,W,3) with pixels")
