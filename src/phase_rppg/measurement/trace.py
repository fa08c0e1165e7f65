"""Measure a colour trace: the mean colour of the skin over time, without pictures.

The windows, the rate track, the intervals and the gate are those of a video. A trace has no background and no
position of the face, so light and motion are refused by the colour of their changes alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .. import limits, registry
from ..errors import ArgumentError, InputError, UnknownNameError
from ..fileio import column_names, read_csv_rows
from ..session.config import CONTEXT_S, SessionConfig
from ..session.results import Result
from ..session.trace_session import TraceSession
from ..signal.constants import MAX_GAP_S
from ..types import BoolArray, FloatArray, Reason, RgbTrace
from .offline import apply_hindsight
from .result_buffer import ResultBuffer
from .sources import Times, check_fps, check_times
from .summary import summarise_faces

TRACE_METHOD = "pos"  # default method of a trace
TRACE_SUFFIX = ".csv"
_MIN_FPS, _MAX_FPS = 5.0, 60.0  # of the uniform clock
_TIME_COLUMNS = {"t_s": 1.0, "time_s": 1.0, "t_ms": 1e-3}  # name and unit in seconds
_COLOUR_COLUMNS = (("r", "g", "b"), ("red", "green", "blue"))
_UNIT_SCALE = 1.5  # colours that are all below this are on a scale of 0–1


@dataclass(frozen=True, slots=True, eq=False)
class TraceOptions:
    """Options of a measurement of a trace; see `measure_trace`."""

    method: str = TRACE_METHOD
    window_s: float = 10.0
    step_s: float = 1.0
    gated: bool = True

    def config(self, fps: float) -> SessionConfig:
        """Return the settings of the session; wrong values raise an error here."""
        if self.method not in registry.names("methods"):
            raise UnknownNameError("method for a trace", self.method, trace_methods())
        return SessionConfig(
            method=self.method,
            window_s=self.window_s,
            step_s=self.step_s,
            fps=fps,
            gated=self.gated,
            context_s=CONTEXT_S,
        )


def trace_methods() -> list[str]:
    """Return the methods that use the mean colour."""
    return [name for name in registry.names("methods") if registry.load("methods", name).INPUT == "trace"]


def measure_trace(
    trace: RgbTrace | npt.ArrayLike,
    *,
    t_s: Times | None = None,
    fps: float | None = None,
    method: str = TRACE_METHOD,
    window_s: float = 10.0,
    step_s: float = 1.0,
    gated: bool = True,
) -> Result:
    """Measure the heart rate in the mean colour of the skin over time.

    `trace` is an `RgbTrace`, or an array (T,3) of red, green and blue from 0 to 255 with its times `t_s` in
    seconds or its frame rate `fps`. Rows of zeros mean that there is no face. `method` is a classical method
    that uses the mean colour. The other options are those of `measure`.
    """
    if isinstance(trace, RgbTrace):
        if t_s is not None or fps is not None:
            raise ArgumentError("t_s or fps", "given", "none: an RgbTrace has its own times")
        times_s, colours = _timed(trace.values, trace.t_s, None)
        seen = np.asarray(trace.valid, bool)
    else:
        times_s, colours = _timed(trace, t_s, fps)
        seen = np.ones(len(colours), bool)
    return run_trace(times_s, colours, seen, TraceOptions(method, window_s, step_s, gated))


def run_trace(
    times_s: FloatArray,
    colours: FloatArray,
    seen: BoolArray,
    options: TraceOptions,
    *,
    name: str = "trace",
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Measure colours (T,3) at times (T,); `seen` (T,) is False without a face."""
    seen = seen & _checked(colours)
    rate_hz = _sample_rate(times_s)
    session = TraceSession(options.config(min(max(rate_hz, _MIN_FPS), _MAX_FPS)))
    buffer = ResultBuffer()
    for t_s, rgb, present in zip(times_s.tolist(), colours, seen.tolist(), strict=True):
        buffer.add(session.push(t_s, rgb if present else None))
        if progress is not None:
            progress(t_s - float(times_s[0]))
    buffer.add(session.finish())
    if options.gated:
        apply_hindsight(buffer, options.method)
    faces = summarise_faces(buffer)
    return Result(
        video=name,
        method=options.method,
        duration_s=float(times_s[-1] - times_s[0]) + 1 / rate_hz,
        fps=rate_hz,
        frame_count=len(times_s),
        faces=faces,
        reason=None if faces else Reason.TOO_SHORT if seen.any() else Reason.NO_FACE,
    )


