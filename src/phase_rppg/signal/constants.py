"""Frequency bands and time limits that several packages share.

The values are in `constants.json`, which the browser package reads, too. Values that only one module uses are
defined there: `train.losses.contrast.CONTRAST_PHYS_BAND_HZ` (band of that paper),
`nn.phasenet.initial_kernels.INITIAL_HZ` (natural frequencies before training), and `max_gap_s` of a
calibration file (longest gap in a window with a reading).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_VALUES: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def _band(name: str) -> tuple[float, float]:
    low, high = _VALUES[name]
    return float(low), float(high)


BAND_HZ = _band("band_hz")  # heart rates: 40–200 bpm; spectra, SNR and losses
TOOLBOX_BAND_HZ = _band("toolbox_band_hz")  # heart rates by the convention of rPPG toolboxes
TOOLBOX_DETREND = float(_VALUES["toolbox_detrend"])  # λ of the smoothness-priors detrending, same convention
PULSE_BAND_HZ = _band("pulse_band_hz")  # the pulse with its harmonics; filter of the classical methods
DISPLAY_BAND_HZ = _band("display_band_hz")  # the pulse in plots, with less noise
MOTION_BAND_HZ = _band("motion_band_hz")  # head motion and pulse are compared here, wider than BAND_HZ
MAX_GAP_S = float(_VALUES["max_gap_s"])  # longer pauses between two samples are not interpolated
CLOCK_TOLERANCE = float(_VALUES["clock_tolerance"])  # of one tick: smaller rounding of timestamps is ignored
