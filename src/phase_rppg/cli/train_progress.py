"""The progress of `phase train`: clips that are generated, then steps, each with its rate and time left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .terminal import escaped, open_console

if TYPE_CHECKING:
    from types import TracebackType

    from ..train.loop import Event
    from ..train.sources import ClipProgress

LINE_INTERVAL_S = 10.0  # between two lines, if stderr is not a terminal
_REFRESH_S = 0.2


class TrainProgress:
    """Shows the progress on stderr: one line that changes on a terminal, otherwise a line per interval."""

    def __init__(self, *, hidden: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = open_console(stderr=True)
        self._hidden, self._clock = hidden, clock
        self._stage, self._printed_s, self._made_from_s = "", float("-inf"), 0.0
        self._status = self._console.status("starting") if self._console.is_terminal else None

    def __enter__(self) -> TrainProgress:
        if self._status is not None and not self._hidden:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if not self._hidden:
            self._console.print(text)

    def on_clips(self, clips: ClipProgress) -> None:
        """Show the number of generated clips."""
        now_s = self._clock()
        if clips.done == 0 and clips.made == 0:  # the begin of a stage
            self._stage, self._printed_s = clips.stage, float("-inf")
            self.say(f"stage {escaped(clips.stage)}: {clips.total} generated clips")
        if clips.made == 0:
            self._made_from_s = now_s  # clips of an earlier run do not count for the rate
            return
        rate = clips.made / max(now_s - self._made_from_s, 1e-9)
        text = f"making clips: {clips.done} of {clips.total}, {rate:.2f} clips/s, "
        text += f"{duration((clips.total - clips.done) / rate)} left, in {escaped(clips.folder)}"
        self._show(text, last=clips.done == clips.total)

    def on_step(self, event: Event) -> None:
        """Show the step, the loss, the rate and the last validation."""
        remaining = (event.steps - event.step) / event.step_rate
        text = f"training {escaped(self._stage)}: step {event.step} of {event.steps}, "
        text += f"loss {event.loss:+.3f}, r {event.pearson:+.3f}, {event.clips_per_s:.1f} clips/s, "
        text += f"{duration(remaining)} left"
        if event.score is not None:
            text += f"; validation r {event.score.pearson:+.3f}, MAE {event.score.mae_bpm:.2f} bpm"
        self._show(text, last=event.step == event.steps)

    def _show(self, text: str, *, last: bool) -> None:
        """Show a text that replaces the one before; the last text stays."""
        now_s = self._clock()
        waited_s = now_s - self._printed_s
        if last or (self._status is None and waited_s >= LINE_INTERVAL_S):
            self.say(text)
        elif self._status is None or waited_s < _REFRESH_S:
            return
        elif not self._hidden:
            self._status.update(text)
        self._printed_s = float("-inf") if last else now_s


def duration(seconds: float) -> str:
    """Return a duration as 0:00:05, or as days and hours if it is longer than a day."""
    minutes, whole_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours}:{minutes:02d}:{whole_s:02d}"
