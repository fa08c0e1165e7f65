"""The conventions equal the steps that rPPG-Toolbox documents, computed here with scipy alone."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from phase_rppg.errors import UnknownNameError
from phase_rppg.evaluate import conventions, metrics
from phase_rppg.types import Waveform

FPS = 30.0


def waves(seed: int, frames: int = 700) -> tuple[np.ndarray, np.ndarray]:
    """A reference with a drift, and a noisy prediction with another drift and a level."""
    rng = np.random.default_rng(seed)
    t = np.arange(frames) / FPS
    angle = 2 * np.pi * rng.uniform(0.9, 2.0) * t
    reference = np.sin(angle) + 0.3 * np.sin(2 * angle) + 0.4 * t
    return reference, np.sin(angle - 0.7) + rng.normal(0, 0.8, frames) - 0.1 * t + 5


def independent(
    prediction: np.ndarray, reference: np.ndarray, band: tuple[float, float], power_exponent: int
) -> tuple[float, float, float, float]:
    """Dense matrices and explicit loops, as the formulas are written down."""
    second = np.diff(np.eye(len(reference)), 2, axis=0)
    trend = np.linalg.inv(np.eye(len(reference)) + 100**2 * second.T @ second)
    b, a = signal.butter(1, [2 * edge / FPS for edge in band], btype="bandpass")
    clean = [signal.filtfilt(b, a, wave - trend @ wave) for wave in (prediction, reference)]
    hz, spectra = signal.periodogram(np.array(clean), FPS, nfft=1024, detrend=False)
    inside = (hz >= band[0]) & (hz <= band[1])
    bpm, truth = (60 * hz[inside][np.argmax(power[inside])] for power in spectra)
    line = (np.abs(hz - truth / 60) <= 0.1) | (np.abs(hz - truth / 30) <= 0.1)
    power = spectra[0] ** power_exponent
    snr_db = 10 * np.log10(power[line].sum() / power[inside & ~line].sum())
    lags = range(len(reference) - 1)
    macc = max(abs(np.corrcoef(clean[0], np.roll(clean[1], lag))[0, 1]) for lag in lags)
    return bpm, truth, snr_db, macc


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("name", "band", "exponent"), [("toolbox", (0.6, 3.3), 1), ("release", (0.75, 2.5), 2)]
)
def test_a_comparison_equals_the_formulas(
    name: metrics.Convention, band: tuple[float, float], exponent: int, seed: int
) -> None:
    reference, prediction = waves(seed)
    valid = np.ones(len(reference), bool)
    found = metrics.compare(*(Waveform(w, FPS, 0.0, valid) for w in (prediction, reference)), name)
    assert found is not None
    expected = independent(prediction, reference, band, exponent)
    measured = (found.bpm, found.truth_bpm, found.snr_db, found.macc)
    assert measured == pytest.approx(expected, abs=1e-6)


def test_the_last_lag_can_be_left_out() -> None:
    values = np.random.default_rng(0).standard_normal(50)
    ahead = np.roll(values, -1)  # equal after a delay of the reference by 49 of 50 frames
    assert metrics.macc(ahead, values) == pytest.approx(1)
    assert metrics.macc(ahead, values, last_lag=False) < 0.9
    behind = np.roll(values, 1)
    assert metrics.macc(behind, values, last_lag=False) == pytest.approx(1)


def test_conventions_have_names() -> None:
    assert [conventions.get(name).name for name in conventions.ALL] == ["ours", "toolbox", "release"]
    with pytest.raises(UnknownNameError, match="did you mean 'toolbox'"):
        conventions.get("toolbx")
