"""GREEN: the green channel, in which blood absorbs most light."""

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
    """Return the negative relative change of green within the pulse band."""
    green = common.normalised(common.checked_colours(trace))[:, 1]
    return common.waveform_like(trace, -filters.pulse_band(green, trace.fps))
