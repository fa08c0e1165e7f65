"""Frequency bands and time limits that several packages share; each has its only definition here.

Other conventions keep their own names where they belong: `train.contrast.CONTRAST_PHYS_BAND_HZ` (that paper's
band), `nn.phasenet.oscillators.INITIAL_HZ` (natural frequencies before training), and the limit
`max_gap_s` of a calibration file (longest pause in a window that may get a reading).
"""

from __future__ import annotations

BAND_HZ = (0.66, 3.34)  # heart rates: 40–200 bpm; spectra, SNR and losses
TOOLBOX_BAND_HZ = (0.6, 3.3)  # heart rates by the convention of the field's toolboxes
TOOLBOX_DETREND = 100.0  # λ of the smoothness-priors detrending of the same convention
PULSE_BAND_HZ = (0.6, 8.0)  # the pulse with its harmonics; filter of the classical methods
DISPLAY_BAND_HZ = (0.6, 6.0)  # the pulse as it is drawn, with less noise
MOTION_BAND_HZ = (0.5, 4.0)  # head motion and pulse are compared in this band, slightly wider than BAND_HZ
MAX_GAP_S = 0.5  # longer pauses between two samples are not interpolated
CLOCK_TOLERANCE = 1e-6  # of one tick: rounding of timestamps up to this is ignored
