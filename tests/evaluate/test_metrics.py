"""Error metrics, compared with hand-computed values, SciPy and NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import signal, stats

from phase_rppg.errors import ArgumentError, UnknownNameError
from phase_rppg.evaluate import metrics
from phase_rppg.types import Waveform

# Errors 1, −2, 3, 0 on truths 60, 80, 100, 50.
TRUTH = np.array([60.0, 80.0, 100.0, 50.0])
ESTIMATE = np.array([61.0, 78.0, 103.0, 50.0])
rates = hnp.arrays(np.float64, st.integers(3, 40), elements=st.floats(40, 200))


def wave(values: np.ndarray, fps: float = 30.0) -> Waveform:
    return Waveform(values, fps, 0.0, np.ones(len(values), bool))


def tone(bpm: float, seconds: float = 20.0, fps: float = 30.0) -> np.ndarray:
    return np.sin(2 * np.pi * bpm / 60 * np.arange(round(seconds * fps)) / fps)


def test_hand_computed_errors() -> None:
    assert metrics.mae(ESTIMATE, TRUTH).value == pytest.approx(6 / 4)
    # std of 1, 2, 3, 0 is √1.25; over √4
    assert metrics.mae(ESTIMATE, TRUTH).error == pytest.approx(math.sqrt(1.25) / 2)
    assert metrics.rmse(ESTIMATE, TRUTH).value == pytest.approx(math.sqrt(14 / 4))
    # squares 1, 4, 9, 0: mean 3.5, variance 98/4 − 12.25 = 12.25, std 3.5; √(3.5 / 2)
    assert metrics.rmse(ESTIMATE, TRUTH).error == pytest.approx(math.sqrt(3.5 / 2))
    shares = [100 / 60, 200 / 80, 300 / 100, 0]
    assert metrics.mape(ESTIMATE, TRUTH).value == pytest.approx(np.mean(shares))
    assert metrics.mape(ESTIMATE, TRUTH).error == pytest.approx(np.std(shares) / 2)
    assert metrics.within(ESTIMATE, TRUTH, bpm=2).value == 0.75
    assert metrics.within(ESTIMATE, TRUTH, bpm=2).error == pytest.approx(math.sqrt(0.75 * 0.25 / 4))


@given(rates, st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_pearson_is_scipys(truth: np.ndarray, seed: int) -> None:
    estimate = truth + np.random.default_rng(seed).normal(0, 10, len(truth))
    score = metrics.pearson(estimate, truth)
    if np.ptp(truth) < 1e-3:
        return
    assert score is not None
    expected = stats.pearsonr(estimate, truth).statistic
    assert score.value == pytest.approx(expected, abs=1e-9)
    assert score.error == pytest.approx(math.sqrt((1 - expected**2) / (len(truth) - 2)), abs=1e-6)


@given(rates)
@settings(deadline=None, max_examples=20)
def test_perfect_readings_have_no_error(truth: np.ndarray) -> None:
    summary = metrics.summarise(truth, truth)
    assert (summary.mae.value, summary.rmse.value, summary.mape.value) == (0, 0, 0)
    assert summary.within == metrics.Score(1.0, 0.0)
    assert summary.count == len(truth)


@given(rates, st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=20)
def test_the_mean_is_never_above_the_root_mean_square(truth: np.ndarray, seed: int) -> None:
    rng = np.random.default_rng(seed)
    estimate = truth + rng.normal(0, 10, len(truth))
    assert metrics.mae(estimate, truth).value <= metrics.rmse(estimate, truth).value * (1 + 1e-12)
    order = rng.permutation(len(truth))
    shuffled = metrics.summarise(estimate[order], truth[order])
    assert shuffled.mae.value == pytest.approx(metrics.mae(estimate, truth).value)


def test_an_undefined_correlation_is_none() -> None:
    assert metrics.pearson([1.0, 2.0], [1.0, 2.0]) is None
    assert metrics.pearson([70.0, 71.0, 72.0], [70.0, 70.0, 70.0]) is None


@given(st.integers(0, 2**32 - 1), st.integers(0, 199), st.sampled_from([-2.0, 3.0]))
@settings(deadline=None, max_examples=20)
def test_macc_does_not_depend_on_delay_scale_and_sign(seed: int, lag: int, scale: float) -> None:
    values = np.random.default_rng(seed).standard_normal(200)
    assert metrics.macc(scale * np.roll(values, lag) + 5, values) == pytest.approx(1)


@given(st.integers(0, 2**32 - 1), st.integers(2, 40))
@settings(deadline=None, max_examples=30)
def test_macc_is_the_best_of_all_circular_correlations(seed: int, count: int) -> None:
    left, right = np.random.default_rng(seed).standard_normal((2, count))
    every = [abs(np.corrcoef(np.roll(left, lag), right)[0, 1]) for lag in range(count)]
    assert metrics.macc(left, right) == pytest.approx(max(every))


def test_macc_of_a_constant_waveform_is_zero() -> None:
    assert metrics.macc(np.full(100, 0.1), tone(72)[:100]) == 0


def test_the_toolbox_snr_is_the_formula_on_scipys_periodogram() -> None:
    rng = np.random.default_rng(0)
    values = tone(75) + 0.4 * tone(150) + rng.standard_normal(600)
    hz, power = signal.periodogram(values, fs=30, nfft=1024, detrend=False, scaling="spectrum")
    near = (np.abs(hz - 1.25) <= 0.1) | (np.abs(hz - 2.5) <= 0.1)
    rest = (hz >= 0.6) & (hz <= 3.3) & ~near
    expected = 10 * np.log10(power[near].sum() / power[rest].sum())
    assert metrics.toolbox_snr_db(values, 30, 75) == pytest.approx(expected, abs=1e-6)


def test_snr_decreases_with_noise_and_with_a_wrong_rate_and_is_finite() -> None:
    rng = np.random.default_rng(1)
    noise = rng.standard_normal(600)
    clean, noisy = (metrics.toolbox_snr_db(tone(75) + s * noise, 30, 75) for s in (0.1, 1.0))
    assert clean > noisy > metrics.toolbox_snr_db(tone(75) + noise, 30, 110)
    assert np.isfinite(metrics.toolbox_snr_db(np.zeros(600), 30, 75))


@pytest.mark.parametrize(("convention", "tolerance_bpm"), [("ours", 0.1), ("toolbox", 1.8)])
def test_compare_measures_both_waveforms(convention: metrics.Convention, tolerance_bpm: float) -> None:
    rng = np.random.default_rng(2)
    reference = tone(71.3) + 0.3 * tone(142.6)
    prediction = np.roll(reference, 4) + 0.2 * rng.standard_normal(600)
    found = metrics.compare(wave(prediction), wave(reference), convention)
    assert found is not None
    assert found.bpm == pytest.approx(71.3, abs=tolerance_bpm + 0.3)
    assert found.truth_bpm == pytest.approx(71.3, abs=tolerance_bpm)
    assert found.snr_db > 5
    assert found.macc > 0.9
    summary = metrics.summarise_comparisons([found, found, found])
    assert summary.macc == metrics.Score(pytest.approx(found.macc), pytest.approx(0))


def test_compare_returns_none_for_a_constant_waveform_and_refuses_different_frame_rates() -> None:
    assert metrics.compare(wave(np.zeros(600)), wave(tone(72))) is None
    with pytest.raises(ArgumentError, match="equal length and frame rate"):
        metrics.compare(wave(tone(72)), wave(tone(72), fps=25))
    with pytest.raises(UnknownNameError, match="toolbox"):
        metrics.compare(wave(tone(72)), wave(tone(72)), "tolbox")  # type: ignore[arg-type]


def mean(values: np.ndarray) -> float:
    return float(values.mean())


def test_the_bootstrap_resamples_subjects_and_is_reproducible() -> None:
    rng = np.random.default_rng(3)
    subjects = [str(k) for k in range(20) for _ in range(30)]
    values = np.repeat(rng.normal(10, 2, 20), 30)  # readings of one subject are copies
    by_subject = metrics.bootstrap(mean, subjects, values, seed=1)
    assert by_subject == metrics.bootstrap(mean, subjects, values, seed=1)
    assert by_subject != metrics.bootstrap(mean, subjects, values, seed=2)
    assert by_subject is not None
    assert by_subject.low < values.mean() < by_subject.high
    # Copies add nothing: the width is that of 20 values, not of 600.
    assert by_subject.high - by_subject.low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(20), rel=0.2)


def test_the_bootstrap_interval_has_its_nominal_coverage() -> None:
    rng = np.random.default_rng(4)
    hits = 0
    for trial in range(150):
        level = rng.normal(0, 1, 25)
        values = np.repeat(level, 3) + rng.normal(0, 0.5, 75)
        found = metrics.bootstrap(
            mean, np.repeat(np.arange(25), 3).astype(str).tolist(), values, draws=150, level=0.9, seed=trial
        )
        assert found is not None
        hits += found.low <= 0 <= found.high
    assert 0.8 < hits / 150 < 0.97


def test_the_bootstrap_returns_none_for_one_subject_or_an_undefined_statistic() -> None:
    assert metrics.bootstrap(mean, ["a", "a"], [1.0, 2.0]) is None
    assert metrics.bootstrap(lambda _: None, ["a", "b"], [1.0, 2.0]) is None


@pytest.mark.parametrize(
    ("estimate", "truth"),
    [([], []), ([1.0], [1.0, 2.0]), ([[1.0]], [[1.0]]), ([math.nan], [1.0]), ([1.0], [math.inf])],
)
def test_invalid_pairs_are_refused(estimate: list[float], truth: list[float]) -> None:
    with pytest.raises(ArgumentError, match="estimate, truth"):
        metrics.summarise(estimate, truth)


def test_invalid_inputs_are_refused() -> None:
    with pytest.raises(ArgumentError, match="truth"):
        metrics.mape([1.0], [0.0])
    with pytest.raises(ArgumentError, match="columns"):
        metrics.bootstrap(mean, ["a", "b"], [1.0])
    with pytest.raises(ArgumentError, match="level"):
        metrics.bootstrap(mean, ["a", "b"], [1.0, 2.0], level=95)
    with pytest.raises(ArgumentError, match="draws"):
        metrics.bootstrap(mean, ["a", "b"], [1.0, 2.0], draws=1)
