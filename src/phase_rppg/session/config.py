"""The settings of a session; wrong values are refused when the configuration is created."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .. import registry
from ..errors import ArgumentError
from ..face.crop import CROP_PX
from ..types import is_finite_number
from .network_feeder import BATCH, FILE_BATCH
from .pulse_model import PulseModel

FACES = ("all", "largest")
SECOND = "pos"  # default of `SessionConfig.second`
CONTEXT_S = 10.0  # `SessionConfig.context_s` for files
_SPARE_S = 2.0  # extra length of the buffers


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Method or network, windows and faces of a session."""

    method: str = "pos"  # name of a classical method; with a model, the name of the model
    model: PulseModel | None = None  # a streaming network, used instead of a method
    window_s: float = 10.0
    step_s: float = 1.0
    fps: float = 30.0  # of the uniform clock; a model defines its own
    faces: str = "all"
    gated: bool = True  # False: every window with a spectral peak gets a number, for evaluation
    second: str | None = SECOND  # classical method whose wave is used together with that of a model
    context_s: float = 0.0  # signal before and after a window that its rate uses; delays the results

    def __post_init__(self) -> None:
        if self.model is not None:
            object.__setattr__(self, "fps", float(self.model.fps))
            object.__setattr__(self, "method", self.model.name)
        else:
            registry.load("methods", self.method)
        if self.second is not None and registry.load("methods", self.second).INPUT != "trace":
            raise ArgumentError("second", self.second, "a method that uses the mean colour, such as pos")
        if not (is_finite_number(self.fps) and 5 <= self.fps <= 240):
            raise ArgumentError("fps", repr(self.fps), "5 to 240")
        if not (is_finite_number(self.window_s) and 2 <= self.window_s <= 300):
            raise ArgumentError("window", repr(self.window_s), "2 to 300 seconds")
        if not (is_finite_number(self.step_s) and 1 / self.fps <= self.step_s <= self.window_s):
            raise ArgumentError("step", repr(self.step_s), "from one frame up to the window")
        if not (is_finite_number(self.context_s) and 0 <= self.context_s <= 60):
            raise ArgumentError("context_s", repr(self.context_s), "0 to 60 seconds")
        if self.faces not in FACES:
            raise ArgumentError("faces", repr(self.faces), " or ".join(FACES))

    def for_camera(self) -> SessionConfig:
        """Return the same settings without context, so that a camera shows each window at once."""
        return replace(self, context_s=0.0)

    @property
    def window_ticks(self) -> int:
        """Length of a window in samples."""
        return round(self.window_s * self.fps)

    @property
    def step_ticks(self) -> int:
        """Time between the starts of two windows in samples."""
        return max(1, round(self.step_s * self.fps))

    @property
    def context_ticks(self) -> int:
        """Time before and after a window that contributes to its rate, in samples."""
        return round(self.context_s * self.fps)

    @property
    def delay_ticks(self) -> int:
        """Delay of the waveform of the network in samples."""
        return self.model.delay_frames if self.model is not None else 0

    @property
    def keep_ticks(self) -> int:
        """Length of the buffers of a face."""
        needed = self.window_ticks + 2 * self.context_ticks + self.step_ticks + self.delay_ticks
        return needed + round(_SPARE_S * self.fps)

    @property
    def batch(self) -> int:
        """Crops per call of the network: more of them if the results are late anyway."""
        return FILE_BATCH if self.context_s > 0 else BATCH

    @property
    def crop_px(self) -> int:
        """Side of the crop of a face in pixels."""
        return self.model.size if self.model is not None else CROP_PX

    @property
    def wants_clip(self) -> bool:
        """Whether the method uses the crops instead of the mean colour."""
        return self.model is None and registry.load("methods", self.method).INPUT == "clip"
