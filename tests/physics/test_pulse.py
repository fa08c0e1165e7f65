"""A generated pulse has the given rate, beats and shape, and depends only on the seed."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.physics import PulseConfig, pulse_wave
from phase_rppg.physics.pulse import MARGIN_S, vessel_oscillator

STEADY = PulseConfig(rsa=0, hrv_s=0, drift_bpm=0, breathing_strength=0)
seeds = st.integers(0, 2**32 - 1)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def peak_bpm(values: np.ndarray, fps: float) -> float:
    """Return the spectral peak from 35 to 220 bpm (above breathing) of a zero-padded spectrum."""
    size = 1 << 17
    power = np.abs(np.fft.rfft(values * np.hanning(len(values)), size)) ** 2
    bpm = 60 * np.fft.rfftfreq(size, 1 / fps)
    return float(bpm[np.argmax(power * ((bpm > 35) & (bpm < 220)))])


@given(st.floats(40, 200), seeds)
@settings(deadline=None, max_examples=40)
def test_the_strongest_line_is_the_rate_whatever_the_shape(bpm: float, seed: int) -> None:
    config = replace(STEADY, bpm=bpm).with_random_shape(rng(seed))
    pulse = pulse_wave(config, 30, 30, rng(seed))
    assert abs(peak_bpm(pulse.values, 30) - bpm) < 0.5
    np.testing.assert_allclose(pulse.bpm, bpm, rtol=1e-6)


@given(
    st.floats(35, 220), st.floats(0, 0.1), st.floats(0, 0.06), st.floats(0, 8), st.floats(0, 0.2), seeds,
    st.floats(2, 30), st.sampled_from([15.0, 29.97, 30.0, 60.0, 240.0]),
)  # fmt: skip
@settings(deadline=None, max_examples=60)
def test_the_truth_is_consistent(
    bpm: float,
    rsa: float,
    hrv_s: float,
    drift_bpm: float,
    ectopic: float,
    seed: int,
    duration_s: float,
    fps: float,
) -> None:
    config = PulseConfig(bpm=bpm, rsa=rsa, hrv_s=hrv_s, drift_bpm=drift_bpm, ectopic_rate=ectopic)
    pulse = pulse_wave(config.with_random_shape(rng(seed)), duration_s, fps, rng(seed))
    frames = round(duration_s * fps)
    for array in (pulse.t_s, pulse.values, pulse.bpm, pulse.breathing):
        assert array.shape == (frames,)
        assert np.isfinite(array).all()
    beats_s = pulse.beat_times_s
    assert (np.diff(beats_s) > 0).all()
    assert ((beats_s >= 0) & (beats_s < duration_s)).all()
    assert np.abs(pulse.breathing).max() <= 1
    assert abs(pulse.values.mean()) < 1e-9
    # Between two beats the true rate is 60 over their distance, so its integral counts the beats.
    for early_s, late_s in itertools.pairwise(beats_s):
        inside = (pulse.t_s >= early_s) & (pulse.t_s < late_s)
        np.testing.assert_allclose(pulse.bpm[inside], 60 / (late_s - early_s), rtol=1e-9)
    np.testing.assert_allclose(pulse.at(pulse.t_s), pulse.values, atol=1e-12)


@given(st.floats(45, 150), seeds)
@settings(deadline=None, max_examples=30)
def test_a_typical_beat_is_one_high_and_rises_faster_than_it_falls(bpm: float, seed: int) -> None:
    config = replace(STEADY, bpm=bpm).with_random_shape(rng(seed))
    pulse = pulse_wave(replace(config, breathing_strength=0), 10, 240, rng(seed))
    assert 0.95 < np.ptp(pulse.values) < 1.05
    slope = np.diff(pulse.values)
    assert slope.max() > 1.3 * -slope.min()
    # The foot comes first: at the beat the wave is low, an upstroke later it is high.
    inner = pulse.beat_times_s[1:-1]
    assert (pulse.at(inner + config.upstroke_s * config.pace) - pulse.at(inner) > 0.8).all()


def test_the_reflected_wave_makes_a_second_hump() -> None:
    def humps_per_beat(dicrotic: float) -> float:
        config = replace(STEADY, bpm=60, damping=0.8, dicrotic=dicrotic)
        pulse = pulse_wave(config, 20, 240, rng())
        inner = pulse.values[1:-1]
        peaks = (inner > pulse.values[:-2]) & (inner >= pulse.values[2:]) & (inner > 0.02)
        return float(peaks.sum() / 20)

    assert humps_per_beat(0.0) == pytest.approx(1, abs=0.1)
    assert humps_per_beat(0.4) == pytest.approx(2, abs=0.1)


def test_breathing_moves_the_rate_and_the_strength() -> None:
    still = replace(STEADY, breathing_hz=0.2, breathing_jitter=0)
    pulse = pulse_wave(replace(still, rsa=0.1), 120, 30, rng(1))
    assert np.corrcoef(pulse.bpm, pulse.breathing)[0, 1] > 0.9
    assert pulse.bpm.max() / pulse.bpm.mean() == pytest.approx(1.1, abs=0.02)
    pulse = pulse_wave(replace(still, breathing_strength=0.3), 120, 30, rng(1))
    beats = pulse.beat_times_s[1:-1]
    heights = pulse.at(beats + still.upstroke_s * still.pace) - pulse.at(beats)
    assert np.corrcoef(heights, np.interp(beats, pulse.t_s, pulse.breathing))[0, 1] < -0.9


def test_the_noise_of_the_intervals_has_the_size_that_was_asked_for() -> None:
    spreads = [
        np.std(np.diff(pulse_wave(replace(STEADY, hrv_s=0.03), 300, 30, rng(seed)).beat_times_s))
        for seed in range(6)
    ]
    assert np.mean(spreads) == pytest.approx(0.03, rel=0.2)


def test_drift_is_slow_and_keeps_its_size() -> None:
    rates = np.concatenate(
        [pulse_wave(replace(STEADY, drift_bpm=4), 600, 4, rng(seed)).bpm for seed in range(6)]
    )
    assert rates.std() == pytest.approx(4, rel=0.35)
    assert rates.mean() == pytest.approx(72, abs=3)


def test_an_ectopic_beat_is_early_weak_and_followed_by_a_full_pause() -> None:
    config = replace(STEADY, bpm=60, ectopic_rate=0.1)
    pulse = pulse_wave(config, 120, 60, rng(2))
    intervals = np.diff(pulse.beat_times_s)
    short = np.flatnonzero(intervals < 0.8)
    assert 3 < len(short) < 30
    short = short[(short + 2 < len(intervals))]
    np.testing.assert_allclose(intervals[short] + intervals[short + 1], 2.0, atol=1e-6)
    assert (intervals[short] >= 0.5).all()
    early = pulse.beat_times_s[short + 1]
    normal = pulse.beat_times_s[short]
    rise = config.upstroke_s * config.pace
    assert (
        pulse.at(early + rise) - pulse.at(early) < 0.8 * (pulse.at(normal + rise) - pulse.at(normal))
    ).all()


def test_the_same_generator_gives_the_same_pulse_and_another_a_different_one() -> None:
    one, two, other = (pulse_wave(PulseConfig(), 10, 30, rng(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.beat_times_s, two.beat_times_s)
    assert np.abs(one.values - other.values).max() > 0.1


def test_it_does_not_matter_at_which_frame_rate_the_pulse_is_read() -> None:
    slow, fast = (pulse_wave(PulseConfig(), 10, fps, rng(7)) for fps in (30, 120))
    np.testing.assert_array_equal(slow.beat_times_s, fast.beat_times_s)
    np.testing.assert_allclose(slow.values, fast.values[::4] - fast.values[::4].mean(), atol=1e-9)


def test_it_can_be_read_on_an_irregular_clock_but_not_far_outside() -> None:
    pulse = pulse_wave(PulseConfig(), 10, 30, rng(8))
    fine = pulse_wave(PulseConfig(), 10, 240, rng(8))
    times = np.sort(rng(9).uniform(0, 9.9, 200))
    offset = fine.at(np.zeros(1)) - pulse.at(np.zeros(1))
    np.testing.assert_allclose(pulse.at(times) + offset, fine.at(times), atol=1e-9)
    pulse.at(np.array([-MARGIN_S, 10 + MARGIN_S]))
    with pytest.raises(ArgumentError, match="t_s"):
        pulse.at(np.array([40.0]))
    with pytest.raises(ArgumentError, match="t_s"):
        pulse.at(np.array([np.nan]))


def test_it_starts_in_full_swing() -> None:
    pulse = pulse_wave(replace(STEADY, bpm=60, damping=1.5, upstroke_s=0.3), 10, 240, rng(3))
    np.testing.assert_allclose(pulse.values[:240], pulse.values[240:480], atol=0.03)


def test_the_vessel_peaks_when_it_should() -> None:
    for damping in (0.5, 1.0, 1.4):
        config = replace(STEADY, bpm=30, damping=damping, dicrotic=0, upstroke_s=0.15)
        pulse = pulse_wave(config, 10, 240, rng(4))
        foot = pulse.beat_times_s[1]
        window = np.arange(0, 1, 1 / 240)
        assert window[pulse.at(foot + window).argmax()] == pytest.approx(0.15 * config.pace, abs=0.02)
        assert vessel_oscillator(config).damping_ratio == pytest.approx(damping)


@pytest.mark.parametrize("name", [field.name for field in fields(PulseConfig)])
@pytest.mark.parametrize("bad", [-1.0, 1e6, float("nan")])
def test_a_heart_that_cannot_be_is_refused_by_name(name: str, bad: float) -> None:
    with pytest.raises(ArgumentError, match=f"{name}: got"):
        PulseConfig(**{name: bad})


@pytest.mark.parametrize(("duration_s", "fps"), [(0, 30), (-1, 30), (10, 0), (float("nan"), 30), (0.001, 30)])
def test_no_time_and_no_frames_are_refused(duration_s: float, fps: float) -> None:
    with pytest.raises(ArgumentError, match=r"duration_s|fps"):
        pulse_wave(PulseConfig(), duration_s, fps, rng())


def test_irregular_intervals_are_independent_and_keep_the_mean_rate() -> None:
    pulse = pulse_wave(replace(STEADY, bpm=80, irregular=0.2), 300, 30, rng(3))
    intervals = np.diff(pulse.beat_times_s)
    assert intervals.mean() == pytest.approx(0.75, rel=0.03)
    assert intervals.std() / intervals.mean() == pytest.approx(0.2, rel=0.2)
    assert abs(np.corrcoef(intervals[:-1], intervals[1:])[0, 1]) < 0.15
    # A beat after a short interval is weaker.
    config = replace(STEADY, bpm=80)
    beats = pulse.beat_times_s[1:]
    rise = config.upstroke_s * config.pace
    assert np.corrcoef(pulse.at(beats + rise) - pulse.at(beats), intervals)[0, 1] > 0.5


@pytest.mark.parametrize("factor", [1.5, 0.5])
def test_a_step_changes_the_rate_within_two_seconds(factor: float) -> None:
    pulse = pulse_wave(replace(STEADY, bpm=80, step_factor=factor, step_s=20), 40, 30, rng())
    assert np.allclose(pulse.bpm[pulse.t_s < 19], 80, atol=0.1)
    assert np.allclose(pulse.bpm[pulse.t_s > 24], 80 * factor, atol=0.1)
    with pytest.raises(ArgumentError, match="step_factor"):
        replace(STEADY, bpm=60, step_factor=0.4)
