"""Derive from events what a live display shows: a number with its state, or the reason for none."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ..session.reasons import (
    GUIDANCE,
    STEADY_BPM,
    STEADY_GUIDANCE,
    STEADY_WINDOWS,
    UNSURE_GUIDANCE,
    hint,
    measuring_guidance,
)
from ..session.results import Event, FaceEvent, WindowResult
from ..types import Estimate, NoReading, Quality, Reason

KEPT_RATES = 240  # rates for the plot over time
KEPT_WINDOWS = 3600  # windows for the summary: one hour at one window per second
_INITIAL = (Reason.FACE_LOST, Reason.NO_FACE, Reason.TOO_SHORT)


class LiveState(str, enum.Enum):
    """The state of a live measurement."""

    SEARCHING = "no face"
    MEASURING = "measuring"
    STEADY = "steady"
    UNSURE = "unsure"
    NONE = "no reading"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a display shows for one face."""

    state: LiveState
    guidance: str
    share: float = 0.0  # 0–1: confidence, or the completed part of the first window
    reading: Estimate | None = None


class FaceReadout:
    """The latest windows of one face that is in view."""

    def __init__(self, visible_since_s: float, window_s: float) -> None:
        self.visible_since_s, self.now_s, self._window_s = visible_since_s, visible_since_s, window_s
        self._recent: deque[WindowResult] = deque(maxlen=STEADY_WINDOWS)
        self.rates: deque[tuple[float, float | None]] = deque(maxlen=KEPT_RATES)  # end of window, bpm
        self.windows: deque[WindowResult] = deque(maxlen=KEPT_WINDOWS)

    def add(self, window: WindowResult) -> None:
        """Add the next window."""
        self._recent.append(window)
        self.windows.append(window)
        reading = window.reading
        self.rates.append((window.end_s, reading.bpm if isinstance(reading, Estimate) else None))

    @property
    def quality(self) -> Quality | None:
        """Quality of the last window."""
        return self._recent[-1].quality if self._recent else None

    @property
    def shown(self) -> Shown:
        """The reading of the last window and its state."""
        last = self._recent[-1].reading if self._recent else None
        visible_for_s = self.now_s - self.visible_since_s
        first_window = visible_for_s < self._window_s
        if last is None or (isinstance(last, NoReading) and last.reason in _INITIAL and first_window):
            remaining_s = max(1, round(self._window_s - visible_for_s + 0.5))
            share = min(1.0, max(0.0, visible_for_s / self._window_s))
            return Shown(LiveState.MEASURING, measuring_guidance(remaining_s), share)
        if not isinstance(last, Estimate):
            return Shown(LiveState.NONE, GUIDANCE[last.reason], last.p_ok)
        state = LiveState.STEADY if self._is_steady() else LiveState.UNSURE
        guidance = STEADY_GUIDANCE if state is LiveState.STEADY else UNSURE_GUIDANCE
        return Shown(state, hint(self._recent[-1].quality) or guidance, last.p_ok, last)

    def _is_steady(self) -> bool:
        rates = [w.reading.bpm for w in self._recent if isinstance(w.reading, Estimate)]
        return len(rates) == STEADY_WINDOWS and max(rates) - min(rates) <= STEADY_BPM


class Readout:
    """All faces in view; the number of a face is removed when the face leaves."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self.faces: dict[int, FaceReadout] = {}  # in order of appearance
        # For the summary: the face with the latest reading, or the one with most windows.
        self.last: FaceReadout | None = None

        self.any_reading = False

    def add(self, events: Sequence[Event], t_s: float) -> None:
        """Add the events of one frame."""
        for event in events:
            if isinstance(event, FaceEvent):
                if event.kind in ("appeared", "returned"):
                    self.faces[event.face] = FaceReadout(event.t_s, self._window_s)
                else:
                    self.faces.pop(event.face, None)
            elif isinstance(event, WindowResult):
                has_reading = isinstance(event.reading, Estimate)
                self.any_reading |= has_reading
                if (face := self.faces.get(event.face)) is not None:
                    face.add(event)
                    most_windows = self.last is None or len(face.windows) >= len(self.last.windows)
                    if has_reading or (most_windows and not self.any_reading):
                        self.last = face
        for face in self.faces.values():
            face.now_s = t_s

    def clear(self) -> None:
        """Remove all faces, because the camera was disconnected."""
        self.faces.clear()

    @property
    def main(self) -> FaceReadout | None:
        """The face that has been in view longest."""
        return next(iter(self.faces.values()), None)

    @property
    def shown(self) -> Shown:
        """What the display shows for the main face."""
        main = self.main
        return main.shown if main is not None else Shown(LiveState.SEARCHING, GUIDANCE[Reason.NO_FACE])
