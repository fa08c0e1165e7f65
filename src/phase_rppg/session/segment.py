"""One uninterrupted segment of a recording: detection, tracking, and the measurement of every face."""

from __future__ import annotations

from ..face.detection_scheduler import DetectionScheduler, detection_due
from ..face.tracker import Changes, Track, Tracker
from ..picture import AnyFrame, Picture, picture_of
from ..signal.uniform_clock import Step
from .clock import Clock
from .colour_continuity import Background
from .config import SessionConfig
from .face_pipeline import FacePipeline
from .results import Event, FaceEvent, FacePosition


class Segment:
    """A sequence of frames of one size without a long pause; faces are tracked within it only."""

    def __init__(
        self,
        config: SessionConfig,
        scheduler: DetectionScheduler,
        shape: tuple[int, ...] = (),
        first_id: int = 0,
    ) -> None:
        self._config, self._scheduler, self.shape = config, scheduler, shape
        self._clock = Clock(config.fps, config.window_s + config.keep_ticks / config.fps)
        self._tracker = Tracker()
        self._tracker.next_id = first_id
        self._background = Background()
        self._faces: dict[int, FacePipeline] = {}
        self._replaced: set[int] = set()  # faces in whose place the last frame showed something else
        self._largest_id: int | None = None  # the face that `faces="largest"` measures
        self._next_stop = config.window_ticks  # the tick at which the next window ends

    @property
    def last_s(self) -> float:
        """Time of the last frame; NaN before the first one."""
        return self._clock.last_s

    @property
    def next_id(self) -> int:
        """Number of the next new face."""
        return self._tracker.next_id

    @property
    def present(self) -> list[FacePipeline]:
        """The faces that are measured and in the picture."""
        return [face for face in self._faces.values() if not face.track.lost]

    def push(self, frame: AnyFrame) -> list[Event]:
        """Process the next frame and return its events."""
        picture, t_s = picture_of(frame), float(frame.t_s)
        events: list[Event] = []
        step = self._clock.advance(t_s)
        shift = max((face.sampler.shift for face in self.present), default=0.0)
        replaced = {face.track.id for face in self.present if face.sampler.shows_another_face(picture, t_s)}
        if replaced - self._replaced or detection_due(self._tracker, t_s, shift):
            detections = self._scheduler.detect(picture, t_s, self._tracker)
            events += self._apply(self._tracker.update(t_s, detections, replaced), picture, t_s, step)
        self._replaced = replaced
        background = self._background.sample(picture, t_s) if self._faces else None
        for face in self._faces.values():
            if face.track.lost:
                face.push_absence(step)
            else:
                face.push_frame(picture, t_s, step, background)
        return events + self._complete_windows()

    def finish(self) -> list[Event]:
        """Return the remaining events; a clip that is shorter than a window gets one window."""
        for face in self._faces.values():
            face.flush_network()
        events = self._complete_windows(final=True)
        for face in list(self._faces.values()):
            events += self._close(face)
        self._faces.clear()
        return events

    def _apply(self, changes: Changes, picture: Picture, t_s: float, step: Step) -> list[Event]:
        """Apply the changes of the tracker to the faces."""
        events: list[Event] = []
        for track in changes.ended:
            if (face := self._faces.pop(track.id, None)) is not None:
                events += self._close(face)
                if face.announced:
                    events.append(FaceEvent(track.id, t_s, "ended"))
        for track in changes.lost:
            if (face := self._faces.get(track.id)) is not None:
                face.mark_lost(track.last_seen_s)
                events.append(FaceEvent(track.id, t_s, "lost"))
        for track in changes.found_again:
            if (face := self._faces.get(track.id)) is not None:
                face.restart_sampler(track, picture)
                events.append(FaceEvent(track.id, t_s, "returned"))
        for track in self._measured_tracks():
            events += self._update(track, changes, picture, t_s, step)
        if changes.born or changes.moved or changes.lost or changes.found_again or changes.ended:
            boxes = [track.box for track in self._tracker.present]
            self._background.update_region(picture, boxes, t_s)
        return events

    def _update(
        self, track: Track, changes: Changes, picture: Picture, t_s: float, step: Step
    ) -> list[Event]:
        """Add the face of a track, or give its sampler the new detection; report a confirmed face once."""
        face = self._faces.get(track.id)
        if face is None:
            face = FacePipeline(track, picture, self._clock, step.first, self._config)
            self._faces[track.id] = face
        elif track.last_seen_s == t_s and track not in changes.found_again:
            face.sampler.update_mask(track, picture)
        events: list[Event] = []
        if not face.announced and track.confirmed:
            face.announced = True
            events.append(FaceEvent(track.id, t_s, "appeared"))
        if face.announced and track.last_seen_s == t_s:
            events.append(FacePosition(track.id, t_s, track.box, track.landmarks))
        return events

    def _measured_tracks(self) -> list[Track]:
        present = self._tracker.present
        if self._config.faces == "all" or not present:
            return present
        if all(track.id != self._largest_id for track in present):
            self._largest_id = max(present, key=lambda track: track.box[2] * track.box[3]).id
        return [track for track in present if track.id == self._largest_id]

    def _complete_windows(self, final: bool = False) -> list[Event]:
        """Analyse the windows for which the network and the context have all frames."""
        events: list[Event] = []
        delay = 0 if final else self._config.delay_ticks + self._config.context_ticks
        while self._clock.count >= self._next_stop + delay:
            for face in self._faces.values():
                events += self._complete_window(face, self._next_stop)
            self._next_stop += self._config.step_ticks
        return events

    def _complete_window(self, face: FacePipeline, stop: int) -> list[Event]:
        """Return the window of a face that ends at a tick, and the wave that no later window changes."""
        first = stop - self._config.window_ticks
        return [*face.analyze_window(first, stop), *face.next_wave(first + self._config.step_ticks)]

    def _close(self, face: FacePipeline) -> list[Event]:
        """Return the last windows and the rest of the wave of a face that is no longer tracked."""
        events: list[Event] = []
        if not face.track.confirmed:
            return events
        stop = self._clock.count
        # Windows that were waiting for their context get no more of it.
        for last in range(self._next_stop, stop - self._config.delay_ticks + 1, self._config.step_ticks):
            events += self._complete_window(face, last)
        first = max(face.state.first_tick, stop - self._config.window_ticks)
        if face.window_count == 0:
            events += face.analyze_window(first, stop)
        else:
            face.complete_wave(first, stop)
        return events + list(face.next_wave(stop))
