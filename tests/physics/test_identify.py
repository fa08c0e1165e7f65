"""Identification recovers the oscillator of a waveform, and does not explain other waveforms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.physics import (
    Oscillator,
    PulseConfig,
    identify_forced,
    identify_free,
    identify_pulse,
    pulse_wave,
)
from phase_rppg.physics.pulse import vessel_oscillator

seeds = st.integers(0, 2**32 - 1)


@given(st.floats(0.2, 1.6), st.floats(4, 25), seeds)
@settings(deadline=None, max_examples=10)
def test_a_driven_oscillator_is_found_again(ratio: float, omega: float, seed: int) -> None:
    oscillator = Oscillator(ratio * omega, omega, 1 / 60)
    force = np.random.default_rng(seed).standard_normal(400)
    found = identify_forced(3 * oscillator.recurrence(force) + 1, force, 60)
    assert found.alpha == pytest.approx(oscillator.alpha, rel=1e-4)
    assert found.omega == pytest.approx(oscillator.omega, rel=1e-4)
    assert found.gains[0] == pytest.approx(3, rel=1e-4)
    assert found.offset == pytest.approx(1, abs=1e-4)
    assert found.explained > 1 - 1e-8


@given(st.floats(0.2, 1.6), st.floats(4, 25), seeds)
@settings(deadline=None, max_examples=10)
def test_a_decay_from_any_start_is_found_again(ratio: float, omega: float, seed: int) -> None:
    oscillator = Oscillator(ratio * omega, omega, 1 / 60)
    start = np.random.default_rng(seed).standard_normal(2)
    state, values = start * [1, omega], []
    for _ in range(150):
        values.append(state[0])
        state = oscillator.A @ state
    found = identify_free(np.array(values), 60)
    assert found.explained > 1 - 1e-8
    assert found.alpha == pytest.approx(oscillator.alpha, rel=1e-2)
    assert found.omega == pytest.approx(oscillator.omega, rel=1e-2)


def test_noise_costs_explanation_but_not_the_answer() -> None:
    oscillator = Oscillator(4.0, 9.0, 1 / 60)
    kernel = oscillator.kernel(200)
    noise = np.random.default_rng(0).standard_normal(200) * kernel.std()
    clean, noisy = identify_free(kernel, 60), identify_free(kernel + 0.3 * noise, 60)
    assert noisy.explained < clean.explained
    assert noisy.explained == pytest.approx(1 / 1.09, abs=0.03)
    assert noisy.omega == pytest.approx(9.0, rel=0.1)


def test_noise_alone_is_not_explained() -> None:
    assert identify_free(np.random.default_rng(1).standard_normal(200), 60).explained < 0.2


@given(seeds)
@settings(deadline=None, max_examples=3)
def test_a_pulse_without_reflection_is_one_push_per_beat(seed: int) -> None:
    # The fit assumes the beat before the first sample at the median interval, so the rhythm is regular.
    config = PulseConfig(dicrotic=0, push_s=0.02, breathing_strength=0, rsa=0, hrv_s=0, drift_bpm=0)
    pulse = pulse_wave(config, 8, 60, np.random.default_rng(seed))
    found = identify_pulse(pulse.values, 60, pulse.beat_times_s)
    assert found.explained > 0.999
    # The truth was stepped at 240 Hz; at 60 Hz the same swing has a slightly larger α and ω.
    truth = vessel_oscillator(config)
    assert found.omega == pytest.approx(truth.omega, rel=0.15)
    assert found.alpha == pytest.approx(truth.alpha, rel=0.25)


def test_beats_may_be_feet_or_peaks_and_the_reflected_wave_is_what_stays_unexplained() -> None:
    rng = np.random.default_rng(2)
    plain = pulse_wave(PulseConfig(dicrotic=0, breathing_strength=0), 8, 60, rng)
    reflected = pulse_wave(PulseConfig(dicrotic=0.4, damping=0.8, breathing_strength=0), 8, 60, rng)
    feet = identify_pulse(plain.values, 60, plain.beat_times_s)
    peaks = identify_pulse(plain.values, 60, plain.beat_times_s + 0.14)
    assert peaks.explained == pytest.approx(feet.explained, abs=0.01)
    assert peaks.delay_s == pytest.approx(feet.delay_s - 0.14, abs=0.02)
    assert identify_pulse(reflected.values, 60, reflected.beat_times_s).explained < feet.explained - 0.01


def test_what_cannot_be_identified_is_refused() -> None:
    wave = np.sin(np.arange(60.0))
    with pytest.raises(ArgumentError, match="constant"):
        identify_free(np.ones(60), 60)
    with pytest.raises(ArgumentError, match="T ≥ 8"):
        identify_free(wave[:5], 60)
    with pytest.raises(ArgumentError, match="fps"):
        identify_free(wave, 0)
    with pytest.raises(ArgumentError, match="forces"):
        identify_forced(wave, np.zeros(60), 60)
    with pytest.raises(ArgumentError, match="forces"):
        identify_forced(wave, np.ones(59), 60)
    with pytest.raises(ArgumentError, match="values"):
        identify_forced(np.array([np.nan] * 60), np.ones(60), 60)
    with pytest.raises(ArgumentError, match="beat_times_s"):
        identify_pulse(wave, 60, np.array([0.8, 0.2]))
    with pytest.raises(ArgumentError, match="beat_times_s"):
        identify_pulse(wave, 60, np.array([5.0, 6.0]))
