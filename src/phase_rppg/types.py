"""The values that flow through the house, from a frame to a reading.

    Frame → FaceTrack → Clip | RgbTrace → Waveform + Quality → Estimate | NoReading

All are frozen; units are in the names and shapes in the comments. Time is in seconds on the video's own
clock, taken from its timestamps. Absence is a type: `NoReading(reason)`, never `nan`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating]
ComplexArray: TypeAlias = npt.NDArray[np.complexfloating]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ByteArray: TypeAlias = npt.NDArray[np.uint8]


class Reason(str, enum.Enum):
    """Why there is no reading."""

    NO_FACE = "NO_FACE"
    FACE_LOST = "FACE_LOST"
    FACE_TOO_SMALL = "FACE_TOO_SMALL"
    NO_PULSE = "NO_PULSE"
    LIGHT_FLICKER = "LIGHT_FLICKER"
    MOTION = "MOTION"
    TOO_SHORT = "TOO_SHORT"
    TOO_DARK = "TOO_DARK"
    CLIPPED = "CLIPPED"
    LOW_FPS = "LOW_FPS"
    BAD_TIMESTAMPS = "BAD_TIMESTAMPS"
    NO_COLOUR = "NO_COLOUR"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One picture and the moment it was taken."""

    rgb: ByteArray  # (H,W,3) u8
    t_s: float


@runtime_checkable
class FrameSource(Protocol):
    """Anything that yields frames in order of time, once per call, in bounded memory; it can be pickled."""

    def frames(self) -> Iterator[Frame]: ...


@dataclass(frozen=True, slots=True, eq=False)
class FaceTrack:
    """Where one person's face was in each frame."""

    id: int
    t_s: FloatArray  # (T,)
    boxes: FloatArray  # (T,4) x, y, width, height in pixels
    present: BoolArray  # (T,) False where the face was not seen


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A face that is held still: square crops on a uniform clock."""

    pixels: ByteArray  # (T,S,S,3) u8
    t_s: FloatArray  # (T,)
    fps: float
    valid: BoolArray  # (T,)


@dataclass(frozen=True, slots=True, eq=False)
class RgbTrace:
    """The mean colour of the skin over time, on a uniform clock."""

    values: FloatArray  # (T,3) 0–255
    fps: float
    start_s: float
    valid: BoolArray  # (T,)

    @property
    def t_s(self) -> FloatArray:
        return self.start_s + np.arange(len(self.values)) / self.fps


@dataclass(frozen=True, slots=True, eq=False)
class Waveform:
    """A pulse wave (or any scalar signal) on a uniform clock; upstroke positive."""

    values: FloatArray  # (T,)
    fps: float
    start_s: float
    valid: BoolArray  # (T,)

    @property
    def t_s(self) -> FloatArray:
        return self.start_s + np.arange(len(self.values)) / self.fps

    @property
    def duration_s(self) -> float:
        return len(self.values) / self.fps


@dataclass(frozen=True, slots=True)
class Quality:
    """What is known about one window before it is decided upon. Every field is finite."""

    snr_db: float  # power at the chosen rate and its first harmonic over the rest of the band
    amplitude: float  # relative colour pulsation of the raw skin trace at the chosen rate (AC/DC)
    background: float  # 0–1: how much of the line the background shows too (light, not pulse)
    motion: float  # 0–1: how much of the line the face position shows too
    coverage: float  # 0–1: fraction of the window with a face
    face_px: float  # median face width in pixels
    luma: float  # median brightness of the skin, 0–255
    clipped: float  # 0–1: fraction of skin pixels at the end of the range
    colourfulness: float  # spread between the channels of the skin colour, 0 for grey
    fps: float  # true frame rate of the window
    max_gap_s: float  # longest pause between two frames
    support: float = 0.0  # 0–1: how far the neighbouring windows agree on the rate
    agreement: float = 0.0  # 0–1: how much of the line a second, independent method shows
    visible_db: float = 0.0  # how far the line stands out from what lies beside it in the raw green
    background_coherence: float = (
        1.0  # how much of the line the background shows in step: 1 for a lamp, 0 for a pulse
    )
    red: float = 1.0  # relative red over green of the line: about 0.4 for blood, 1 for light and motion


@dataclass(frozen=True, slots=True)
class Estimate:
    """A heart rate with its interval and the probability that it is within 5 bpm of the truth."""

    bpm: float
    low: float
    high: float
    p_ok: float
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class NoReading:
    """There is no heart rate to give, and why."""

    reason: Reason
    start_s: float
    end_s: float
    p_ok: float = 0.0


Reading: TypeAlias = Estimate | NoReading


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One video of a data set with what was measured beside it."""

    dataset: str
    subject: str
    name: str  # unique within the data set, e.g. "subject3" or "01-01"
    video: FrameSource
    reference: Waveform  # on the clock of the video, resampled by timestamps
    conditions: Mapping[str, str] = field(default_factory=dict)
