"""The samples of one face during one window, as the buffers hold them and the analysis reads them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..signal.motion_removal import FaceMotion
from ..types import Clip, FloatArray, RgbTrace, Waveform


@dataclass(frozen=True, eq=False)
class WindowSamples:
    """Samples of one face during one window; all signals have the time axis of `skin`."""

    skin: RgbTrace  # mean colour of the skin
    background: RgbTrace | None  # mean colour outside all faces; None if faces fill the picture
    centre: FloatArray | None  # (T,2) centre of the face in face widths; None if unknown
    coverage: float  # 0–1: share of the window in which the face was seen
    face_px: float  # median face width
    clipped: float  # 0–1: share of overexposed skin
    fps: float  # true frame rate
    max_gap_s: float  # longest gap between two frames
    end_s: float
    wave: Waveform | None = None  # output of the network, if there is one
    clip: Clip | None = None  # crops, if the method reads them

    @cached_property
    def motion(self) -> FaceMotion | None:
        """The motion of the face, which is removed from every wave of the window; None if it is unknown."""
        return None if self.centre is None else FaceMotion(self.centre)

    def without_motion(self, wave: Waveform) -> Waveform:
        """Return a wave of the window without what the motion of the face explains."""
        return wave if self.motion is None else self.motion.remove(wave)


@dataclass(frozen=True, slots=True, eq=False)
class WindowContext:
    """The samples of a window extended into the time before and after it."""

    samples: WindowSamples
    extra_s: float  # seconds in which the face was seen outside the window
