"""What a measurement gives: readings over time for each face, with the wave they came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..signal.hrv import Hrv
from ..signal.rate import Peak
from ..types import FloatArray, Quality, Reading, Reason, Waveform


@dataclass(frozen=True, slots=True)
class WindowResult:
    """One face during one window: the reading, and what it rests on."""

    face: int
    start_s: float
    end_s: float
    reading: Reading
    peak: Peak | None  # the line that was found, believed or not
    quality: Quality


@dataclass(frozen=True, slots=True, eq=False)
class WavePiece:
    """The next stretch of a face's pulse wave, final."""

    face: int
    wave: Waveform


@dataclass(frozen=True, slots=True)
class FaceEvent:
    """A face came, was lost, came back, or is no longer followed."""

    face: int
    t_s: float
    kind: str  # "appeared" | "lost" | "returned" | "ended"


Event: TypeAlias = WindowResult | WavePiece | FaceEvent


@dataclass(frozen=True, slots=True, eq=False)
class FaceResult:
    """One person: a summary, and everything over time."""

    id: int
    summary: Reading
    windows: Sequence[WindowResult]
    wave: Waveform  # the whole pulse wave; valid=False where the face was not seen
    beats_s: FloatArray  # (N,) times of the beats, in stretches with a reading
    hrv: Hrv | None  # None when the beats do not allow it
    face_px: float  # median width of the face
    seen_s: float  # for how long the face was in the picture


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """One video: every face that was measured, the largest first."""

    video: str
    method: str
    duration_s: float
    fps: float  # true frame rate, by timestamps
    frame_count: int
    faces: tuple[FaceResult, ...]
    reason: Reason | None  # why there is no face to measure; None when there is one
    warnings: tuple[str, ...]
