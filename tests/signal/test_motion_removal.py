"""Laws of taking motion out: steps go, the beat stays, and a face that hardly moves is left alone."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal import rate
from phase_rppg.signal.motion_removal import FAINT, without_motion
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
def test_steps_that_drown_the_beat_are_taken_out(lag: float) -> None:
    """The light follows the steps with any delay."""
    seen = wave(BEAT + 3 * np.sin(STEPS + lag))
    assert rate.spectral_bpm(seen) == pytest.approx(114, abs=2)
    assert rate.spectral_bpm(without_motion(seen, path(0.03))) == pytest.approx(72, abs=1)


@pytest.mark.parametrize("axis", [0, 1])
def test_light_that_a_turning_head_passes_twice_is_taken_out(axis: int) -> None:
    """To and fro at 0.5 Hz is below every heart, but its square is at 60 bpm."""
    turning = 0.05 * np.sin(2 * np.pi * 0.5 * T_S + 0.4)
    centre = np.zeros((len(T_S), 2))
    centre[:, axis] = 0.3 + turning
    seen = wave(BEAT + 3 * (turning / 0.05) ** 2)
    assert rate.spectral_bpm(seen) == pytest.approx(60, abs=2)
    assert rate.spectral_bpm(without_motion(seen, centre)) == pytest.approx(72, abs=1)


def test_the_beat_of_a_walker_keeps_its_size() -> None:
    found = without_motion(wave(BEAT), path(0.03))
    assert float(found.values @ BEAT) / float(BEAT @ BEAT) > 0.95


def test_a_path_that_nods_with_the_beat_takes_nothing_away() -> None:
    """A beat nudges the head by far less than FAINT: that must not cost the pulse."""
    found = without_motion(wave(BEAT), np.stack([0 * BEAT, 0.1 * FAINT * BEAT], 1))
    assert float(found.values @ BEAT) / float(BEAT @ BEAT) > 0.95


def test_what_was_not_seen_does_not_count() -> None:
    valid = (T_S < 4) | (T_S > 5)
    centre = path(0.03)
    centre[~valid] = 7.0
    values = np.where(valid, BEAT + 3 * np.sin(STEPS), 0.0)
    found = without_motion(wave(values, valid), centre)
    assert rate.spectral_bpm(found) == pytest.approx(72, abs=1.5)
    assert found.valid is valid


def test_too_short_or_too_slow_a_wave_comes_back_as_it_is() -> None:
    short = Waveform(BEAT[:30], FPS, 0.0, np.ones(30, bool))
    assert without_motion(short, path(0.03)[:30]) is short
    slow = Waveform(BEAT[:20], 1.0, 0.0, np.ones(20, bool))
    assert without_motion(slow, path(0.03)[:20]) is slow
