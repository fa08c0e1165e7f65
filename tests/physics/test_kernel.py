"""Oscillators are identified in a filter that consists of them, but not in noise."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.errors import ArgumentError
from phase_rppg.physics import Oscillator
from phase_rppg.physics.kernel import EPS, components, effective_frames, nearest_oscillator

FPS = 30.0


def late_oscillator(alpha: float, omega: float, delay: int, length: int = 60) -> np.ndarray:
    return np.concatenate([np.zeros(delay), Oscillator(alpha, omega, 1 / FPS).kernel(length - delay)])


@pytest.mark.parametrize(("alpha", "omega", "delay"), [(5.0, 9.0, 0), (3.0, 15.0, 6)])
def test_an_oscillator_is_recognised_with_its_delay(alpha: float, omega: float, delay: int) -> None:
    fit, found = nearest_oscillator(100 * late_oscillator(alpha, omega, delay), FPS)
    assert fit.explained > 0.999
    assert fit.alpha == pytest.approx(alpha, rel=0.02)
    assert fit.omega == pytest.approx(omega, rel=0.02)
    assert found in (delay, delay - 1)  # a push one frame later says the same


def test_noise_is_not_an_oscillator() -> None:
    noise = np.random.default_rng(0).normal(size=60)
    assert nearest_oscillator(noise, FPS)[0].explained < 0.3


def test_components_are_the_singular_vectors_largest_first() -> None:
    rng = np.random.default_rng(1)
    strong, weak = late_oscillator(5, 9, 0), late_oscillator(3, 18, 3)
    table = 3 * np.outer(rng.normal(size=12), strong) + 0.3 * np.outer(rng.normal(size=12), weak)
    first, second = components(table, FPS, count=5)[:2]
    assert first.share > 0.9 > second.share
    assert first.share + second.share == pytest.approx(1.0)
    np.testing.assert_allclose(
        np.outer(first.features, first.kernel) + np.outer(second.features, second.kernel), table, atol=1e-9
    )
    assert first.explained > 0.95
    assert first.kernel[np.argmax(np.abs(first.kernel))] > 0


def test_the_lengths_hold_what_they_promise() -> None:
    (one,) = components(late_oscillator(5, 9, 4)[None], FPS)
    weight = np.abs(one.kernel)
    assert weight[one.effective_frames :].sum() <= EPS * weight.sum()
    assert weight[one.effective_frames - 1 :].sum() > EPS * weight.sum()
    assert abs(one.needed_frames - one.effective_frames) <= 3  # the fit is the kernel
    assert one.bound_frames >= one.needed_frames  # Proposition 2 is on the safe side


def test_a_single_tap_is_one_frame_long() -> None:
    assert effective_frames(np.array([0.0, 2.0, 0.0])) == 2


@pytest.mark.parametrize("bad", [np.zeros((3, 20)), np.ones(20), np.ones((3, 4)), np.full((2, 20), np.nan)])
def test_what_is_no_filter_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(ArgumentError, match="jacobian"):
        components(bad, FPS)


def test_a_filter_without_memory_says_so() -> None:
    """Two taps fit a strongly damped oscillator, so that R² alone would suggest a pulse filter."""
    taps = np.zeros(40)
    taps[:2] = 1.0, 0.5
    (one,) = components(taps[None], FPS)
    assert one.explained > 0.95
    assert one.memory == 0.0
    (ringing,) = components(late_oscillator(4, 12, 5)[None], FPS)
    assert ringing.memory > 0.95
    assert ringing.explained_memory > 0.99
