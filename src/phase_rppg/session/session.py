"""The measurement itself, frame by frame: the same for a file and for a camera.

    session = Session(SessionConfig(method="pos"))
    for frame in source.frames():
        for event in session.push(frame):
            ...
    session.finish()

A session remembers the last window of each face and nothing more, however long it runs.
"""

from __future__ import annotations

import math

from ..errors import ArgumentError
from ..face.detection_scheduler import DetectionScheduler
from ..face.detector import Detector
from ..face.tracker import Changes, Track, Tracker
from ..signal.uniform_clock import Step
from ..types import Frame
from .clock import Clock
from .colour_continuity import Background
from .config import SessionConfig
from .face_state import FaceState
from .results import Event, FaceEvent

BREAK_S = 60.0  # after a longer pause between two frames everything starts anew


class Session:
    """Turns frames into readings: `push` every frame, then `finish`; both return what happened."""

    def __init__(self, config: SessionConfig | None = None, detector: Detector | None = None) -> None:
        self.config = config or SessionConfig()
        self.frame_count = 0
        self.late_frames = 0  # frames that were not later than the one before, left out
        self.face_seen = False  # whether any face was ever found
        self._lookout = DetectionScheduler(detector)
        self._tracker = Tracker()
        self._people: dict[int, FaceState] = {}
        self._main: int | None = None
        self._background = Background()
        self._shape: tuple[int, ...] = ()
        self._begin()

    def push(self, frame: Frame) -> list[Event]:
        """Take in the next frame and say what it brought: complete windows, pieces of wave, faces."""
        rgb, t_s = frame.rgb, float(frame.t_s)
        if not math.isfinite(t_s):
            raise ArgumentError("frame.t_s", t_s, "a finite time")
        if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype.kind != "u" or rgb.dtype.itemsize != 1:
            raise ArgumentError("frame.rgb", f"{rgb.dtype} {rgb.shape}", "uint8 (H,W,3)")
        events: list[Event] = []
        if t_s <= self._clock.last_s:
            self.late_frames += 1
            return events
        if rgb.shape != self._shape or t_s - self._clock.last_s > BREAK_S:
            events += self._start_anew(rgb.shape)
        self.frame_count += 1
        step = self._clock.advance(t_s)
        shift = max((p.meter.shift for p in self.present), default=0.0)
        if self._tracker.due(t_s, shift):
            detections = self._lookout.look(rgb, t_s, self._tracker)
            events += self._take(self._tracker.update(t_s, detections), frame, step)
        background = self._background.measure(rgb, t_s) if self._people else None
        for person in self._people.values():
            if person.track.lost:
                person.absent(step)
            else:
                person.frame(rgb, t_s, step, background)
        return events + self._windows()

    def finish(self) -> list[Event]:
        """End the measurement: what is still open is closed, and a short clip gets its one window."""
        for person in self._people.values():
            person.flush()
        events = self._windows(final=True)
        for person in list(self._people.values()):
            events += self._close(person)
        self._people.clear()
        return events

    def interrupt(self) -> list[Event]:
        """The source went away for a while: nobody can be followed across it, so what is open is closed."""
        return self._start_anew(())

    def _begin(self) -> None:
        self._clock = Clock(self.config.fps, self.config.window_s + self.config.keep_ticks / self.config.fps)
        self._next_stop = self.config.window_ticks

    def _start_anew(self, shape: tuple[int, ...]) -> list[Event]:
        """Another picture size or a very long pause: nobody can be followed across it."""
        events = self.finish()
        first_id = self._tracker.next_id
        self._tracker = Tracker()
        self._tracker.next_id = first_id
        self._shape, self._background, self._main = shape, Background(), None
        self._begin()
        return events

    @property
    def present(self) -> list[FaceState]:
        """The faces that are in the picture and measured, as they stand now."""
        return [person for person in self._people.values() if not person.track.lost]

    def _take(self, changes: Changes, frame: Frame, step: Step) -> list[Event]:
        """Carry the tracker's changes over to the people."""
        events: list[Event] = []
        for track in changes.ended:
            if (person := self._people.pop(track.id, None)) is not None:
                events += self._close(person)
                if person.announced:
                    events.append(FaceEvent(track.id, frame.t_s, "ended"))
        for track in changes.lost:
            if (person := self._people.get(track.id)) is not None:
                person.lose(track.seen_s)
                events.append(FaceEvent(track.id, frame.t_s, "lost"))
        for track in changes.found_again:
            if (person := self._people.get(track.id)) is not None:
                person.meter.jump(track, frame.rgb)
                events.append(FaceEvent(track.id, frame.t_s, "returned"))
        for track in self._wanted():
            if (person := self._people.get(track.id)) is None:
                self._people[track.id] = FaceState(track, frame.rgb, self._clock, step.first, self.config)
            elif track.seen_s == frame.t_s and track not in changes.found_again:
                person.meter.look(track, frame.rgb)
            if track.confirmed and not self._people[track.id].announced:
                self._people[track.id].announced = self.face_seen = True
                events.append(FaceEvent(track.id, frame.t_s, "appeared"))
        if changes.born or changes.moved or changes.lost or changes.found_again or changes.ended:
            boxes = [track.box for track in self._tracker.present]
            self._background.place(frame.rgb, boxes, frame.t_s)
        return events

    def _wanted(self) -> list[Track]:
        """The faces that are measured."""
        present = self._tracker.present
        if self.config.faces == "all" or not present:
            return present
        if all(track.id != self._main for track in present):
            self._main = max(present, key=lambda track: track.box[2] * track.box[3]).id
        return [track for track in present if track.id == self._main]

    def _windows(self, final: bool = False) -> list[Event]:
        """Close the windows that are complete."""
        events: list[Event] = []
        late = 0 if final else self.config.delay_ticks + self.config.context_ticks
        while self._clock.count >= self._next_stop + late:
            for person in self._people.values():
                events += self._window(person, self._next_stop)
            self._next_stop += self.config.step_ticks
        return events

    def _window(self, person: FaceState, stop: int) -> list[Event]:
        """The window of one face that ends at a tick, and the wave that no later one changes."""
        first = stop - self.config.window_ticks
        return [*person.window(first, stop), *person.piece(first + self.config.step_ticks)]

    def _close(self, person: FaceState) -> list[Event]:
        """The last words of a face that is no longer followed."""
        events: list[Event] = []
        if not person.track.confirmed:
            return events
        stop = self._clock.count
        # What waited for the time around it gets no more of it.
        for last in range(self._next_stop, stop - self.config.delay_ticks + 1, self.config.step_ticks):
            events += self._window(person, last)
        first = max(person.first_tick, stop - self.config.window_ticks)
        if person.windows == 0:
            events += person.window(first, stop)
        else:
            person.complete_wave(first, stop)
        return events + list(person.piece(stop))
