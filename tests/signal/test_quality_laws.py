"""Closed forms of the quality features, on tones of known amplitude and phase."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal import constants, quality, rate
from phase_rppg.types import RgbTrace

FPS = 30.0
T_S = np.arange(1800) / FPS  # 60 s: a line is 0.2 Hz wide
BAND_HZ = constants.BAND_HZ[1] - constants.BAND_HZ[0]
CHANCE = 0.2 / BAND_HZ  # share of the band that lies within one line
ALL = np.ones(len(T_S), bool)


def tone(hz: float, amplitude: float = 1.0, phase: float = 0.0) -> np.ndarray:
    return amplitude * np.cos(2 * np.pi * hz * T_S + phase)


def trace(red: np.ndarray | float, green: np.ndarray | float, blue: np.ndarray | float) -> RgbTrace:
    values = np.stack([np.broadcast_to(100.0 * (1 + x), T_S.shape) for x in (red, green, blue)], 1)
    return RgbTrace(values, FPS, 0.0, ALL)


def above_chance(share: float) -> float:
    return (share - CHANCE) / (1 - CHANCE)


def test_pulsation_is_taken_from_green_over_the_valid_part() -> None:
    line = tone(1.2, 0.01)
    seen = RgbTrace(trace(0.0, line, 0.0).values.copy(), FPS, 0.0, ALL.copy())
    seen.valid[900:] = False
    seen.values[900:] = 5.0
    assert quality.pulsation(seen, 72) == pytest.approx(0.01, rel=0.02)
    assert quality.pulsation(trace(line, 0.0, line), 72) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("scale", [0.001, 0.005, 2.0])
def test_pulsation_does_not_depend_on_the_brightness(scale: float) -> None:
    seen = trace(0.0, tone(1.2, 0.01), 0.0)
    darker = RgbTrace(scale * seen.values, FPS, 0.0, ALL)
    assert quality.pulsation(darker, 72) == pytest.approx(quality.pulsation(seen, 72))
    assert quality.pulsation(RgbTrace(0 * seen.values, FPS, 0.0, ALL), 72) == 0


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_a_shared_line_is_the_share_of_power_above_chance(share: float) -> None:
    other = tone(1.2, np.sqrt(share)) + tone(2.5, np.sqrt(1 - share))
    assert quality.shared_line(other, FPS, 72) == pytest.approx(above_chance(share), abs=0.01)
    assert quality.shared_line(1e-6 * other, FPS, 72) == pytest.approx(above_chance(share), abs=0.01)
    both = np.stack([tone(2.5), other, tone(2.0)], 1)
    assert quality.shared_line(both, FPS, 72) == pytest.approx(above_chance(share), abs=0.01)


def test_a_line_elsewhere_is_not_shared() -> None:
    assert quality.shared_line(tone(2.5), FPS, 72) == 0
    assert quality.shared_line(tone(5.0), FPS, 72) == pytest.approx(0, abs=0.05)
    assert quality.shared_line(tone(1.2), FPS, 72) == pytest.approx(1, abs=1e-3)
    assert quality.shared_line(np.zeros((0, 2)), FPS, 72) == 0
    assert quality.shared_line(tone(1.2), FPS, 72, ~ALL) == 0


@pytest.mark.parametrize("amplitude", [0.25, 0.5, 1.0, 3.0])
def test_a_line_counts_by_its_amplitude_over_full_scale(amplitude: float) -> None:
    found = quality.shared_line(tone(1.2, amplitude), FPS, 72, full_scale=1.0)
    assert found == pytest.approx(min(amplitude, 1.0), rel=0.04)  # 72 bpm lies between two bins
    assert quality.shared_line(tone(1.2, amplitude), FPS, 72, full_scale=0.0) == pytest.approx(1, abs=1e-3)


def test_a_line_with_contrast_counts_despite_a_stronger_one_far_away() -> None:
    """A tone 1.3 Hz away does not belong to its surroundings, whatever its power."""
    other = tone(1.2) + tone(2.5, 3.0)
    assert quality.shared_line(other, FPS, 72) == pytest.approx(above_chance(0.1), abs=0.01)
    assert quality.shared_line(other, FPS, 72, full_scale=1.0) > 0.95


def noisy_trace(noise: float, amplitude: float, seed: int = 0) -> RgbTrace:
    grain = noise * np.random.default_rng(seed).normal(size=len(T_S))
    return trace(0.0, tone(1.2, amplitude) + grain, 0.0)


def test_visibility_is_the_line_over_the_median_noise_around_it() -> None:
    """Power of Hann-windowed white noise: mean 4σ²·1.5/N, median ln 2 of that."""
    noise, amplitude = 0.01, 0.005
    expected = 10 * np.log10(amplitude**2 / (4 * noise**2 * 1.5 / len(T_S) * np.log(2)))
    found = [quality.visible_db(noisy_trace(noise, amplitude, seed), 72) for seed in range(30)]
    assert np.mean(found) == pytest.approx(expected, abs=1.5)


@pytest.mark.parametrize("bpm", [50.0, 120.0, 190.0])
def test_visibility_is_the_power_over_the_median_power_within_0_6_hz(bpm: float) -> None:
    seen = noisy_trace(0.01, 0.0, seed=3)
    spec = rate.spectrum(seen.values[:, 1], FPS)
    away_hz = np.abs(spec.hz - bpm / 60)
    low_hz, high_hz = constants.BAND_HZ
    beside = (away_hz <= 0.6) & (away_hz > 0.1) & (spec.hz >= low_hz) & (spec.hz <= high_hz)
    expected = 10 * np.log10(float(spec.at(bpm / 60)) / np.median(spec.power[beside]))
    assert quality.visible_db(seen, bpm) == pytest.approx(expected, abs=1e-6)


def test_visibility_is_limited_to_forty_decibels() -> None:
    assert quality.visible_db(trace(0.0, tone(1.2, 0.01), 0.0), 72) == pytest.approx(40, abs=1e-3)
    beside = trace(0.0, sum(tone(hz, 0.1) for hz in np.arange(0.66, 2.0, 0.02) if abs(hz - 1.2) > 0.15), 0.0)
    assert quality.visible_db(beside, 72) < -30
    assert quality.visible_db(beside, 72) >= -40


def test_the_neighbourhood_is_within_the_band_and_0_6_hz() -> None:
    quiet = noisy_trace(0.001, 0.005)
    before = quality.visible_db(quiet, 72)
    for far_hz in (0.3, 2.2, 3.0):
        loud = RgbTrace(quiet.values + trace(0.0, tone(far_hz, 0.3), 0.0).values, FPS, 0.0, ALL)
        assert quality.visible_db(loud, 72) == pytest.approx(before, abs=0.5)


@pytest.mark.parametrize("phase", [0.0, 1.0, 2.0, np.pi])
def test_background_coherence_and_in_phase_are_projections_on_the_skin(phase: float) -> None:
    skin = trace(tone(1.2, 0.003), tone(1.2, 0.01), tone(1.2, 0.005))
    wall = [tone(1.2, a, phase) for a in (0.006, 0.006, 0.006)]
    s, b = np.array([0.003, 0.01, 0.005]), np.full(3, 0.006)
    together = float(b @ s) * np.cos(phase)
    assert quality.background_coherence(skin, trace(*wall), 72) == pytest.approx(
        max(together / float(s @ s), 0), abs=0.01
    )
    size = float(np.linalg.norm(b) * np.linalg.norm(s))
    assert quality.in_phase(skin, trace(*wall), 72) == pytest.approx(max(together / size, 0), abs=0.01)


def test_background_coherence_is_at_most_two() -> None:
    skin, lit = trace(*[tone(1.2, 0.002)] * 3), trace(*[tone(1.2, 0.05)] * 3)
    assert quality.background_coherence(skin, lit, 72) == 2
    assert quality.background_coherence(skin, trace(0.0, 0.0, 0.0), 72) == pytest.approx(0, abs=1e-6)
    assert quality.background_coherence(RgbTrace(skin.values, FPS, 0.0, ~ALL), lit, 72) == 0
    assert quality.in_phase(RgbTrace(skin.values, FPS, 0.0, ~ALL), lit, 72) == 0


def test_a_background_without_valid_samples_is_not_coherent() -> None:
    skin = trace(*[tone(1.2, 0.002)] * 3)
    background = RgbTrace(skin.values, FPS, 0.0, ~ALL)
    assert quality.background_coherence(skin, background, 72) == 0
    assert quality.in_phase(skin, background, 72) == 0


@pytest.mark.parametrize(("ratio", "expected"), [(0.43, 0.43), (-0.5, -0.5), (-3.0, -1.0), (5.0, 2.0)])
def test_red_is_the_ratio_to_green_within_its_limits(ratio: float, expected: float) -> None:
    found = quality.red_green_ratio(trace(tone(1.2, 0.01 * ratio), tone(1.2, 0.01), tone(1.2, 0.2)), 72)
    assert found == pytest.approx(expected, abs=0.01)
    assert quality.red_green_ratio(RgbTrace(np.ones((1800, 3)), FPS, 0.0, ~ALL), 72) == 1


def test_red_out_of_phase_with_green_is_ignored() -> None:
    assert quality.red_green_ratio(
        trace(tone(1.2, 0.01, np.pi / 2), tone(1.2, 0.01), 0.0), 72
    ) == pytest.approx(0, abs=0.01)


def test_a_dark_channel_is_compared_with_a_level_of_one() -> None:
    """A level below 1 of 255 would turn rounding into a large relative change."""
    values = np.stack([0.5 + 0.1 * tone(1.2), 100 + tone(1.2), 100 + tone(1.2)], 1)
    assert quality.red_green_ratio(RgbTrace(values, FPS, 0.0, ALL), 72) == pytest.approx(2)
    values[:, 0] = 0.5 + 0.01 * tone(1.2)
    assert quality.red_green_ratio(RgbTrace(values, FPS, 0.0, ALL), 72) == pytest.approx(1.0, abs=0.02)


def test_colourfulness_is_the_spread_over_the_mean() -> None:
    assert quality.colourfulness(np.array([180.0, 120.0, 90.0])) == pytest.approx(90 / 130)
    assert quality.colourfulness(np.zeros(3)) == 0
    assert quality.colourfulness(np.array([0.0, 0.0, 0.3])) == pytest.approx(3)


def test_the_snr_is_that_of_line_and_harmonic_over_the_rest() -> None:
    x = tone(1.2, 2.0) + tone(2.4) + tone(1.9)
    assert quality.snr_db(x, 72, FPS) == pytest.approx(10 * np.log10(5), abs=0.01)