def run_trace_file(
    path: Path, options: TraceOptions, fps: float | None, progress: Callable[[float], None] | None = None
) -> Result:
    """Measure a CSV file with the columns t_s, r, g and b; `fps` replaces its times."""
    times_s, colours = read_trace(path, fps)
    try:
        seen = np.ones(len(colours), bool)
        return run_trace(times_s, colours, seen, options, name=str(path), progress=progress)
    except ArgumentError as error:
        if error.name != "trace":
            raise
        raise InputError(f"{path}: has {error.given}; accepted: {error.accepted}") from None


def read_trace(path: str | Path, fps: float | None = None) -> tuple[FloatArray, FloatArray]:
    """Return the times (T,) in seconds and the colours (T,3) of a CSV file.

    The header names the columns: t_s (or t_ms) and r, g, b. With `fps`, the times are not read.
    """
    rows = read_csv_rows(path, "label_mb", int(limits.current().samples), "samples")
    header = [cell.strip().lower() for cell in next(rows, [])]
    time_name = next((name for name in _TIME_COLUMNS if name in header), None)
    names = next((names for names in _COLOUR_COLUMNS if set(names) <= set(header)), None)
    if names is None or (time_name is None and fps is None):
        found = ", ".join(column_names(header)) or "nothing"
        raise InputError(f"{path}: needs a header with t_s, r, g and b; found {found}")
    columns = [header.index(name) for name in names]
    time_at = header.index(time_name) if time_name is not None and fps is None else columns[0]
    number = 1

    def values() -> Iterator[float]:
        nonlocal number
        for number, row in enumerate(rows, 2):  # noqa: B007 (of the row that is no row of numbers)
            yield from [float(row[at]) for at in (time_at, *columns)]

    try:
        table = np.fromiter(values(), np.float64).reshape(-1, 4)
    except (ValueError, IndexError):
        raise InputError(f"{path}: row {number} is not a row of numbers") from None
    if not len(table):
        raise InputError(f"{path}: has no samples")
    if fps is not None:
        return np.arange(len(table)) / check_fps(fps), table[:, 1:]
    assert time_name is not None
    try:
        return check_times(table[:, 0] * _TIME_COLUMNS[time_name]), table[:, 1:]
    except ArgumentError as error:
        raise InputError(f"{path}: {time_name} has {error.given}; accepted: {error.accepted}") from None


def _timed(trace: npt.ArrayLike, t_s: Times | None, fps: float | None) -> tuple[FloatArray, FloatArray]:
    """Return the times and the colours of an array."""
    try:
        colours = np.asarray(trace, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError("trace", type(trace).__name__, "an RgbTrace or an array (T,3)") from None
    if colours.ndim != 2 or colours.shape[1] != 3 or not len(colours):
        raise ArgumentError("trace", f"shape {colours.shape}", "red, green and blue, shape (T,3)")
    if (t_s is None) == (fps is None):
        given = "none" if t_s is None else "both"
        raise ArgumentError("fps or t_s", given, "the frame rate or the times of the samples")
    if fps is not None:
        return np.arange(len(colours)) / check_fps(fps), colours
    assert t_s is not None
    times_s = check_times(t_s)
    if len(times_s) != len(colours):
        raise ArgumentError("t_s", f"{len(times_s)} times", f"{len(colours)}, one for each sample")
    return times_s, colours


def _checked(colours: FloatArray) -> BoolArray:
    """Return which rows (T,3) show a face; refuse colours that are not on the scale of 0 to 255."""
    finite = np.isfinite(colours).all(1)
    seen: BoolArray = finite & (colours != 0).any(1)
    known = colours[seen]
    if not len(known):
        return seen
    low, high = float(known.min()), float(known.max())
    accepted = "colours from 0 to 255"
    if low < 0 or high > 255:
        raise ArgumentError("trace", f"values from {low:g} to {high:g}", accepted)
    if high <= _UNIT_SCALE:
        raise ArgumentError("trace", f"values up to {high:g}", f"{accepted}; multiply values of 0–1 by 255")
    return seen


def _sample_rate(times_s: FloatArray) -> float:
    """Return the mean rate of the samples without the pauses between them."""
    steps_s = np.diff(times_s)
    usual_s = steps_s[steps_s <= MAX_GAP_S]
    if not len(usual_s):
        return _MIN_FPS if not len(steps_s) else 1 / float(np.median(steps_s))
    mean_s = float(usual_s.mean())
    return 1 / mean_s if math.isfinite(mean_s) and mean_s > 0 else _MIN_FPS
