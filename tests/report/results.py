"""Constructed results for the tests of reports."""

from __future__ import annotations

import numpy as np

from phase_rppg.session.results import FaceResult, Result, WindowResult
from phase_rppg.signal.hrv import Hrv
from phase_rppg.signal.rate import Peak
from phase_rppg.types import Estimate, NoReading, Quality, Reading, Reason, Waveform

QUALITY = Quality(
    snr_db=9.0, amplitude=0.004, background=0.0, motion=0.0, coverage=1.0, face_px=160.0, luma=120.0,
    clipped=0.0, colourfulness=0.6, fps=30.0, max_gap_s=0.034, support=0.9, agreement=0.8,
)  # fmt: skip


def face(
    number: int = 0, *, bpm: float = 72.0, gap: tuple[int, int] = (8, 14), silent: bool = False
) -> FaceResult:
    """Return 40 s of a pulse; the windows of `gap` have no reading, or all windows if `silent`."""
    windows = []
    for i in range(31):
        peak = Peak(bpm + 2 * np.sin(i / 5), 0.8, 9.0, 0.4)
        reading: Reading = Estimate(peak.bpm, peak.bpm - 1.5, peak.bpm + 1.5, 0.9, float(i), i + 10.0)
        if silent or gap[0] <= i < gap[1]:
            reading = NoReading(Reason.NO_PULSE, float(i), i + 10.0, 0.2)
        windows.append(WindowResult(number, float(i), i + 10.0, reading, peak, QUALITY))
    t_s = np.arange(1200) / 30
    angle = 2 * np.pi * bpm / 60 * t_s
    valid = np.ones(1200, bool)
    valid[300:330] = False
    wave = Waveform(np.sin(angle) + 0.3 * np.sin(2 * angle), 30.0, 0.0, valid)
    summary: Reading = Estimate(bpm, bpm - 1.5, bpm + 1.5, 0.9, 0.0, 40.0)
    if silent:
        summary = NoReading(Reason.NO_PULSE, 0.0, 40.0, 0.2)
    beats_s = np.zeros(0) if silent else np.arange(0.2, 40, 60 / bpm)
    variability = None if silent else Hrv(48, 39.2, 31.4, None, None, None, 14.5)
    return FaceResult(number, summary, tuple(windows), wave, beats_s, variability, 160.0, 40.0)


def result(
    *faces: FaceResult, video: str = "some <b>folder</b>/face.mp4", warnings: tuple[str, ...] = ()
) -> Result:
    reason = None if faces else Reason.NO_FACE
    return Result(video, "pos", 40.0, 30.0, 1200, faces, reason, warnings)
