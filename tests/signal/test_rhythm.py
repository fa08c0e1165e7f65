"""The rhythm of a window: mean rate of irregular beats, and what separates them from noise."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.physics.pulse import PulseConfig, pulse_wave
from phase_rppg.signal import rate
from phase_rppg.signal.rhythm import rhythm
from phase_rppg.types import Waveform

FPS, SECONDS = 30.0, 10.0


def wave(seed: int, noise: float = 0.0, **settings: float) -> tuple[Waveform, float]:
    """Return a pulse wave and its true mean rate."""
    rng = np.random.default_rng(seed)
    pulse = pulse_wave(PulseConfig(rsa=0.0, hrv_s=0.0, drift_bpm=0.0, **settings), SECONDS, FPS, rng)
    values = pulse.values + noise * rng.standard_normal(len(pulse.values))
    return Waveform(values, FPS, 2.0, np.ones(len(values), bool)), float(pulse.bpm.mean())


@pytest.mark.parametrize("bpm", [50.0, 72.0, 110.0, 150.0])
def test_a_regular_pulse_has_its_rate_and_almost_no_spread(bpm: float) -> None:
    found = rhythm(wave(0, bpm=bpm)[0], bpm)
    assert found is not None
    assert found.bpm == pytest.approx(bpm, abs=1.5)
    assert found.spread < 0.05
    assert found.match > 0.95


def test_irregular_beats_give_their_mean_rate_where_the_spectral_peak_does_not() -> None:
    of_beats, of_line = [], []
    for seed in range(20):
        signal, truth = wave(seed, bpm=75.0, irregular=0.2)
        line_bpm = rate.spectral_bpm(signal)
        found = rhythm(signal, line_bpm)
        assert found is not None
        of_beats.append(abs(found.bpm - truth))
        of_line.append(abs(line_bpm - truth))
        assert found.spread > 0.08
    assert np.mean(of_beats) < 2.5 < 4 < np.mean(of_line)


def test_beats_of_noise_are_not_alike() -> None:
    rng = np.random.default_rng(3)
    found = [
        rhythm(Waveform(rng.standard_normal(300), FPS, 0.0, np.ones(300, bool)), 80.0) for _ in range(20)
    ]
    assert np.median([one.match for one in found if one is not None]) < 0.95


def test_too_few_beats_have_no_rhythm() -> None:
    signal, _ = wave(0, bpm=60.0)
    short = Waveform(signal.values[:90], FPS, 0.0, signal.valid[:90])
    assert rhythm(short, 60.0) is None
    assert rhythm(Waveform(signal.values, FPS, 0.0, np.zeros(300, bool)), 60.0) is None
    assert rhythm(Waveform(np.zeros(300), FPS, 0.0, np.ones(300, bool)), 60.0) is None


def test_the_time_of_the_window_does_not_matter() -> None:
    signal, _ = wave(1, bpm=75.0, irregular=0.2)
    later = Waveform(signal.values, FPS, 1002.0, signal.valid)
    first, second = rhythm(signal, 75.0), rhythm(later, 75.0)
    assert first is not None
    assert second is not None
    assert second.bpm == pytest.approx(first.bpm, rel=1e-9)
    assert second.match == pytest.approx(first.match, rel=1e-9)
