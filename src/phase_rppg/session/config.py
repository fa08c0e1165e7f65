"""The choices of a session, checked when they are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .. import registry
from ..errors import ArgumentError
from ..face.crop import CROP_PX
from .pulse_model import PulseModel

FACES = ("all", "largest")
SECOND = "pos"  # the method that reads along with a network
CONTEXT_S = 10.0  # in a file: how far around a window its rate is looked for, too
_SPARE_S = 2.0  # kept beyond window and step, for late answers


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """How to measure: by which method or network, over which windows, and whom."""

    method: str = "pos"  # a file of `methods`; with a model, the name under which it is calibrated
    model: PulseModel | None = None  # a streaming network instead of a method
    window_s: float = 10.0
    step_s: float = 1.0
    fps: float = 30.0  # of the uniform clock; a model brings its own
    faces: str = "all"
    gated: bool = True  # False: every window with a line gets its number, for evaluation
    second: str | None = SECOND  # beside a model: a method that reads along
    context_s: float = 0.0  # so far before and after a window its rate is looked for; results wait for it

    def __post_init__(self) -> None:
        if self.model is not None:
            object.__setattr__(self, "fps", float(self.model.fps))
            object.__setattr__(self, "method", self.model.name)
        else:
            registry.load("methods", self.method)
        if self.second is not None and registry.load("methods", self.second).INPUT != "trace":
            raise ArgumentError("second", self.second, "a method that reads the mean colour")
        if not (math.isfinite(self.window_s) and 2 <= self.window_s <= 300):
            raise ArgumentError("window", self.window_s, "2 to 300 seconds")
        if not (math.isfinite(self.step_s) and 1 / self.fps <= self.step_s <= self.window_s):
            raise ArgumentError("step", self.step_s, "above 0, up to the window")
        if not (math.isfinite(self.context_s) and 0 <= self.context_s <= 60):
            raise ArgumentError("around", self.context_s, "0 to 60 seconds")
        if not 5 <= self.fps <= 240:
            raise ArgumentError("fps", self.fps, "5 to 240")
        if self.faces not in FACES:
            raise ArgumentError("faces", repr(self.faces), " or ".join(FACES))

    def for_camera(self) -> SessionConfig:
        """The same where nobody waits for what comes later."""
        return replace(self, context_s=0.0)

    @property
    def window_ticks(self) -> int:
        return round(self.window_s * self.fps)

    @property
    def step_ticks(self) -> int:
        return max(1, round(self.step_s * self.fps))

    @property
    def context_ticks(self) -> int:
        return round(self.context_s * self.fps)

    @property
    def delay_ticks(self) -> int:
        return self.model.delay_frames if self.model is not None else 0

    @property
    def keep_ticks(self) -> int:
        """How much of each face is remembered."""
        needed = self.window_ticks + 2 * self.context_ticks + self.step_ticks + self.delay_ticks
        return needed + round(_SPARE_S * self.fps)

    @property
    def crop_px(self) -> int:
        return self.model.size if self.model is not None else CROP_PX

    @property
    def wants_clip(self) -> bool:
        """Whether the method looks at pictures and not only at the mean colour."""
        return self.model is None and registry.load("methods", self.method).INPUT == "clip"
