"""Measure a camera: the same session as for a file, on a source that may go away and come back."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from ..face.detector import Detector
from ..session.config import SessionConfig
from ..session.results import Event
from ..session.session import Session
from ..types import Frame, FrameSource, Reading, Waveform
from ..video.persist import Loss, persistent
from .live_state import Readout
from .summary import summarise

_PACE_S = 2.0  # over which the frame rate is counted


class LiveSession:
    """A running measurement that a display can look at; everything it holds is bounded.

    `for events in live.run()` goes on until the caller stops; between two steps `readout`, `loss`, `fps` and
    `wave()` say how things stand.
    """

    def __init__(
        self, source: FrameSource, config: SessionConfig | None = None, detector: Detector | None = None
    ) -> None:
        self._source = source
        self._session = Session((config or SessionConfig()).for_camera(), detector or Detector())
        self.config = self._session.config
        self.readout = Readout(self.config.window_s)
        self.loss: Loss | None = None  # why there is no picture now
        self.losses = 0
        self.t_s = 0.0
        self.begun = False
        self._times: deque[float] = deque()

    def run(
        self, watch: Callable[[FrameSource], Iterator[Frame | Loss]] = persistent
    ) -> Iterator[list[Event]]:
        """One step per frame, with what it brought; while the camera is lost, a few empty steps a second."""
        for item in watch(self._source):
            if isinstance(item, Loss):
                events = [] if self.loss is not None else self._lose()
                self.loss = item
            else:
                self.loss, self.begun, self.t_s = None, True, item.t_s
                self._count(item.t_s)
                events = self._session.push(item)
                self.readout.take(events, item.t_s)
            yield events

    def finish(self) -> Reading | None:
        """End it, and sum up the last hour of the face that was read last; None when there was no face."""
        self.readout.take(self._session.finish(), self.t_s)
        last = self.readout.last
        return summarise(last.windows) if last is not None else None

    @property
    def fps(self) -> float:
        """Frames per second of the last moments."""
        if len(self._times) < 2:
            return 0.0
        return (len(self._times) - 1) / (self._times[-1] - self._times[0])

    def wave(self, seconds: float) -> Waveform | None:
        """The last seconds of the main face's pulse wave as they stand; None without a face."""
        shown = next(iter(self.readout.faces), None)
        for person in self._session.present:
            if person.track.id == shown:
                return person.recent(seconds)
        return None

    def _lose(self) -> list[Event]:
        """Nobody can be followed across a loss: what was shown is cleared."""
        self.losses += 1
        self._times.clear()
        events = self._session.interrupt()
        self.readout.take(events, self.t_s)
        self.readout.clear()
        return events

    def _count(self, t_s: float) -> None:
        self._times.append(t_s)
        while t_s - self._times[0] > _PACE_S:
            self._times.popleft()
