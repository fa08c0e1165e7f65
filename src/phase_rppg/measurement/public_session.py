"""The public class `Session`: frame by frame what `measure` does with a whole video."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import ArgumentError, UsageError
from ..face.detector import Detector
from ..picture import AnyFrame, YuvFrame
from ..registry import DEFAULT_METHOD
from ..session import session as core
from ..session.config import SessionConfig
from ..session.results import Event
from .input_check import InputCheck
from .measure import MeasureOptions
from .sources import check_picture


class Session(core.Session):
    """Turns frames into events: `push` every frame, then call `finish`; both return the new events.

    `method` is a classical method, a bundled network, or the path of an ONNX file or its manifest. `window_s`
    is the length of a window, `step_s` the time between two windows. `faces` is "all" or "largest". With
    `gated=False` every window gets a number with its `p_ok`. `context_s` adds the signal before and after
    each window and delays its result by this time; `measure` uses 10 s. A `config` replaces all of these.
    """

    def __init__(
        self,
        config: SessionConfig | None = None,
        detector: Detector | None = None,
        *,
        method: str | Path = DEFAULT_METHOD,
        window_s: float = 10.0,
        step_s: float = 1.0,
        faces: str = "all",
        gated: bool = True,
        context_s: float = 0.0,
    ) -> None:
        if config is None:
            options = MeasureOptions(str(method), window_s, step_s, faces, gated=gated)
            config = replace(options.config(), context_s=context_s)
        elif not isinstance(config, SessionConfig):
            raise ArgumentError("config", repr(config), "a SessionConfig; a method is method=…")
        elif (method, window_s, step_s, faces, gated, context_s) != (DEFAULT_METHOD, 10, 1, "all", True, 0):
            raise ArgumentError("config", "given with other settings", "one of them")
        super().__init__(config, detector)
        self._check = InputCheck()
        self._finished = False

    def push(self, frame: AnyFrame) -> list[Event]:
        """Process the next frame and return its events: windows, pieces of the wave, faces.

        A wrong type or shape, or a time that is not after that of the previous frame, raises an
        ArgumentError; the session continues with the next frame. Frames that are probably BGR give a
        PhaseWarning.
        """
        self._require_open()
        if not (hasattr(frame, "rgb") and hasattr(frame, "t_s")):
            raise ArgumentError("frame", type(frame).__name__, "a Frame(rgb, t_s)")
        if not isinstance(frame, YuvFrame):  # from our decoder
            check_picture("frame.rgb", frame.rgb)
        self._check.check_time(frame.t_s)
        events = super().push(frame)
        self._check.check_colour(frame, events)
        return events

    def finish(self) -> list[Event]:
        """End the measurement and return the remaining events. A finished session takes no more frames."""
        self._require_open()
        self._finished = True
        return super().finish()

    def _require_open(self) -> None:
        if self._finished:
            raise UsageError("the session is finished; open a new one")
