"""Result types: events of a session, and the results of a whole video.

The JSON document and the figure of a result are built in `report`, a package above this one. The methods of
the results get these functions from the root package, which imports its public names on first use.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..errors import ArgumentError, require
from ..face.crop import Box
from ..signal.breathing import BreathingReading, BreathingReason, NoBreathing
from ..signal.constants import BAND_HZ
from ..signal.hrv import Hrv, HrvLimit
from ..signal.rate import Peak
from ..types import ByteArray, Estimate, FaceTrack, FloatArray, Quality, Reading, Reason, Waveform

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

FRAMES = ("windows", "wave", "beats")  # tables of `to_frame`


@dataclass(frozen=True, slots=True)
class WindowResult:
    """One window of one face: the reading, the spectral peak and the quality."""

    face: int
    start_s: float
    end_s: float
    reading: Reading
    peak: Peak | None  # also of a refused window; None if there is no peak
    quality: Quality

    @property
    def bpm(self) -> float | None:
        """The rate; None without a reading."""
        return self.reading.bpm if isinstance(self.reading, Estimate) else None

    @property
    def low(self) -> float | None:
        """The lower end of the interval; None without a reading."""
        return self.reading.low if isinstance(self.reading, Estimate) else None

    @property
    def high(self) -> float | None:
        """The upper end of the interval; None without a reading."""
        return self.reading.high if isinstance(self.reading, Estimate) else None


@dataclass(frozen=True, slots=True, eq=False)
class WavePiece:
    """The next part of the pulse wave of a face; later events do not change it."""

    face: int
    wave: Waveform
    slow: FloatArray | None = None  # (T,2) at the same times: log of green over red, height in face widths


@dataclass(frozen=True, slots=True)
class FaceEvent:
    """A face appeared, was lost, returned, or is no longer tracked."""

    face: int
    t_s: float
    kind: str  # "appeared" | "lost" | "returned" | "ended"


@dataclass(frozen=True, slots=True, eq=False)
class FacePosition:
    """A face was detected in the frame at `t_s`; between detections its box stays the same."""

    face: int
    t_s: float
    box: Box
    landmarks: FloatArray  # (5,2) x, y of right eye, left eye, nose tip, right and left mouth corner


Event: TypeAlias = WindowResult | WavePiece | FaceEvent | FacePosition


def _no_boxes() -> FaceTrack:
    return FaceTrack(0, np.zeros(0), np.zeros((0, 4)), np.zeros(0, bool))


def _no_breathing() -> NoBreathing:
    return NoBreathing(BreathingReason.NO_BEATS)


@dataclass(frozen=True, slots=True, eq=False)
class FaceResult:
    """One face of a video: the summary, all windows and the pulse wave."""

    id: int
    summary: Reading
    windows: Sequence[WindowResult]
    wave: Waveform  # of the whole video; valid=False where the face was not seen
    beats_s: FloatArray  # (N,) times of the beats within windows that have a reading
    hrv: Hrv | None  # None if there are too few or too uncertain beats
    face_px: float  # median width of the face
    seen_s: float  # time in which the face was seen
    breathing: BreathingReading = field(default_factory=_no_breathing)  # the rate, or why there is none
    hrv_limits: Mapping[str, HrvLimit] = field(default_factory=dict)  # why values of `hrv` are missing
    boxes: FaceTrack = field(default_factory=_no_boxes)  # about one box per second
    position: str | None = None  # "left", "centre", "right" … in the picture, if there are several faces
    thumbnail: ByteArray | None = None  # (S,S,3) RGB
    advice: str = ""  # what to do about a missing reading; empty if there is a reading

    @property
    def ibi_s(self) -> FloatArray:
        """The interval (N,) that ends at each beat of `beats_s`.

        It is NaN where the previous beat is unknown: at the first beat and after a gap.
        """
        intervals_s = np.diff(self.beats_s, prepend=np.nan)
        return np.where(intervals_s <= 1 / BAND_HZ[0], intervals_s, np.nan)

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """Return the face as it stands in the JSON document of the video; see `Result.to_dict`."""
        import phase_rppg

        found: dict[str, Any] = phase_rppg.face_document(self, full=full)
        return found

    def to_json(self, *, full: bool = False, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(full=full), indent=indent, allow_nan=False)

    def to_frame(self, table: str = "windows") -> DataFrame:
        """Return a pandas table: "windows", "wave" (t_s, value, valid) or "beats" (t_s, ibi_s)."""
        require("pandas")
        import pandas as pd

        if table == "wave":
            return pd.DataFrame({"t_s": self.wave.t_s, "value": self.wave.values, "valid": self.wave.valid})
        if table == "beats":
            return pd.DataFrame({"t_s": self.beats_s, "ibi_s": self.ibi_s})
        if table != "windows":
            raise ArgumentError("table", repr(table), ", ".join(FRAMES))
        return pd.DataFrame([_row(window) for window in self.windows], columns=_COLUMNS)

    def plot(self) -> Figure:
        """Return a matplotlib figure of the wave, the spectrum and the rate over time."""
        one = Result(f"face {self.id}", "pulse", self.wave.start_s + self.wave.duration_s, 0.0, 0, (self,))
        return one.plot()


_COLUMNS = ["start_s", "end_s", "bpm", "low", "high", "p_ok", "p_alive", "snr_db", "reason"]


def _row(window: WindowResult) -> tuple[Any, ...]:
    reading = window.reading
    reason = None if isinstance(reading, Estimate) else str(reading.reason)
    rate = (window.bpm, window.low, window.high, reading.p_ok, reading.p_alive, window.quality.snr_db)
    return (window.start_s, window.end_s, *rate, reason)


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """One video: all measured faces, the largest first."""

    video: str
    method: str
    duration_s: float
    fps: float  # true frame rate, from timestamps
    frame_count: int
    faces: tuple[FaceResult, ...]
    reason: Reason | None = None  # why no face was measured; None if one was
    warnings: tuple[str, ...] = ()
    bits_per_pixel: float | None = None  # size of the file per pixel and frame; None if it is not a file

    def to_dict(self, *, full: bool = False) -> dict[str, Any]:
        """Return the JSON document of the video, which docs/measure.schema.json describes.

        `full` adds the waveform and the beats of each face.
        """
        import phase_rppg

        found: dict[str, Any] = phase_rppg.document(self, full=full)
        return found

    def to_json(self, *, full: bool = False, indent: int | None = 2) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(full=full), indent=indent, allow_nan=False)

    def to_frame(self, table: str = "windows") -> DataFrame:
        """Return the tables of all faces (`FaceResult.to_frame`) as one, with the column "face"."""
        require("pandas")
        import pandas as pd

        if table not in FRAMES:
            raise ArgumentError("table", repr(table), ", ".join(FRAMES))
        parts = {face.id: face.to_frame(table) for face in self.faces}
        if not parts:
            return pd.DataFrame({"face": []})
        return pd.concat(parts, names=["face"]).reset_index("face").reset_index(drop=True)

    def plot(self) -> Figure:
        """Return a matplotlib figure of all faces: wave, spectrum and rate over time."""
        require("matplotlib")
        import phase_rppg

        found: Figure = phase_rppg.figure(self)
        return found
