"""The timing error of beats follows the formula, and no variability is reported from it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from phase_rppg.physics.pulse import PulseConfig, pulse_wave
from phase_rppg.signal import hrv, rate
from phase_rppg.signal.beat_jitter import beat_jitter_s
from phase_rppg.types import FloatArray, Waveform

FPS = 30.0


def heart(rng: np.random.Generator, seconds: float = 75.0, **config: float) -> tuple[Waveform, FloatArray]:
    """A pulse wave and the times of its beats."""
    pulse = pulse_wave(PulseConfig(**config).with_random_shape(rng), seconds, FPS, rng)
    return Waveform(pulse.values, FPS, 0.0, np.ones(len(pulse.values), bool)), pulse.beat_times_s


def noisy(wave: Waveform, level: float, rng: np.random.Generator, slope: float = 0.0) -> Waveform:
    """The wave with noise whose power falls with frequency to that slope."""
    hz = np.fft.rfftfreq(len(wave.values), 1 / FPS)
    noise = np.fft.irfft(
        np.fft.rfft(rng.normal(size=len(wave.values))) / np.maximum(hz, 0.3) ** (slope / 2), len(wave.values)
    )
    return Waveform(wave.values + level * noise, FPS, 0.0, wave.valid)


@pytest.mark.parametrize("bpm", [55.0, 72.0, 110.0])
@pytest.mark.parametrize("level", [0.05, 0.1])
def test_the_jitter_equals_the_spread_of_beats_in_noise(bpm: float, level: float) -> None:
    rng = np.random.default_rng(0)
    true_s, said_s = [], []
    for _ in range(8):
        wave, _ = heart(rng, bpm=bpm, rsa=0.01, hrv_s=0.005)
        clean, disturbed = rate.find_beats(wave, bpm), rate.find_beats(found := noisy(wave, level, rng), bpm)
        away_s = disturbed[:, None] - clean[None]
        true_s.append(np.abs(away_s).min(1))
        said_s.append(beat_jitter_s(found, disturbed))
    spread_s = 1.4826 * float(np.median(np.concatenate(true_s)))
    assert 0.9 < float(np.median(said_s)) / spread_s < 1.4  # an overestimate is preferred


def test_reported_variability_is_not_noise() -> None:
    """For many rates and noise levels, reported values are right, and most clear ones are reported."""
    rng = np.random.default_rng(1)
    by_noise: dict[str, list[float]] = {"rmssd_ms": [], "sdnn_ms": []}
    by_heart: dict[str, list[float]] = {"rmssd_ms": [], "sdnn_ms": []}
    clear, unlimited = [], []
    for trial in range(80):
        bpm = rng.uniform(50, 120)
        clean, true_s = heart(rng, bpm=bpm, rsa=rng.uniform(0.005, 0.07), hrv_s=rng.uniform(0.003, 0.04))
        wave = noisy(clean, 10 ** rng.uniform(-2.5, -0.3), rng, slope=trial % 2)
        beats_s = rate.find_beats(wave, bpm)
        shown = hrv.hrv(beats_s, beat_jitter_s(wave, beats_s))
        plain, true, seen = (hrv.hrv(times) for times in (beats_s, true_s, rate.find_beats(clean, bpm)))
        assert true is not None
        assert seen is not None
        for name in by_noise:
            if shown is not None and (number := getattr(shown, name)) is not None:
                by_noise[name].append(number / getattr(seen, name))
                by_heart[name].append(number / getattr(true, name))
        assert seen.rmssd_ms is not None
        if plain is not None and plain.rmssd_ms is not None:
            unlimited.append(plain.rmssd_ms / seen.rmssd_ms)
            if unlimited[-1] < 1.2:
                clear.append(shown is not None and shown.rmssd_ms is not None)
    for name, ratios in by_noise.items():
        assert len(ratios) > 20
        assert np.percentile(ratios, 5) > 0.9
        assert np.percentile(ratios, 95) < 1.25
        assert np.median(by_heart[name]) == pytest.approx(1, abs=0.1)
    assert np.mean(clear) > 0.6
    assert np.percentile(unlimited, 90) > 2  # the error without the limit


def test_noise_alone_has_no_variability() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        count = round(90 * FPS)
        wave = noisy(Waveform(np.zeros(count), FPS, 0.0, np.ones(count, bool)), 1.0, rng)
        beats_s = rate.find_beats(wave, 72.0)
        found = hrv.hrv(beats_s, beat_jitter_s(wave, beats_s))
        assert found is None or (found.rmssd_ms, found.sdnn_ms, found.pnn50) == (None, None, None)


def test_the_jitter_of_invalid_samples_is_infinite() -> None:
    wave, beats_s = heart(np.random.default_rng(3), 30.0)
    unseen = Waveform(wave.values, FPS, 0.0, np.zeros(len(wave.values), bool))
    assert beat_jitter_s(unseen, beats_s) == math.inf
    assert beat_jitter_s(wave, beats_s[:0]) == math.inf
    assert beat_jitter_s(Waveform(np.zeros(900), FPS, 0.0, np.ones(900, bool)), beats_s) == math.inf
