"""Beats that are shifted to match their template are nearer to the true beats."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.physics.pulse import PulseConfig, pulse_wave
from phase_rppg.signal import rate
from phase_rppg.signal.beat_jitter import beat_jitter_s, interval_jitter_s
from phase_rppg.signal.beat_timing import MIN_BEATS, refine_beats
from phase_rppg.types import FloatArray, Waveform

FPS = 30.0


def heart(rng: np.random.Generator, noise: float = 0.0, **config: float) -> tuple[Waveform, FloatArray]:
    """A minute of a pulse wave with white noise, and its true beats."""
    pulse = pulse_wave(PulseConfig(**config).with_random_shape(rng), 60.0, FPS, rng)
    values = pulse.values + noise * rng.standard_normal(len(pulse.values))
    return Waveform(values, FPS, 0.0, np.ones(len(values), bool)), pulse.beat_times_s


def interval_error_s(found_s: FloatArray, true_s: FloatArray) -> float:
    """The mean error of intervals whose two beats follow a true beat by about the same time."""
    before = np.searchsorted(true_s, found_s) - 1
    delay_s = found_s - true_s[np.clip(before, 0, None)]
    usual = (before >= 0) & (np.abs(delay_s - np.median(delay_s)) < 0.15)
    pairs = usual[1:] & usual[:-1] & (np.diff(before) == 1)
    errors_s = (np.diff(found_s) - np.diff(true_s)[np.clip(before[:-1], 0, len(true_s) - 2)])[pairs]
    assert pairs.mean() > 0.9
    return float(np.abs(errors_s).mean())


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
def test_the_template_lowers_the_error_of_intervals(noise: float) -> None:
    rng = np.random.default_rng(7)
    plain_s, refined_s = [], []
    for bpm in (52, 60, 70, 80, 95, 110):
        wave, true_s = heart(rng, noise, bpm=bpm)
        beats_s = rate.find_beats(wave, bpm)
        plain_s.append(interval_error_s(beats_s, true_s))
        refined_s.append(interval_error_s(refine_beats(wave, beats_s), true_s))
    assert np.mean(refined_s) < 0.85 * np.mean(plain_s)


def test_shifted_beats_return_to_their_place() -> None:
    wave, _ = heart(np.random.default_rng(1), bpm=70, rsa=0.0, hrv_s=0.0, drift_bpm=0.0)
    beats_s = refine_beats(wave, rate.find_beats(wave, 70))
    shifted_s = beats_s + np.random.default_rng(2).normal(0, 0.015, len(beats_s))
    again_s = refine_beats(wave, shifted_s)
    assert len(again_s) == len(beats_s)
    away_s = again_s - beats_s
    assert np.abs(away_s - np.median(away_s)).max() < 0.003


def test_the_refinement_moves_with_the_clock_and_ignores_the_scale() -> None:
    wave, _ = heart(np.random.default_rng(4), 0.05, bpm=75)
    beats_s = rate.find_beats(wave, 75)
    later = Waveform(3.0 * wave.values, FPS, 100.0, wave.valid)
    assert refine_beats(later, beats_s + 100) == pytest.approx(refine_beats(wave, beats_s) + 100, abs=1e-6)


def test_beats_at_the_end_of_the_valid_samples_are_left_out() -> None:
    wave, _ = heart(np.random.default_rng(5), bpm=60, rsa=0.0, hrv_s=0.0, drift_bpm=0.0)
    valid = wave.valid.copy()
    valid[900:960] = False
    part = Waveform(wave.values, FPS, 0.0, valid)
    kept_s = refine_beats(part, rate.find_beats(part, 60))
    gap = (kept_s > 30 - 0.29) & (kept_s < 32 + 0.29)
    assert not gap.any()
    assert kept_s.min() > 0.29
    assert kept_s.max() < 60 - 0.29
    assert len(kept_s) >= 53


def test_few_beats_are_returned_as_they_are() -> None:
    wave, _ = heart(np.random.default_rng(6), bpm=60)
    beats_s = rate.find_beats(wave, 60)[: MIN_BEATS - 1]
    assert refine_beats(wave, beats_s) is beats_s
    assert len(refine_beats(wave, np.zeros(0))) == 0


@pytest.mark.parametrize("rsa", [0.0, 0.04, 0.08])
def test_the_jitter_does_not_count_the_rhythm_of_the_heart(rsa: float) -> None:
    """Without noise the estimate is small, however much breathing changes the intervals."""
    rng = np.random.default_rng(8)
    for bpm in (60, 80, 100):
        wave, _ = heart(rng, bpm=bpm, rsa=rsa, breathing_hz=0.2, hrv_s=0.003)
        beats_s = refine_beats(wave, rate.find_beats(wave, bpm))
        assert beat_jitter_s(wave, beats_s) < 0.004


def test_the_jitter_of_intervals_is_that_of_independent_errors() -> None:
    rng = np.random.default_rng(9)
    beats_s = np.cumsum(0.8 + 0.03 * np.sin(2 * np.pi * 0.2 * np.arange(400)))
    for jitter_s in (0.003, 0.01, 0.02):
        found_s = interval_jitter_s(beats_s + rng.normal(0, jitter_s, len(beats_s)))
        assert found_s == pytest.approx(jitter_s, rel=0.2)
    assert interval_jitter_s(beats_s[:10]) is None
    assert interval_jitter_s(beats_s[:0]) is None
