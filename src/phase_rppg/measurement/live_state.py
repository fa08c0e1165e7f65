"""From events to what is shown live: a number with its state, or an honest none, as on the page."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ..session.reasons import GUIDANCE, STEADY_BPM, STEADY_GUIDANCE, STEADY_WINDOWS, UNSURE_GUIDANCE, hint
from ..session.results import Event, FaceEvent, WindowResult
from ..types import Estimate, Quality, Reason

KEPT_RATES = 240  # of the rate over time
KEPT_WINDOWS = 3600  # for the summary: an hour, with windows every second
_EARLY = (Reason.FACE_LOST, Reason.NO_FACE, Reason.TOO_SHORT)


class LiveState(str, enum.Enum):
    """The state of a live measurement."""

    SEARCHING = "no face"
    MEASURING = "measuring"
    STEADY = "steady"
    UNSURE = "unsure"
    NONE = "no reading"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a display says about one face now."""

    mood: LiveState
    guidance: str
    share: float = 0.0  # 0–1: how sure, or while measuring how much is there
    reading: Estimate | None = None


class FaceReadout:
    """The last few windows of one face that is in view."""

    def __init__(self, faced_s: float, window_s: float) -> None:
        self.faced_s, self.now_s, self._window_s = faced_s, faced_s, window_s
        self._recent: deque[WindowResult] = deque(maxlen=STEADY_WINDOWS)
        self.rates: deque[tuple[float, float | None]] = deque(maxlen=KEPT_RATES)  # end of window, bpm
        self.windows: deque[WindowResult] = deque(maxlen=KEPT_WINDOWS)

    def take(self, window: WindowResult) -> None:
        self._recent.append(window)
        self.windows.append(window)
        reading = window.reading
        self.rates.append((window.end_s, reading.bpm if isinstance(reading, Estimate) else None))

    @property
    def quality(self) -> Quality | None:
        return self._recent[-1].quality if self._recent else None

    @property
    def shown(self) -> Shown:
        """The number of the last window, and whether it can be leant on."""
        last = self._recent[-1].reading if self._recent else None
        faced_for_s = self.now_s - self.faced_s
        waiting = last is None or (
            not isinstance(last, Estimate) and last.reason in _EARLY and faced_for_s < self._window_s
        )
        if last is None or waiting:
            togo_s = max(1, round(self._window_s - faced_for_s + 0.5))
            share = min(1.0, max(0.0, faced_for_s / self._window_s))
            return Shown(LiveState.MEASURING, f"Hold still: {togo_s} s to go.", share)
        if not isinstance(last, Estimate):
            return Shown(LiveState.NONE, GUIDANCE[last.reason], last.p_ok)
        mood = LiveState.STEADY if self._is_steady() else LiveState.UNSURE
        plain = STEADY_GUIDANCE if mood is LiveState.STEADY else UNSURE_GUIDANCE
        return Shown(mood, hint(self._recent[-1].quality) or plain, last.p_ok, last)

    def _is_steady(self) -> bool:
        rates = [w.reading.bpm for w in self._recent if isinstance(w.reading, Estimate)]
        return len(rates) == STEADY_WINDOWS and max(rates) - min(rates) <= STEADY_BPM


class Readout:
    """Everybody in view: a face that goes takes its number with it."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self.faces: dict[int, FaceReadout] = {}  # in the order in which they came
        self.last: FaceReadout | None = None  # for the summary: last with a reading, else longest in view
        self.any_reading = False

    def take(self, events: Sequence[Event], t_s: float) -> None:
        """Take in what one frame brought."""
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
                    face.take(event)
                    seen_longest = self.last is None or len(face.windows) >= len(self.last.windows)
                    if has_reading or (seen_longest and not self.any_reading):
                        self.last = face
        for face in self.faces.values():
            face.now_s = t_s

    def clear(self) -> None:
        """The camera went away: nobody is in view."""
        self.faces.clear()

    @property
    def main(self) -> FaceReadout | None:
        """The face that has been in view for longest."""
        return next(iter(self.faces.values()), None)

    @property
    def shown(self) -> Shown:
        main = self.main
        return main.shown if main is not None else Shown(LiveState.SEARCHING, GUIDANCE[Reason.NO_FACE])
