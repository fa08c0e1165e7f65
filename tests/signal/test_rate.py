"""The rate of a noise-free sine is within 0.1 bpm for any length, phase, trend and frame rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.signal import rate
from phase_rppg.types import Waveform

pytestmark = pytest.mark.smoke


def tone(
    bpm: float, seconds: float, fps: float = 30.0, phase: float = 0.0, harmonic: float = 0.0
) -> np.ndarray:
    t = np.arange(int(np.ceil(seconds * fps))) / fps
    angle = 2 * np.pi * bpm / 60 * t + phase
    return np.cos(angle) + harmonic * np.cos(2 * angle + 0.7)


@settings(deadline=None, max_examples=150)
@given(
    bpm=st.floats(40, 200),
    seconds=st.floats(6, 90),
    phase=st.floats(0, 6.28),
    fps=st.sampled_from([15.0, 25.0, 29.97, 60.0]),
    harmonic=st.floats(0, 0.5),
)
def test_the_rate_of_a_sine_is_within_a_tenth(
    bpm: float, seconds: float, phase: float, fps: float, harmonic: float
) -> None:
    x = tone(bpm, seconds, fps, phase, harmonic)
    assert rate.spectral_bpm(100 + 0.01 * x, fps) == pytest.approx(bpm, abs=0.1)


def test_drift_and_gaps_do_not_move_the_rate() -> None:
    x = tone(72, 12) + 0.3 * np.arange(360) / 30
    valid = np.ones(360, bool)
    valid[100:140] = False
    x[100:140] = 1e6
    peak = rate.spectral_peak(x, 30, valid)
    assert peak is not None
    assert peak.bpm == pytest.approx(72, abs=0.1)


def test_a_strong_harmonic_does_not_double_the_rate() -> None:
    assert rate.spectral_bpm(tone(60, 10, harmonic=0.9), 30) == pytest.approx(60, abs=0.5)


def pulse(bpm: float, harmonic: float, off: float = 0.0, phase: float = 0.0) -> np.ndarray:
    """Ten seconds of a wave whose second harmonic is `off` radians from where a pulse has it."""
    angle = 2 * np.pi * bpm / 60 * np.arange(300) / 30 + phase
    return np.cos(angle) + harmonic * np.cos(2 * angle + rate.SHAPE_PHASE + off)


@pytest.mark.parametrize("phase", [0.0, 1.0, 4.0])
def test_a_harmonic_with_the_phase_of_a_pulse_supports_its_fundamental(phase: float) -> None:
    slow = pulse(54, 1.0, phase=phase)
    assert rate.spectral_bpm(slow, 30) == pytest.approx(54, abs=0.5)
    assert rate.spectral_bpm(-slow, 30) == pytest.approx(108, abs=0.5)  # upside down: not a pulse of 54
    assert rate.spectral_bpm(pulse(54, 1.0, np.pi, phase), 30) == pytest.approx(108, abs=0.5)


@settings(deadline=None, max_examples=50)
@given(bpm=st.floats(45, 95), phase=st.floats(0, 6.28), off=st.floats(0.3, 6.0))
def test_the_evidence_of_a_pulse_is_all_of_its_power(bpm: float, phase: float, off: float) -> None:
    hz = np.array([bpm / 60])
    ratio = rate.SHAPE_RATIO
    found = rate.spectrum(pulse(bpm, ratio, phase=phase), 30).evidence(hz)
    assert found == pytest.approx(rate.prior(hz) * (1 + ratio**2), rel=0.03)
    assert rate.spectrum(pulse(bpm, ratio, off, phase), 30).evidence(hz) < found
    assert rate.spectrum(tone(bpm, 10), 30).evidence(hz) == pytest.approx(
        rate.prior(hz) / (1 + ratio**2), rel=0.03
    )


def test_noise_lowers_the_snr_and_widens_the_rate() -> None:
    rng = np.random.default_rng(0)
    clean = rate.spectral_peak(tone(80, 10) + 0.1 * rng.normal(size=300), 30)
    noisy = rate.spectral_peak(tone(80, 10) + 1.0 * rng.normal(size=300), 30)
    assert clean is not None
    assert noisy is not None
    assert clean.snr_db > noisy.snr_db + 10
    assert clean.sigma_bpm < noisy.sigma_bpm
    assert abs(noisy.bpm - 80) < 3


@pytest.mark.parametrize(
    "x", [np.zeros(300), np.full(300, 137.2), np.linspace(0, 9, 300), np.zeros(0), np.ones(1)]
)
def test_a_flat_signal_has_no_rate(x: np.ndarray) -> None:
    assert rate.spectral_peak(x, 30.0) is None
    with pytest.raises(ArgumentError):
        rate.spectral_bpm(x, 30.0)


def test_two_cycles_are_no_rate() -> None:
    assert rate.spectral_peak(tone(60, 2), 30.0) is None


def test_the_toolbox_rate_is_a_multiple_of_its_bin_width() -> None:
    x = tone(71, 10)
    found = rate.toolbox_bpm(x, 30)
    bin_bpm = 60 * 30 / 512
    assert found % bin_bpm == pytest.approx(0, abs=1e-9) or found % bin_bpm == pytest.approx(
        bin_bpm, abs=1e-9
    )
    assert abs(found - 71) <= bin_bpm
    assert rate.toolbox_bpm(np.diff(x, prepend=x[0]), 30, difference=True) == found


@pytest.mark.parametrize("bpm", [48.0, 75.0, 120.0, 170.0])
def test_beats_are_at_the_true_times(bpm: float) -> None:
    fps = 30.0
    truth_s = 10.0 + np.arange(0.3, 20, 60 / bpm)
    t = 10.0 + np.arange(int(20 * fps)) / fps
    distance = (t[:, None] - truth_s) * bpm / 60
    x = np.exp(-0.5 * (distance / 0.15) ** 2).sum(1) + 0.02 * np.random.default_rng(0).normal(size=len(t))
    beats_s = rate.find_beats(Waveform(x, fps, 10.0, np.ones(len(t), bool)))
    inner = truth_s[(truth_s > 10.5) & (truth_s < 29)]
    gaps = np.abs(inner[:, None] - beats_s).min(1)
    assert gaps.max() < 0.035
    assert rate.beat_bpm(beats_s) == pytest.approx(bpm, abs=0.5)


def test_no_beats_at_invalid_samples() -> None:
    x = tone(60, 20)
    valid = np.ones(600, bool)
    valid[200:300] = False
    beats_s = rate.find_beats(Waveform(x, 30.0, 0.0, valid), 60.0)
    assert not ((beats_s > 200.5 / 30) & (beats_s < 299.5 / 30)).any()
    assert len(beats_s) >= 15


def test_peaks_of_one_heart_are_averaged_with_inverse_variance_weights() -> None:
    sharp, blunt = rate.Peak(70.0, 0.5, 3.0, 0.5), rate.Peak(75.0, 0.4, 1.0, 1.0)
    assert rate.joint_bpm([sharp]) == 70.0
    assert rate.joint_bpm([sharp, blunt]) == pytest.approx((4 * 70 + 75) / 5)
