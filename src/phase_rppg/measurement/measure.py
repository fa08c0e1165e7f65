"""The public function `measure`, and its options as plain values."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from .. import registry
from ..errors import UnknownNameError
from ..infer import onnx
from ..registry import DEFAULT_METHOD
from ..session.config import CONTEXT_S, SECOND, SessionConfig
from ..session.gate import refuse_bad_timestamps
from ..session.pulse_model import PulseModel
from ..session.reasons import advice
from ..session.results import FaceResult, Result
from ..signal.breathing import BreathingReason, NoBreathing
from ..signal.hrv import failed_limits
from ..video.decode import ImageSequence, VideoFile
from .input_check import InputCheck
from .offline import measure as measure_with
from .result_buffer import WindowTable
from .sources import Times, Video, open_source
from .trace import TRACE_METHOD, TRACE_SUFFIX, TraceOptions, run_trace_file

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """Options of a measurement as plain values that can be sent to another process."""

    method: str = DEFAULT_METHOD
    window_s: float = 10.0
    step_s: float = 1.0
    faces: str = "all"
    fps: float | None = None  # replaces the timestamps of the file
    gated: bool = True
    alone: bool = False  # True: a bundled network is used without a second method
    loader: Callable[[str], PulseModel] | None = None  # loads `method`, for other kinds of networks

    def config(self) -> SessionConfig:
        """Return the settings of the session; wrong values raise an error here."""
        if self.loader is not None:
            return self._config(self.loader(self.method))
        if self.method not in choices() and Path(self.method).suffix not in (".json", ".onnx"):
            raise UnknownNameError("method", self.method, choices())
        model = None if self.method in registry.names("methods") else onnx.load(self.method)
        return self._config(model)

    def for_trace(self) -> TraceOptions:
        """Return the options for a colour trace; its default is POS, because networks need pictures."""
        method = TRACE_METHOD if self.method == DEFAULT_METHOD else self.method
        return TraceOptions(method, self.window_s, self.step_s, self.gated)

    def _config(self, model: PulseModel | None) -> SessionConfig:
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
    """Return the accepted methods: bundled networks, then classical methods."""
    return [*onnx.names(), *registry.names("methods")]


def measure(
    video: Video,
    *,
    method: str | Path = DEFAULT_METHOD,
    window_s: float = 10.0,
    step_s: float = 1.0,
    faces: str = "all",
    fps: float | None = None,
    t_s: Times | None = None,
    gated: bool = True,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Measure the heart rate in a video.

    `video` is a video file, a CSV file with a colour trace, a folder of images, an array (T,H,W,3) of uint8
    RGB, an iterable of `Frame`, or any object with a method `frames()`. An array needs `fps` or the times
    `t_s` of its frames in seconds. A folder needs one of them unless the names of its images end with a time
    since 1970. For a video file, `fps` replaces the timestamps.

    `method` is a classical method, a bundled network, or the path of an ONNX file or its manifest. `window_s`
    is the length of a window, `step_s` the time between two windows. `faces` is "all" or "largest". With
    `gated=False` every window gets a number with its `p_ok`. `progress` is called with the time reached, in
    seconds.
    """
    return run(video, MeasureOptions(str(method), window_s, step_s, faces, fps, gated), progress, t_s)


def run(
    video: Video,
    options: MeasureOptions,
    progress: Callable[[float], None] | None = None,
    t_s: Times | None = None,
) -> Result:
    """Measure one video. A file without timestamps gives readings only with `fps` or ungated."""
    if is_trace(video):
        return run_trace_file(Path(str(video)), options.for_trace(), options.fps, progress)
    source = open_source(video, options.fps, t_s)
    config = options.config()
    name = str(video) if isinstance(video, (str, Path)) else None
    decoded = isinstance(source, (VideoFile, ImageSequence))
    log.info("measuring %s with %s", name or type(video).__name__, config.method)
    result = measure_with(
        source, config, progress=progress, name=name, check=None if decoded else InputCheck()
    )
    if options.gated and getattr(source, "clock_is_guess", False):
        return refuse_readings(result)
    return result


def is_trace(video: Video) -> bool:
    """Return whether a path names a CSV file with a colour trace."""
    return isinstance(video, (str, Path)) and Path(video).suffix.lower() == TRACE_SUFFIX


def refuse_readings(result: Result) -> Result:
    """Return the result with all readings refused, for a video without true timestamps; waves are kept."""
    return replace(result, faces=tuple(map(_refuse_readings, result.faces)))


def _refuse_readings(face: FaceResult) -> FaceResult:
    refused = (replace(window, reading=refuse_bad_timestamps(window.reading)) for window in face.windows)
    summary = refuse_bad_timestamps(face.summary)
    return replace(
        face,
        summary=summary,
        advice=advice(summary),
        windows=WindowTable(face.id, refused),
        beats_s=face.beats_s[:0],
        hrv=None,
        breathing=NoBreathing(BreathingReason.NO_BEATS),
        hrv_limits=failed_limits(face.beats_s[:0]),
    )
