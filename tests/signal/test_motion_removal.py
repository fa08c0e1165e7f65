"""Motion removal removes walking and keeps the pulse; small motion changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal import rate
from phase_rppg.signal.motion_removal import RIDGE_FACE_WIDTHS, remove_motion
from phase_rppg.types import Waveform

FPS = 30.0
T_S = np.arange(int(10 * FPS)) / FPS
BEAT = np.cos(2 * np.pi * 1.2 * T_S)
STEPS = 2 * np.pi * 1.9 * T_S


def wave(values: np.ndarray, valid: np.ndarray | None = None) -> Waveform:
    return Waveform(values, FPS, 0.0, np.ones(len(values), bool) if valid is None else valid)


def path(width: float) -> np.ndarray:
    """A face that bobs with each step and sways with every other one."""
    return width * np.stack([np.sin(0.5 * STEPS + 1), np.sin(STEPS)], 1)


@pytest.mark.parametrize("lag", [0.0, 0.7, 2.0])
def test_walking_stronger_than_the_pulse_is_removed(lag: float) -> None:
    """The shading follows the steps with any delay."""
    seen = wave(BEAT + 3 * np.sin(STEPS + lag))
    assert rate.spectral_bpm(seen) == pytest.approx(114, abs=2)
    assert rate.spectral_bpm(remove_motion(seen, path(0.03))) == pytest.approx(72, abs=1)


@pytest.mark.parametrize("axis", [0, 1])
def test_shading_at_twice_the_frequency_of_a_turning_head_is_removed(axis: int) -> None:
    """A turn at 0.5 Hz is below the band of heart rates, but its square is at 60 bpm."""
    turning = 0.05 * np.sin(2 * np.pi * 0.5 * T_S + 0.4)
    centre = np.zeros((len(T_S), 2))
    centre[:, axis] = 0.3 + turning
    seen = wave(BEAT + 3 * (turning / 0.05) ** 2)
    assert rate.spectral_bpm(seen) == pytest.approx(60, abs=2)
    assert rate.spectral_bpm(remove_motion(seen, centre)) == pytest.approx(72, abs=1)


def test_walking_does_not_change_the_amplitude_of_the_pulse() -> None:
    found = remove_motion(wave(BEAT), path(0.03))
    assert float(found.values @ BEAT) / float(BEAT @ BEAT) > 0.95


def test_small_motion_with_each_beat_keeps_the_pulse() -> None:
    """A heartbeat moves the head by far less than RIDGE_FACE_WIDTHS."""
    found = remove_motion(wave(BEAT), np.stack([0 * BEAT, 0.1 * RIDGE_FACE_WIDTHS * BEAT], 1))
    assert float(found.values @ BEAT) / float(BEAT @ BEAT) > 0.95


def test_invalid_samples_are_ignored() -> None:
    valid = (T_S < 4) | (T_S > 5)
    centre = path(0.03)
    centre[~valid] = 7.0
    values = np.where(valid, BEAT + 3 * np.sin(STEPS), 0.0)
    found = remove_motion(wave(values, valid), centre)
    assert rate.spectral_bpm(found) == pytest.approx(72, abs=1.5)
    assert found.valid is valid


def test_a_short_or_slowly_sampled_waveform_is_unchanged() -> None:
    short = Waveform(BEAT[:30], FPS, 0.0, np.ones(30, bool))
    assert remove_motion(short, path(0.03)[:30]) is short
    slow = Waveform(BEAT[:20], 1.0, 0.0, np.ones(20, bool))
    assert remove_motion(slow, path(0.03)[:20]) is slow
