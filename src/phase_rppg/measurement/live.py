"""Measure a camera with the same session as for a file; the camera may disconnect and return."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from ..face.detector import Detector
from ..session.config import SessionConfig
from ..session.results import Event
from ..session.session import Session
from ..types import Frame, FrameSource, Reading, Waveform
from ..video.reconnect import CameraLoss, reconnecting_frames
from .live_state import Readout
from .summary import summarise

_FPS_SPAN_S = 2.0  # time over which the frame rate is measured


class LiveSession:
    """A running measurement with the values that a display needs; its memory is bounded.

    `for events in live.run()` continues until the caller stops. Between two iterations `readout`, `loss`,
    `fps` and `wave()` give the current state.
    """

    def __init__(
        self, source: FrameSource, config: SessionConfig | None = None, detector: Detector | None = None
    ) -> None:
        self._source = source
        self._session = Session((config or SessionConfig()).for_camera(), detector or Detector())
        self.config = self._session.config
        self.readout = Readout(self.config.window_s)
        self.interruption: CameraLoss | None = None  # why the camera gives no frames now
        self.interruptions = 0
        self.t_s = 0.0
        self.started = False  # whether a frame has arrived
        self._times: deque[float] = deque()

    def run(
        self, open_source: Callable[[FrameSource], Iterator[Frame | CameraLoss]] = reconnecting_frames
    ) -> Iterator[list[Event]]:
        """Yield the events of each frame; while the camera is disconnected, yield empty lists."""
        for item in open_source(self._source):
            if isinstance(item, CameraLoss):
                events = [] if self.interruption is not None else self._interrupt()
                self.interruption = item
            else:
                self.interruption, self.started, self.t_s = None, True, item.t_s
                self._record_time(item.t_s)
                events = self._session.push(item)
                self.readout.add(events, item.t_s)
            yield events

    def finish(self) -> Reading | None:
        """End the measurement; return the summary of the last face with a reading, or None without a face."""
        self.readout.add(self._session.finish(), self.t_s)
        last = self.readout.last
        return summarise(last.windows) if last is not None else None

    @property
    def fps(self) -> float:
        """Frame rate of the last two seconds."""
        if len(self._times) < 2:
            return 0.0
        return (len(self._times) - 1) / (self._times[-1] - self._times[0])

    def wave(self, seconds: float) -> Waveform | None:
        """Return the last seconds of the pulse wave of the main face; None without a face."""
        main_id = next(iter(self.readout.faces), None)
        for face in self._session.present:
            if face.track.id == main_id:
                return face.state.recent_wave(seconds)
        return None

    def _interrupt(self) -> list[Event]:
        """End all faces, because they cannot be tracked across the interruption, and clear the readout."""
        self.interruptions += 1
        self._times.clear()
        events = self._session.interrupt()
        self.readout.add(events, self.t_s)
        self.readout.clear()
        return events

    def _record_time(self, t_s: float) -> None:
        self._times.append(t_s)
        while t_s - self._times[0] > _FPS_SPAN_S:
            self._times.popleft()
