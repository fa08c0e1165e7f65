"""Quality features: amplitude is AC/DC, and a line shared with the background is recognised."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal import quality
from phase_rppg.types import RgbTrace

T = np.arange(300) / 30
LINE = np.cos(2 * np.pi * 1.2 * T + 0.4)
NOISE = np.random.default_rng(0).normal(size=300)


def test_pulsation_is_the_relative_amplitude_of_green() -> None:
    values = np.stack([100 + 0 * T, 80 * (1 + 0.004 * LINE), 60 + 0 * T], 1)
    assert quality.pulsation(RgbTrace(values, 30, 0, np.ones(300, bool)), 72) == pytest.approx(
        0.004, rel=0.02
    )
    assert quality.pulsation(RgbTrace(values, 30, 0, np.zeros(300, bool)), 72) == 0
    assert quality.pulsation(RgbTrace(0 * values, 30, 0, np.ones(300, bool)), 72) == 0


def test_snr_is_high_for_a_line_and_low_for_noise() -> None:
    assert quality.snr_db(LINE, 72, 30) > 20
    assert quality.snr_db(NOISE, 72, 30) < 3
    assert np.isfinite(quality.snr_db(0 * LINE, 72, 30))


def test_a_shared_line_is_recognised_and_noise_is_not() -> None:
    assert quality.shared_line(LINE + 0.1 * NOISE, 30, 72) > 0.9
    assert quality.shared_line(NOISE, 30, 72) < 0.3
    assert quality.shared_line(0 * LINE + 50, 30, 72) == 0
    assert quality.shared_line(np.stack([NOISE, LINE], 1), 30, 72) > 0.9


def test_a_weak_shared_line_has_a_low_strength() -> None:
    assert quality.shared_line(0.01 * LINE, 30, 72, full_scale=1.0) < 0.02
    assert quality.shared_line(LINE, 30, 72, full_scale=1.0) > 0.9


def test_flicker_is_recognised_in_drifting_light() -> None:
    drift = 3 * np.sin(2 * np.pi * 0.7 * np.arange(len(LINE)) / 30)
    assert quality.shared_line(LINE + drift + 0.1 * NOISE, 30, 110) < 0.1
    assert quality.shared_line(LINE + drift + 0.1 * NOISE, 30, 72, full_scale=1.0) > 0.8
    assert quality.shared_line(NOISE, 30, 72, full_scale=1.0) < 0.3


def coloured(red: float, green: float, blue: float, noise: float = 0.0, level: float = 100.0) -> RgbTrace:
    """Colours that follow LINE by these shares of their level, over noise of their own."""
    grain = noise * np.random.default_rng(1).normal(size=(300, 3))
    values = level * (1 + LINE[:, None] * np.array([red, green, blue]) + grain)
    return RgbTrace(values, 30, 0, np.ones(300, bool))


def test_visibility_is_the_contrast_of_a_line_to_the_noise() -> None:
    strengths = (0.0, 0.002, 0.005, 0.02)
    seen = [quality.visible_db(coloured(0, amplitude, 0, noise=0.005), 72) for amplitude in strengths]
    assert seen == sorted(seen)
    assert seen[0] < 10
    assert seen[-1] > 25
    assert quality.visible_db(coloured(0, 0, 0), 72) == 0
    assert quality.visible_db(RgbTrace(np.zeros((300, 3)), 30, 0, np.zeros(300, bool)), 72) == 0


def test_flicker_is_coherent_with_the_background_and_a_pulse_is_not() -> None:
    skin = coloured(0.004, 0.01, 0.007, noise=0.001)
    background_coherence, quiet = coloured(0.01, 0.01, 0.01, level=60), coloured(0, 0, 0, noise=0.001)
    assert quality.background_coherence(background_coherence, background_coherence, 72) == pytest.approx(
        1, abs=1e-9
    )
    assert quality.background_coherence(skin, background_coherence, 72) == pytest.approx(
        1.27, abs=0.05
    )  # Σ b·s / Σ s²
    assert quality.background_coherence(skin, quiet, 72) < 0.1
    assert quality.background_coherence(coloured(0, 0, 0), coloured(0, 0, 0), 72) == 0


def test_background_out_of_phase_with_the_skin_is_not_coherent() -> None:
    skin = coloured(0.004, 0.01, 0.007)
    late = RgbTrace(
        np.roll(coloured(0.01, 0.01, 0.01).values, round(30 * 60 / 72 / 4), axis=0), 30, 0, skin.valid
    )
    assert quality.background_coherence(skin, late, 72) < 0.15
    assert quality.in_phase(skin, late, 72) < 0.15
    assert quality.in_phase(skin, skin, 72) == pytest.approx(1)
    assert quality.in_phase(skin, coloured(0, 0, 0), 72) == 0


def test_red_over_green_separates_blood_from_light() -> None:
    assert quality.red_green_ratio(coloured(0.004, 0.01, 0.007), 72) == pytest.approx(0.4, abs=0.01)
    assert quality.red_green_ratio(coloured(0.01, 0.01, 0.01), 72) == pytest.approx(1, abs=0.01)
    assert quality.red_green_ratio(coloured(0.01, 1e-5, 0), 72) == 2
    assert quality.red_green_ratio(coloured(-0.01, 0.01, 0), 72) == pytest.approx(-1, abs=0.01)
    assert quality.red_green_ratio(coloured(0, 0, 0, level=0.0), 72) == 1


def test_grey_has_no_colour() -> None:
    assert quality.colourfulness(np.array([90.0, 90.0, 90.0])) == 0
    assert quality.colourfulness(np.array([180.0, 120.0, 90.0])) > 0.5
