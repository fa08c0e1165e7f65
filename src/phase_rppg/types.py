"""The data types of the package, from a frame to a reading.

    Frame → FaceTrack → Clip | RgbTrace → Waveform + Quality → Estimate | NoReading

All are frozen; units are in the names and shapes in the comments. Times are in seconds on the clock of the
video, from its timestamps. A missing reading is `NoReading(reason)`, never `nan`.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.floating]
ComplexArray: TypeAlias = npt.NDArray[np.complexfloating]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ByteArray: TypeAlias = npt.NDArray[np.uint8]


def is_finite_number(value: object) -> bool:
    """Return whether a value is a number, not a text, and neither infinite nor NaN."""
    try:
        return math.isfinite(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


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
    """One picture and its timestamp."""

    rgb: ByteArray  # (H,W,3) u8
    t_s: float


@runtime_checkable
class FrameSource(Protocol):
    """A source of frames in order of time. Each call of `frames` starts from the beginning.

    It needs bounded memory and can be pickled.
    """

    def frames(self) -> Iterator[Frame]: ...


@dataclass(frozen=True, slots=True, eq=False)
class FaceTrack:
    """The position of the face of one person in each frame."""

    id: int
    t_s: FloatArray  # (T,)
    boxes: FloatArray  # (T,4) x, y, width, height in pixels
    present: BoolArray  # (T,) False where the face was not detected


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """Registered square crops of a face on a uniform clock."""

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
        """The time of each sample in seconds."""
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
        """The time of each sample in seconds."""
        return self.start_s + np.arange(len(self.values)) / self.fps

    @property
    def duration_s(self) -> float:
        return len(self.values) / self.fps


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality features of one window, from which the gate decides. Every field is finite."""

    snr_db: float  # power at the chosen rate and its second harmonic over the rest of the band
    amplitude: float  # relative colour pulsation of the raw skin trace at the chosen rate (AC/DC)
    background: float  # 0–1: share of the spectral peak that the background also shows
    motion: float  # 0–1: share of the spectral peak that the face position also shows
    coverage: float  # 0–1: fraction of the window with a face
    face_px: float  # median face width in pixels
    luma: float  # median brightness of the skin, 0–255
    clipped: float  # 0–1: fraction of skin pixels that are overexposed
    colourfulness: float  # spread between the channels of the skin colour, 0 for grey
    fps: float  # true frame rate of the window
    max_gap_s: float  # longest gap between two frames
    support: float = 0.0  # 0–1: agreement of the neighbouring windows on the rate
    agreement: float = 0.0  # 0–1: share of the spectral peak that a second method also shows
    visible_db: float = 0.0  # height of the spectral peak above its surroundings in the raw green channel
    background_coherence: float = 1.0  # with the background at the rate: 1 for flicker, 0 for a pulse
    red: float = 1.0  # AC/DC of red, in phase with green, over that of green: blood about 0.4, light 1
    blue: float = 1.0  # the same for blue: blood about 0.7, white light 1
    track_sigma_bpm: float = 10.0  # standard deviation of the tracked rate
    change_bpm: float = 0.0  # difference between the rates of the two halves of the window
    beat_bpm: float = 0.0  # mean rate of the beats, the mean of two methods; 0 if there are too few beats
    beat_difference_bpm: float = 20.0  # difference between the mean rates of the beats of the two methods
    beat_spread: float = 0.5  # standard deviation of the beat intervals over their mean
    beat_match: float = 0.0  # −1 to 1: correlation of the beats with the median beat


@dataclass(frozen=True, slots=True)
class Estimate:
    """A heart rate with its interval and two probabilities.

    `p_ok` is the probability that the rate is within 5 bpm of the truth, if the face is alive. `p_alive` is
    the probability that the peak comes from a living pulse.
    """

    bpm: float
    low: float
    high: float
    p_ok: float
    start_s: float
    end_s: float
    p_alive: float = field(default=1.0, kw_only=True)


@dataclass(frozen=True, slots=True)
class SummaryEstimate(Estimate):
    """The rate of a whole video: `bpm` is the median over time, and the range shows how it changes.

    `low` and `high` are the interval of a typical window. `range_low` and `range_high` contain the rates of
    at least 90 % of the windows, and of all windows if there are fewer than 20.
    """

    range_low: float
    range_high: float


@dataclass(frozen=True, slots=True)
class NoReading:
    """The reason why a window has no heart rate.

    `probable_bpm` is a rate that is likely, with the probability `p_probable`, but not sure enough to be a
    reading. `p_ok` and `p_alive` are those of `Estimate`.
    """

    reason: Reason
    start_s: float
    end_s: float
    p_ok: float = 0.0
    probable_bpm: float | None = None
    p_alive: float = field(default=0.0, kw_only=True)

    @property
    def p_probable(self) -> float:
        """The probability that `probable_bpm` is that of a pulse, and within 5 bpm of the truth."""
        return self.p_ok * self.p_alive


Reading: TypeAlias = Estimate | NoReading


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """One video of a data set with its reference and conditions."""

    dataset: str
    subject: str
    name: str  # unique within the data set, e.g. "subject3" or "01-01"
    video: FrameSource
    reference: Waveform  # on the clock of the video, resampled by timestamps
    conditions: Mapping[str, str] = field(default_factory=dict)
