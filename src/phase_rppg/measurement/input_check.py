"""Detect frames of a program that are probably wrong: BGR instead of RGB, milliseconds instead of seconds.

A decoded file needs no check.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ..errors import ArgumentError, PhaseWarning
from ..picture import AnyFrame
from ..session.results import Event, FacePosition
from ..types import ByteArray, is_finite_number
from .sources import MAX_STEP_S, wrong_unit

BGR_TEXT = "the faces are blue: the frames may be BGR instead of RGB; use frame[..., ::-1]"
_COUNTED_STEPS = 5  # times between frames that must all be too long
_COUNTED_FACES = 3  # detections that must all be blue
_BLUE = 1.1  # blue over red; skin is below 1 in RGB, whatever its tone


class InputCheck:
    """Looks at the first frames and detections; `warnings` lists what was found."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self._last_s: float | None = None
        self._steps = 0
        self._long_steps = 0
        self._faces = 0
        self._blue_faces = 0

    def check_time(self, t_s: float) -> None:
        """Raise an ArgumentError if the next frame is not later than the last, or times are milliseconds."""
        if not is_finite_number(t_s):
            raise ArgumentError("frame.t_s", repr(t_s), "a finite time in seconds")
        t_s = float(t_s)
        if self._last_s is not None and t_s <= self._last_s:
            raise ArgumentError(
                "frame.t_s", t_s, f"a time after that of the previous frame, {self._last_s:g} s"
            )
        if self._last_s is not None and self._steps < _COUNTED_STEPS:
            step_s = t_s - self._last_s
            self._steps += 1
            self._long_steps += step_s >= MAX_STEP_S
            if self._long_steps == _COUNTED_STEPS:
                raise wrong_unit("frame.t_s", step_s)
        self._last_s = t_s

    def check_colour(self, frame: AnyFrame, events: Sequence[Event]) -> None:
        """Warn if the first detected faces are blue."""
        for event in events:
            if isinstance(event, FacePosition) and self._faces < _COUNTED_FACES:
                self._faces += 1
                self._blue_faces += _is_blue(frame.rgb, event)
                if self._blue_faces == _COUNTED_FACES:
                    self._warn(BGR_TEXT)

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)
            warnings.warn(text, PhaseWarning, stacklevel=4)


def _is_blue(rgb: ByteArray, position: FacePosition) -> bool:
    """Return whether the middle of a face is more blue than red."""
    x, y, width, height = position.box
    rows = slice(max(int(y + 0.25 * height), 0), max(int(y + 0.75 * height), 0) + 1)
    columns = slice(max(int(x + 0.25 * width), 0), max(int(x + 0.75 * width), 0) + 1)
    middle = rgb[rows, columns].reshape(-1, 3)
    if not len(middle):
        return False
    red, _, blue = np.mean(middle, axis=0)
    return bool(blue > _BLUE * red + 1)
