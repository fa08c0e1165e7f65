"""The rate tracker bridges windows without a peak, follows changes, and never revises earlier results."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal import rate, rate_tracking

FPS = 30.0


def windows(
    x: np.ndarray, seconds: float = 10.0, step_s: float = 1.0
) -> tuple[list[rate.Spectrum], list[float]]:
    n, step = int(seconds * FPS), int(step_s * FPS)
    ends = range(n, len(x) + 1, step)
    return [rate.spectrum(x[e - n : e], FPS) for e in ends], [e / FPS for e in ends]


def sweep(bpm: np.ndarray) -> np.ndarray:
    angle = 2 * np.pi * np.cumsum(bpm / 60) / FPS
    return np.cos(angle) + 0.3 * np.cos(2 * angle)


def test_windows_without_a_peak_get_the_rate_of_their_neighbours() -> None:
    rng = np.random.default_rng(3)
    t = np.arange(int(60 * FPS)) / FPS
    x = sweep(np.full(len(t), 75.0)) + 0.5 * rng.normal(size=len(t))
    storm = (t > 28) & (t < 34)
    x[storm] += 2.5 * np.cos(2 * np.pi * 2.4 * t[storm])
    spectra, ends = windows(x)
    alone = [60 * s.hz[s.band][np.argmax(s.power[s.band])] for s in spectra]
    assert max(abs(b - 75) for b in alone) > 30
    assert max(abs(w.bpm - 75) for w in _causal(spectra, ends)) < 4


@pytest.mark.parametrize("ratio", [2.0, 0.5])
def test_a_single_peak_at_the_double_or_half_rate_is_rejected(ratio: float) -> None:
    rng = np.random.default_rng(6)
    t = np.arange(int(60 * FPS)) / FPS
    x = sweep(np.full(len(t), 88.0)) + 0.4 * rng.normal(size=len(t))
    stray = (t > 26) & (t < 38)
    x[stray] += 1.4 * np.cos(2 * np.pi * ratio * 88 / 60 * t[stray] + 1.0)
    spectra, ends = windows(x)
    strongest = [60 * s.hz[s.band][np.argmax(s.power[s.band])] for s in spectra]
    assert any(abs(bpm - 88 * ratio) < 3 for bpm in strongest)
    assert max(abs(w.bpm - 88) for w in _causal(spectra, ends)) < 4


def test_a_rate_that_rises_is_followed() -> None:
    t = np.arange(int(90 * FPS)) / FPS
    bpm = np.interp(t, [0, 20, 60, 90], [65, 65, 110, 110])
    spectra, ends = windows(sweep(bpm) + 0.3 * np.random.default_rng(0).normal(size=len(t)))
    truth = [bpm[int((e - 10) * FPS) : int(e * FPS)].mean() for e in ends]
    assert max(abs(w.bpm - b) for w, b in zip(_causal(spectra, ends), truth, strict=True)) < 5


def test_the_past_is_never_revised() -> None:
    x = np.random.default_rng(1).normal(size=int(40 * FPS))
    other = x.copy()
    other[int(25 * FPS) :] += 3 * sweep(np.full(int(15 * FPS), 90.0))
    first, ends = windows(x)
    second, _ = windows(other)
    early = [i for i, e in enumerate(ends) if e <= 25]
    assert [_causal(first, ends)[i] for i in early] == [_causal(second, ends)[i] for i in early]


def test_spectra_count_by_their_weights() -> None:
    t = np.arange(int(10 * FPS)) / FPS
    slow, fast = (rate.spectrum(np.cos(2 * np.pi * hz * t), FPS) for hz in (1.2, 2.0))
    for weights, bpm in (([1.0, 0.5], 72), ([0.5, 1.0], 120), ([1.0, 0.0], 72)):
        assert rate_tracking.RateTracker().update([slow, fast], 10.0, weights).bpm == pytest.approx(
            bpm, abs=2
        )
    assert rate_tracking.RateTracker().update([slow], 10.0, [1.0]) == rate_tracking.RateTracker().update(
        [slow], 10.0
    )


def test_a_clear_line_is_supported_and_noise_is_not() -> None:
    rng = np.random.default_rng(2)
    clear, ends = windows(sweep(np.full(1200, 80.0)))
    noise, _ = windows(rng.normal(size=1200))
    assert min(w.support for w in _causal(clear, ends)) > 0.9
    assert np.mean([w.support for w in _causal(noise, ends)]) < 0.6


def _causal(spectra: list[rate.Spectrum], ends: list[float]) -> list[rate_tracking.TrackedRate]:
    tracker = rate_tracking.RateTracker()
    return [tracker.update([s], e) for s, e in zip(spectra, ends, strict=True)]


def test_a_rate_in_two_spectra_outweighs_a_stronger_peak_in_one() -> None:
    """Each spectrum has the pulse at 72 and a stronger peak of its own; only the pulse is in both."""
    rng = np.random.default_rng(4)
    t = np.arange(int(10 * FPS)) / FPS
    views = [
        np.cos(2 * np.pi * 1.2 * t) + 1.2 * np.cos(2 * np.pi * hz * t + 1) + 0.3 * rng.normal(size=len(t))
        for hz in (1.7, 2.1)
    ]
    spectra = [rate.spectrum(x, FPS) for x in views]
    alone = [rate_tracking.RateTracker().update([spec], 10.0).bpm for spec in spectra]
    assert min(abs(bpm - 72) for bpm in alone) > 20
    assert rate_tracking.RateTracker().update(spectra, 10.0).bpm == pytest.approx(72, abs=2)
