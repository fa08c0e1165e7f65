"""Closed forms of the measures at their limits, and of the bootstrap's draws."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy import signal

from phase_rppg.errors import ArgumentError
from phase_rppg.evaluate import conventions, metrics
from phase_rppg.types import Waveform

FPS = 32.0  # with 1024 samples a bin is 1/32 Hz wide, so the tones below lie in one bin


def tone(hz: float, count: int = 1024) -> np.ndarray:
    return np.sin(2 * np.pi * hz * np.arange(count) / FPS)


def wave(values: np.ndarray, fps: float = FPS) -> Waveform:
    return Waveform(values, fps, 0.0, np.ones(len(values), bool))


def test_an_error_of_exactly_five_bpm_is_within() -> None:
    assert metrics.within([65.0, 65.01, 55.0, 54.99], [60.0] * 4).value == 0.5


def test_three_readings_make_a_correlation_and_two_do_not() -> None:
    score = metrics.pearson([1.0, 2.0, 4.0], [1.0, 2.0, 3.0])
    r = 9 / math.sqrt(2 * 42)  # Σxy / √(Σx²·Σy²) of −1, 0, 1 and −4/3, −1/3, 5/3
    assert score is not None
    assert score.value == pytest.approx(r)
    assert score.error == pytest.approx(math.sqrt(1 - r**2))
    assert metrics.pearson([1.0, 4.0], [1.0, 3.0]) is None


@pytest.mark.parametrize("sign", [1, -1])
def test_a_perfect_correlation_has_no_error_whatever_the_rounding(sign: int) -> None:
    truth = np.array([60.1, 71.7, 83.3, 95.9])
    score = metrics.pearson(0.1 * sign * truth + 3, truth)
    assert score is not None
    assert score.value == pytest.approx(sign, abs=1e-12)
    assert score.error == pytest.approx(0, abs=1e-6)
    assert abs(score.value) <= 1


def test_a_constant_side_has_no_correlation_even_with_rounding() -> None:
    assert metrics.pearson([0.1, 0.1, 0.1 + 1e-17, 0.1], [60.0, 70.0, 80.0, 90.0]) is None
    assert metrics.pearson([60.0, 70.0, 80.0, 90.0], [0.1] * 4) is None


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e9])
def test_a_correlation_does_not_depend_on_the_scale(scale: float) -> None:
    estimate, truth = np.array([61.0, 72.0, 80.0, 95.0]), np.array([60.0, 70.0, 85.0, 90.0])
    expected, scaled = metrics.pearson(estimate, truth), metrics.pearson(scale * estimate, truth)
    assert expected is not None
    assert scaled is not None
    assert scaled.value == pytest.approx(expected.value)
    rounding = scale * np.array([1.0, 1.0, 1.0 + 4e-16, 1.0])
    assert metrics.pearson(rounding, truth) is None


def test_one_reading_is_enough_for_errors_and_too_few_for_a_wave() -> None:
    assert metrics.mae([61.0], [60.0]) == metrics.Score(1.0, 0.0)
    with pytest.raises(ArgumentError, match="n ≥ 2"):
        metrics.macc([1.0], [1.0])
    assert metrics.macc([1.0, 2.0], [5.0, 3.0]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("estimate", "truth"), [([2.0, math.nan], [1.0, 2.0]), ([1.0, 2.0], [2.0, math.nan]), ([math.inf], [1.0])]
)
def test_a_value_that_is_not_finite_is_refused_on_either_side(
    estimate: list[float], truth: list[float]
) -> None:
    with pytest.raises(ArgumentError, match="infinity"):
        metrics.mae(estimate, truth)


def test_a_single_truth_of_zero_has_no_percentage() -> None:
    with pytest.raises(ArgumentError, match="truth"):
        metrics.mape([60.0, 61.0], [0.0, 60.0])


def test_macc_is_zero_when_either_wave_is_flat_and_never_above_one() -> None:
    assert metrics.macc(tone(1.25), np.full(1024, 7.0)) == 0
    assert metrics.macc(np.full(1024, 7.0), tone(1.25)) == 0
    assert metrics.macc(tone(1.25), tone(1.25)) <= 1
    assert metrics.macc(tone(1.25), tone(1.5)) == pytest.approx(0, abs=1e-9)
    assert metrics.macc(tone(1.25) + tone(1.5), tone(1.25)) == pytest.approx(math.sqrt(0.5))


def test_the_toolbox_snr_is_limited_to_sixty_decibels() -> None:
    assert metrics.toolbox_snr_db(tone(1.25), FPS, 75) == pytest.approx(60, abs=1e-3)
    assert metrics.toolbox_snr_db(tone(1.25), FPS, 120) == pytest.approx(-60, abs=1e-3)
    assert metrics.toolbox_snr_db(np.zeros(1024), FPS, 75) == pytest.approx(0)


def test_the_toolbox_snr_of_two_tones_is_the_ratio_of_their_powers() -> None:
    """A level counts nowhere, a tone outside the band neither, the harmonic with its line."""
    inside = 1000 + 2 * tone(1.25) + tone(2.0) + 5 * tone(0.5) + 5 * tone(3.5)
    assert metrics.toolbox_snr_db(inside, FPS, 75) == pytest.approx(10 * math.log10(4), abs=1e-6)
    both = 2 * tone(1.25) + tone(2.5) + tone(2.0)
    assert metrics.toolbox_snr_db(both, FPS, 75) == pytest.approx(10 * math.log10(5), abs=1e-6)
    beside = (
        tone(1.25) + tone(1.25 + 3 / 32) + tone(1.25 + 4 / 32)
    )  # 0.094 Hz is in the line, 0.125 Hz is not
    assert metrics.toolbox_snr_db(beside, FPS, 75) == pytest.approx(10 * math.log10(2), abs=1e-6)


@pytest.mark.parametrize("count", [512, 513])
def test_the_toolbox_snr_pads_to_the_next_power_of_two(count: int) -> None:
    values = tone(1.25, count) + np.random.default_rng(0).normal(size=count)
    size = 512 if count == 512 else 1024
    hz, power = signal.periodogram(values, fs=FPS, nfft=size, detrend=False, scaling="spectrum")
    power[1:-1] /= 2  # one-sided
    near = (np.abs(hz - 1.25) <= 0.1) | (np.abs(hz - 2.5) <= 0.1)
    rest = (hz >= 0.6) & (hz <= 3.3) & ~near
    expected = 10 * np.log10(power[near].sum() / power[rest].sum())
    assert metrics.toolbox_snr_db(values, FPS, 75) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("convention", conventions.ALL)
def test_a_comparison_uses_the_rate_of_the_reference(convention: metrics.Convention) -> None:
    """A prediction at the wrong rate has its own rate, but its SNR is taken at the true one."""
    found = metrics.compare(wave(tone(2.0)), wave(tone(1.25)), convention)
    assert found is not None
    assert found.bpm == pytest.approx(120, abs=0.1)
    assert found.truth_bpm == pytest.approx(75, abs=0.1)
    assert found.snr_db < -20
    assert found.macc < 0.2
    right = metrics.compare(wave(tone(1.25)), wave(tone(1.25)), convention)
    assert right is not None
    assert right.snr_db > 20


@pytest.mark.parametrize("convention", conventions.ALL)
def test_a_comparison_does_not_see_what_lies_outside_the_band(convention: metrics.Convention) -> None:
    clean = tone(1.25)
    drifting = clean + 20 * np.linspace(0, 1, 1024) ** 2 + 2 * tone(12.0)
    for prediction, reference in ((drifting, clean), (clean, drifting)):
        found = metrics.compare(wave(prediction), wave(reference), convention)
        assert found is not None
        assert found.macc > 0.95


@pytest.mark.parametrize("convention", conventions.ALL)
def test_a_comparison_with_a_flat_reference_has_no_answer(convention: metrics.Convention) -> None:
    assert metrics.compare(wave(tone(1.25)), wave(np.zeros(1024)), convention) is None
    assert metrics.compare(wave(np.zeros(1024)), wave(tone(1.25)), convention) is None


def test_waves_of_two_lengths_are_refused() -> None:
    with pytest.raises(ArgumentError, match="equal length and frame rate"):
        metrics.compare(wave(tone(1.25)), wave(tone(1.25)[:-1]))


def test_the_summary_holds_every_measure_of_the_same_readings() -> None:
    estimate, truth = [61.0, 78.0, 110.0], [60.0, 80.0, 100.0]
    summary = metrics.summarise(estimate, truth, snr_db=[1.0, 2.0, 6.0], macc=[0.5, 0.7, 0.9])
    assert summary.count == 3
    assert summary.mae == metrics.mae(estimate, truth)
    assert summary.rmse == metrics.rmse(estimate, truth)
    assert summary.mape == metrics.mape(estimate, truth)
    assert summary.pearson == metrics.pearson(estimate, truth)
    assert summary.within.value == pytest.approx(2 / 3)
    assert summary.snr_db is not None
    assert summary.snr_db.value == pytest.approx(3)
    assert summary.snr_db.error == pytest.approx(math.sqrt(14 / 3) / math.sqrt(3))
    assert summary.macc is not None
    assert summary.macc.value == pytest.approx(0.7)
    bare = metrics.summarise(estimate, truth)
    assert bare.snr_db is None
    assert bare.macc is None
    with pytest.raises(ArgumentError):
        metrics.summarise(estimate, truth, snr_db=[1.0])


def test_a_list_of_comparisons_is_summarised_by_its_columns() -> None:
    rows = [metrics.Comparison(61.0, 60.0, 3.0, 0.9), metrics.Comparison(78.0, 80.0, 5.0, 0.7)]
    summary = metrics.summarise_comparisons(rows)
    assert summary.mae.value == pytest.approx(1.5)
    assert summary.mape.value == pytest.approx(100 * (1 / 60 + 2 / 80) / 2)
    assert summary.snr_db is not None
    assert summary.snr_db.value == pytest.approx(4)
    assert summary.macc is not None
    assert summary.macc.value == pytest.approx(0.8)


class Counting:
    """A statistic that returns 0, 1, 2 … and remembers what it was shown."""

    def __init__(self, undefined: int = 0) -> None:
        self.undefined, self.seen = undefined, list[np.ndarray]()

    def __call__(self, values: np.ndarray) -> float | None:
        self.seen.append(values)
        number = len(self.seen) - 1
        return None if number < self.undefined else float(number - self.undefined)


def test_the_interval_lies_at_the_quantiles_of_the_draws() -> None:
    found = metrics.bootstrap(Counting(), ["a", "b"], [1.0, 2.0], draws=101, level=0.9)
    assert found == metrics.Interval(pytest.approx(5), pytest.approx(95), 0.9)


def test_half_of_the_draws_must_have_a_value() -> None:
    assert metrics.bootstrap(Counting(undefined=50), ["a", "b"], [1.0, 2.0], draws=100) is not None
    assert metrics.bootstrap(Counting(undefined=51), ["a", "b"], [1.0, 2.0], draws=100) is None


def test_every_subject_is_drawn_equally_often_with_all_its_readings() -> None:
    spy = Counting()
    subjects = ["c", "a", "b", "a", "c", "d", "d", "d"]
    values = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    metrics.bootstrap(spy, subjects, values, draws=2000)
    owner = {value: subject for subject, value in zip(subjects, values, strict=True)}
    counts = Counter(value for drawn in spy.seen for value in drawn.tolist())
    for value in values:  # each of 4 subjects is expected once per draw; the spread is √(2000 · 3/4) ≈ 39
        assert counts[value] == pytest.approx(2000, abs=200)
        assert all(counts[value] == counts[other] for other in values if owner[other] == owner[value])
    drawn_subjects = [sum(1 / subjects.count(owner[v]) for v in drawn.tolist()) for drawn in spy.seen]
    assert drawn_subjects == pytest.approx([4.0] * 2000)


def test_a_thousand_draws_are_the_default() -> None:
    spy = Counting()
    metrics.bootstrap(spy, ["a", "b"], [1.0, 2.0])
    assert len(spy.seen) == 1000


def test_columns_are_drawn_together() -> None:
    subjects, left = ["a", "b", "c"], np.array([1.0, 2.0, 3.0])
    found = metrics.bootstrap(lambda x, y: float(np.abs(10 * x - y).max()), subjects, left, 10 * left)
    assert found == metrics.Interval(0.0, 0.0, 0.95)


def test_two_subjects_and_ten_draws_are_enough() -> None:
    assert metrics.bootstrap(Counting(), ["a", "b"], [1.0, 2.0], draws=10) is not None
    with pytest.raises(ArgumentError, match="draws"):
        metrics.bootstrap(Counting(), ["a", "b"], [1.0, 2.0], draws=9)
    for level in (0.0, 1.0):
        with pytest.raises(ArgumentError, match="level"):
            metrics.bootstrap(Counting(), ["a", "b"], [1.0, 2.0], level=level)
    with pytest.raises(ArgumentError, match="columns"):
        metrics.bootstrap(Counting(), ["a", "b"], [1.0, 2.0], [1.0])
    with pytest.raises(ArgumentError, match="columns"):
        metrics.bootstrap(lambda: 0.0, ["a", "b"])
