"""The call that a user makes: a video and a few words in, a result out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .. import registry
from ..errors import UnknownNameError
from ..infer import onnx
from ..registry import DEFAULT_METHOD
from ..session.config import CONTEXT_S, SECOND, SessionConfig
from ..session.gate import distrust
from ..session.pulse_model import PulseModel
from ..session.results import FaceResult, Result
from ..types import FrameSource
from .offline import measure as measure_with
from .result_buffer import WindowTable


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """How to measure, as plain values: they can be sent to another process."""

    method: str = DEFAULT_METHOD
    window_s: float = 10.0
    step_s: float = 1.0
    faces: str = "all"
    fps: float | None = None  # replaces the timestamps of the file
    gated: bool = True
    alone: bool = False  # True: a network that comes along gets no second method at its side
    loader: Callable[[str], PulseModel] | None = None  # opens `method`, if it is nothing that we know

    def config(self) -> SessionConfig:
        """The session that carries this order out; wrong values are refused here."""
        if self.loader is not None:
            return self._session(self.loader(self.method))
        if self.method not in choices() and Path(self.method).suffix not in (".json", ".onnx"):
            raise UnknownNameError("method", self.method, choices())
        model = None if self.method in registry.names("methods") else onnx.load(self.method)
        return self._session(model)

    def _session(self, model: PulseModel | None) -> SessionConfig:
        return SessionConfig(
            method=self.method,
            model=model,
            window_s=self.window_s,
            step_s=self.step_s,
            faces=self.faces,
            gated=self.gated,
            second=None if self.alone or self.method not in onnx.names() else SECOND,
            context_s=CONTEXT_S,
        )


def choices() -> list[str]:
    """What can measure: the networks that come along, then the classical methods."""
    return [*onnx.names(), *registry.names("methods")]


def measure(
    video: str | Path | FrameSource,
    *,
    method: str = DEFAULT_METHOD,
    window_s: float = 10.0,
    step_s: float = 1.0,
    faces: str = "all",
    fps: float | None = None,
    gated: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Measure the heart rate in a video file, or in any source of frames.

    `method` is a classical method, a network that comes along, or the manifest of one of your own;
    `window_s` and `step_s` are the length and the distance of the readings; `faces` is "all" or "largest";
    `fps` replaces the timestamps of the file; with gated=False every window shows its number with its
    `p_ok`. `progress` is called with the seconds reached.
    """
    return run(video, MeasureOptions(method, window_s, step_s, faces, fps, gated), progress)


def run(
    video: str | Path | FrameSource, order: MeasureOptions, progress: Callable[[float], None] | None = None
) -> Result:
    """Measure one video as ordered. A file without timestamps gives readings only with `fps` or ungated."""
    from ..video.decode import VideoFile

    config = order.config()
    source = VideoFile(video, order.fps) if isinstance(video, (str, Path)) else video
    result = measure_with(source, config, progress=progress)
    if order.gated and getattr(source, "clock_is_guess", False):
        return without_readings(result)
    return result


def without_readings(result: Result) -> Result:
    """The result of a video whose clock is a guess: waves may be looked at, rates would be wrong."""
    return replace(result, faces=tuple(map(_without_readings, result.faces)))


def _without_readings(face: FaceResult) -> FaceResult:
    windows = WindowTable(
        face.id, (replace(window, reading=distrust(window.reading)) for window in face.windows)
    )
    return replace(face, summary=distrust(face.summary), windows=windows, beats_s=face.beats_s[:0], hrv=None)
