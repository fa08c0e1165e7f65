"""GREEN: the green channel alone, where blood absorbs most."""

from __future__ import annotations

from ..signal import filters
from ..types import RgbTrace, Waveform
from . import common

NAME = "green"
CITATION = (
    "W. Verkruysse, L. O. Svaasand, J. S. Nelson, "
    '"Remote plethysmographic imaging using ambient light", Optics Express 16(26), 2008'
)
INPUT = "trace"


def extract(trace: RgbTrace) -> Waveform:
    """The relative change of green within the pulse band, turned so that more blood is up."""
    green = common.normalised(common.colours(trace))[:, 1]
    return common.wave_on_clock_of(trace, -filters.pulse_band(green, trace.fps))
