"""Closed forms of the rate filter: likelihood of a window, and prediction between windows."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal import constants, rate, rate_tracking
from phase_rppg.signal.rate_tracking import GRID_BPM, RateModel, RateTracker, log_evidence

FPS = 30.0
T_S = np.arange(300) / FPS
NOTHING = rate.spectrum(np.zeros(300), FPS)
CERTAIN = RateModel(sharpness=1e5, jump=0.0, halving=0.0)  # one window leaves a single rate


def line(bpm: float) -> rate.Spectrum:
    return rate.spectrum(np.cos(2 * np.pi * bpm / 60 * T_S), FPS)


def laplace(scale_bpm: float, at: float) -> np.ndarray:
    """The Laplace distribution on the grid of rates."""
    mass = np.exp(-np.abs(GRID_BPM - at) / scale_bpm)
    return mass / mass.sum()


def near(posterior: np.ndarray, bpm: float, reach_bpm: float = 5.0) -> float:
    return float(posterior[np.abs(GRID_BPM - bpm) <= reach_bpm].sum())


def test_a_window_with_one_clear_line_leaves_that_rate() -> None:
    found = RateTracker(CERTAIN).update([line(100)], 10.0)
    assert found.bpm == pytest.approx(100, abs=1)
    assert found.support == pytest.approx(1)
    assert found.sigma_bpm == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("step_s", [0.25, 1.0, 4.0])
def test_belief_spreads_by_a_laplace_kernel_that_grows_with_the_root_of_time(step_s: float) -> None:
    tracker = RateTracker(CERTAIN)
    centre = round(tracker.update([line(100)], 10.0).bpm)
    found = tracker.update([NOTHING], 10.0 + step_s)
    expected = laplace(4.0 * np.sqrt(step_s), centre)
    assert found.bpm == pytest.approx(centre, abs=1e-6)
    assert tracker.support(centre) == pytest.approx(near(expected, centre), rel=1e-6)
    assert found.support == pytest.approx(near(expected, centre), rel=0.08)  # rounding may lose a grid point
    around = np.abs(GRID_BPM - centre) <= 10
    spread = np.sqrt(expected[around] @ (GRID_BPM[around] - centre) ** 2 / expected[around].sum())
    assert found.sigma_bpm == pytest.approx(spread, rel=0.05)
    assert tracker.support(centre + 7) == pytest.approx(near(expected, centre + 7), rel=1e-6)


def test_the_jump_probability_adds_a_uniform_part() -> None:
    model = RateModel(sharpness=1e5, jump=0.5, halving=0.0)
    tracker = RateTracker(model)
    centre = round(tracker.update([line(100)], 10.0).bpm)
    tracker.update([NOTHING], 12.0)
    fresh = 1 - 0.5**2
    expected = (1 - fresh) * near(laplace(4.0 * np.sqrt(2), centre), centre) + fresh * 11 / len(GRID_BPM)
    assert tracker.support(centre) == pytest.approx(expected, rel=1e-6)


def test_overlapping_windows_count_by_their_new_data() -> None:
    """Of windows one second apart a filter with ten seconds of memory keeps a tenth."""
    model = RateModel(sharpness=3.0, drift_bpm=0.0, jump=0.0, halving=0.0)
    both = rate.spectrum(1.2 * np.cos(2 * np.pi * 1.2 * T_S) + np.cos(2 * np.pi * 2.0 * T_S), FPS)
    log_like = log_evidence(both, model)
    tracker = RateTracker(model)
    for step in range(6):
        tracker.update([both], 10.0 + step)
    tracker.update([NOTHING], 15.0)
    weight = 1 + 5 * 0.1
    expected = np.exp(weight * log_like)
    expected /= expected.sum()
    for bpm in (72, 120):
        assert tracker.support(bpm) == pytest.approx(near(expected, bpm), rel=0.05)


@pytest.mark.parametrize("step_s", [10.0, 25.0])
def test_a_window_without_overlap_counts_in_full(step_s: float) -> None:
    model = RateModel(sharpness=3.0, drift_bpm=0.0, jump=0.0, halving=0.0)
    spec = line(90)
    tracker = RateTracker(model)
    tracker.update([spec], 10.0)
    tracker.update([spec], 10.0 + step_s)
    tracker.update([NOTHING], 10.0 + step_s)
    expected = np.exp(2 * log_evidence(spec, model))
    assert tracker.support(90) == pytest.approx(near(expected / expected.sum(), 90), rel=0.03)


def test_the_window_itself_counts_in_full_for_its_own_reading() -> None:
    """The reading after a second window is prior belief times the whole evidence of that window."""
    model = RateModel(sharpness=3.0, drift_bpm=0.0, jump=0.0, halving=0.0)
    tracker = RateTracker(model)
    tracker.update([NOTHING], 10.0)
    found = tracker.update([line(90)], 11.0)
    assert found.support == pytest.approx(RateTracker(model).update([line(90)], 11.0).support, rel=0.02)


def test_time_that_runs_backwards_spreads_nothing() -> None:
    tracker = RateTracker(CERTAIN)
    centre = round(tracker.update([line(100)], 10.0).bpm)
    assert tracker.update([NOTHING], 5.0).bpm == pytest.approx(centre, abs=1e-6)
    assert tracker.support(centre) == pytest.approx(1, abs=0.02)


def test_a_window_without_power_has_a_uniform_likelihood() -> None:
    np.testing.assert_array_equal(log_evidence(NOTHING, RateModel()), 0)
    tracker = RateTracker()
    tracker.update([NOTHING], 10.0)
    for bpm in (60, 100, 180):
        assert tracker.support(bpm) == pytest.approx(11 / len(GRID_BPM))


def test_the_evidence_of_a_clear_line_is_about_its_share_of_the_band() -> None:
    """Of two equal lines each has half; the shape of a pure tone costs 1 / 1.16, the prior its own part."""
    model = RateModel(sharpness=1.0)
    x = np.cos(2 * np.pi * 1.5 * np.arange(1800) / FPS)
    alone = log_evidence(rate.spectrum(x, FPS), model)
    both = log_evidence(rate.spectrum(x + np.cos(2 * np.pi * 2.5 * np.arange(1800) / FPS), FPS), model)
    at = int(np.argmin(np.abs(GRID_BPM - 90)))
    assert alone[at] == pytest.approx(1 / 1.16, rel=0.02)
    assert both[at] == pytest.approx(alone[at] / 2, rel=0.02)
    doubled = log_evidence(rate.spectrum(x, FPS), RateModel(sharpness=2.0))
    np.testing.assert_allclose(doubled, 2 * alone)


def test_the_evidence_of_one_rate_is_limited() -> None:
    hz = np.arange(0, 15, 1 / 120)
    power = np.where(np.isclose(hz, 1.5), 1.0, 0.0)
    spiked = rate.Spectrum(hz, np.sqrt(power) + 0j, power, 10.0)
    assert log_evidence(spiked, RateModel(sharpness=1.0)).max() == pytest.approx(1.5)


@pytest.mark.parametrize("bpm", [41.0, 199.0])
def test_rates_at_the_ends_of_the_band_are_followed(bpm: float) -> None:
    found = RateTracker().update([line(bpm)], 10.0)
    assert found.bpm == pytest.approx(bpm, abs=4)
    assert 60 * constants.BAND_HZ[0] <= found.bpm <= 60 * constants.BAND_HZ[1]


def test_a_tracker_that_was_reset_is_a_new_one() -> None:
    tracker = RateTracker()
    assert tracker.support(100) == 0
    tracker.update([line(150)], 10.0)
    tracker.reset()
    assert tracker.support(150) == 0
    assert tracker.update([line(70)], 20.0) == RateTracker().update([line(70)], 20.0)


def test_support_never_exceeds_one_by_rounding() -> None:
    for bpm in range(50, 190, 2):
        tracker = RateTracker(RateModel(sharpness=300.0))
        found = tracker.update([line(bpm)], 10.0)
        assert found.support <= 1
        assert all(tracker.support(found.bpm + offset) <= 1 for offset in (-2, -1, 0, 1, 2))


def test_support_never_exceeds_one() -> None:
    tracker = RateTracker(CERTAIN)
    found = tracker.update([line(100)], 10.0)
    assert found.support <= 1
    assert tracker.support(found.bpm) <= 1
    assert tracker.support(found.bpm) == pytest.approx(1)
    assert tracker.support(150) == pytest.approx(0, abs=1e-9)
    assert rate_tracking.SUPPORT_BPM == 5.0  # "within 5 bpm", as for p_ok


def test_a_part_of_the_belief_moves_to_half_the_rate() -> None:
    """The tracked line may be the second harmonic of a rate that fell."""
    model = RateModel(sharpness=1e5, jump=0.0, halving=0.3, drift_bpm=0.0)
    tracker = RateTracker(model)
    tracker.update([line(100)], 10.0)
    tracker.update([NOTHING], 12.0)
    assert tracker.support(50) == pytest.approx(1 - 0.7**2, rel=0.02)
    assert tracker.support(100) == pytest.approx(0.7**2, rel=0.02)


def test_a_rate_that_halves_is_followed_although_its_harmonic_continues() -> None:
    def beats(bpm: float) -> rate.Spectrum:
        """Lines at multiples of a rate; the prior and the past favour the second one."""
        phase = 2 * np.pi * bpm / 60 * T_S
        return rate.spectrum(sum(a * np.cos(k * phase) for k, a in ((1, 1.0), (2, 0.9), (3, 0.6))), FPS)

    tracker = RateTracker()
    for end_s in range(10, 30):
        assert tracker.update([line(84)], end_s).bpm == pytest.approx(84, abs=2)
    found = [tracker.update([beats(42)], end_s).bpm for end_s in range(30, 42)]
    assert found[-1] == pytest.approx(42, abs=2)
