"""Filters, resampling, motion removal and beat jitter: equal to brute force, and to their closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import signal

from phase_rppg.errors import ArgumentError
from phase_rppg.signal import beat_jitter, filters, motion_removal
from phase_rppg.signal.resample import interpolate_invalid, to_uniform
from phase_rppg.types import Waveform

FPS = 30.0


def tone(hz: float, seconds: float, fps: float = FPS, phase: float = 0.0) -> np.ndarray:
    return np.cos(2 * np.pi * hz * np.arange(round(seconds * fps)) / fps + phase)


# ---- filters -----------------------------------------------------------------------------------------------


def test_the_fast_length_is_the_least_of_its_form() -> None:
    forms = sorted({odd << power for odd in (1, 3, 5, 9, 15) for power in range(16)})
    for count in [*range(1, 700), 3596, 3597, 3840, 3841, 12001]:
        assert filters.fast_length(count) == next(size for size in forms if size >= count)
    assert filters.fast_length(0) == 1


@pytest.mark.parametrize("hz", [0.2, 0.4, 0.66, 1.0, 1.5, 2.5, 3.34, 4.5, 7.0, 12.0])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_the_gain_of_the_bandpass_is_that_of_scipys_filter_squared(hz: float, order: int) -> None:
    x = tone(hz, 200)
    middle = slice(1500, -1500)
    gain = np.abs(filters.bandpass(x, FPS, 0.66, 3.34, order)[middle]).max()
    b, a = signal.butter(order, [0.66, 3.34], btype="bandpass", fs=FPS)
    expected = np.abs(signal.freqz(b, a, [hz], fs=FPS)[1][0]) ** 2
    assert gain == pytest.approx(expected, abs=5e-3)


def test_the_standard_bandpass_is_that_of_the_heart() -> None:
    x = np.random.default_rng(0).normal(size=600)
    np.testing.assert_allclose(filters.bandpass(x, FPS), filters.bandpass(x, FPS, 0.66, 3.34, order=2))


@pytest.mark.parametrize("seconds", [4.0, 10.0, 40.0])
def test_the_ends_of_a_filtered_wave_are_continued_by_point_reflection(seconds: float) -> None:
    """The same as filtering a wave that was reflected by hand, and cutting the ends off again."""
    x = 5 + np.cumsum(np.random.default_rng(1).normal(size=round(seconds * FPS)))
    pad = min(len(x) - 1, math.ceil(3 * FPS / 0.66))
    long = np.pad(x, pad, mode="reflect", reflect_type="odd")
    b, a = signal.butter(2, [0.66, 3.34], btype="bandpass", fs=FPS)
    expected = signal.filtfilt(b, a, long, padlen=0)[pad:-pad]
    found = filters.bandpass(x, FPS)
    assert np.abs(found - expected).max() < 0.12 * np.abs(expected).max()
    assert np.corrcoef(found, expected)[0, 1] > 0.99


def test_straight_lines_are_removed() -> None:
    line = 3 * np.arange(300) - 70.0
    assert np.abs(filters.bandpass(line, FPS)).max() < 1e-6
    assert np.abs(filters.remove_linear_trend(line)).max() < 1e-9
    assert np.abs(filters.detrend(line)).max() < 1e-5


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_very_short_waveforms_are_filtered_without_error(count: int) -> None:
    x = np.arange(count) ** 2.0
    for made in (filters.bandpass(x, FPS), filters.detrend(x), filters.remove_linear_trend(x)):
        assert made.shape == x.shape
        assert np.isfinite(made).all()
    if count <= 2:
        assert not filters.detrend(x).any()


def test_three_samples_are_detrended_by_the_formula() -> None:
    x = np.array([1.0, 5.0, 2.0])
    d = np.array([[1.0, -2.0, 1.0]])
    expected = x - np.linalg.solve(np.eye(3) + 4.0 * d.T @ d, x)
    np.testing.assert_allclose(filters.detrend(x, 2.0), expected)
    np.testing.assert_allclose(filters.detrend(x), filters.detrend(x, 100.0))


def test_the_line_that_is_removed_is_the_weighted_fit() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=(50, 3)), rng.uniform(0, 1, 50)
    t = np.arange(50)
    for column in range(3):
        fit = np.polyval(np.polyfit(t, x[:, column], 1, w=np.sqrt(w)), t)
        np.testing.assert_allclose(
            filters.remove_linear_trend(x, w)[:, column], x[:, column] - fit, atol=1e-9
        )
    assert not filters.remove_linear_trend(x, np.zeros(50)).any()
    only = np.zeros(50)
    only[7] = 1.0
    np.testing.assert_allclose(filters.remove_linear_trend(x, only), x - x[7])


@pytest.mark.parametrize("band", [(0.0, 3.0), (2.0, 2.0), (3.0, 2.0), (1.0, 15.0), (-1.0, 2.0)])
def test_invalid_bands_are_refused(band: tuple[float, float]) -> None:
    for filtered in (filters.bandpass, filters.butterworth):
        with pytest.raises(ArgumentError, match="band"):
            filtered(np.zeros(100), FPS, *band)
    filters.bandpass(np.zeros(100), FPS, 1.0, 14.99)


def test_the_toolbox_filter_is_of_first_order_unless_said() -> None:
    x = np.random.default_rng(3).normal(size=200)
    b, a = signal.butter(1, [0.6, 3.3], btype="bandpass", fs=FPS)
    np.testing.assert_allclose(filters.butterworth(x, FPS, 0.6, 3.3), signal.filtfilt(b, a, x), atol=1e-9)


# ---- resampling --------------------------------------------------------------------------------------------


def test_resampling_is_linear_between_neighbours() -> None:
    t_s = np.array([10.0, 10.1, 10.3, 10.35])
    values = np.array([0.0, 1.0, 5.0, 4.0])
    out, start_s, valid = to_uniform(t_s, values, 20.0)
    grid_s = 10.0 + np.arange(8) / 20
    assert start_s == 10.0
    np.testing.assert_allclose(out, np.interp(grid_s, t_s, values), atol=1e-9)
    assert valid.all()
    both, _, _ = to_uniform(t_s, np.stack([values, -values], 1), 20.0)
    np.testing.assert_allclose(both, np.stack([out, -out], 1))


@pytest.mark.parametrize(("gap_s", "bridged"), [(0.5, True), (0.51, False)])
def test_a_gap_up_to_half_a_second_is_interpolated(gap_s: float, bridged: bool) -> None:
    t_s = np.array([0.0, 0.1, 0.1 + gap_s, 0.2 + gap_s])
    out, _, valid = to_uniform(t_s, t_s, 100.0)
    inside = (np.arange(len(out)) / 100 > 0.101) & (np.arange(len(out)) / 100 < 0.099 + gap_s)
    assert valid[~inside].all()
    assert valid[inside].all() == bridged
    assert np.isfinite(out).all()
    _, _, longer = to_uniform(t_s, t_s, 100.0, max_gap_s=1.0)
    assert longer.all()


def test_invalid_and_non_finite_samples_are_ignored() -> None:
    t_s = np.arange(10) / 10
    values = t_s.copy()
    values[3] = np.nan
    valid = np.ones(10, bool)
    valid[[0, 1, 9]] = False
    out, _, seen = to_uniform(t_s, values, 10.0, valid=valid)
    assert seen.tolist() == [False, False, True, True, True, True, True, True, True, False]
    np.testing.assert_allclose(out[2:9], t_s[2:9])
    nothing, start_s, seen = to_uniform(t_s + 4, np.full((10, 2), np.nan), 10.0)
    assert nothing.shape == (10, 2)
    assert start_s == 4
    assert not seen.any()
    assert not nothing.any()


def test_one_sample_is_one_tick() -> None:
    out, start_s, valid = to_uniform(np.array([2.0]), np.array([7.0]), 30.0)
    assert (out.tolist(), start_s, valid.tolist()) == ([7.0], 2.0, [True])


def test_a_rounded_last_timestamp_still_has_a_tick() -> None:
    t_s = np.arange(31) / 30
    t_s[-1] -= 1e-9
    out, _, valid = to_uniform(t_s, t_s, 30.0)
    assert len(out) == 31
    assert valid.all()


@pytest.mark.parametrize(
    ("t_s", "values", "fps"),
    [
        (np.zeros(0), np.zeros(0), 30.0),
        (np.arange(3.0), np.zeros(2), 30.0),
        (np.zeros((2, 2)), np.zeros(2), 30.0),
        (np.array([0.0, 1.0, 1.0]), np.zeros(3), 30.0),
        (np.array([0.0, 2.0, 1.0]), np.zeros(3), 30.0),
        (np.array([0.0, np.nan, 1.0]), np.zeros(3), 30.0),
        (np.arange(3.0), np.zeros(3), 0.0),
        (np.arange(3.0), np.zeros(3), np.inf),
    ],
)
def test_invalid_timestamps_are_refused(t_s: np.ndarray, values: np.ndarray, fps: float) -> None:
    with pytest.raises(ArgumentError):
        to_uniform(t_s, values, fps)


def test_invalid_samples_are_interpolated_linearly_and_the_ends_are_constant() -> None:
    values = np.array([9.0, 1.0, 9.0, 9.0, 4.0, 9.0])
    valid = np.array([False, True, False, False, True, False])
    np.testing.assert_allclose(interpolate_invalid(values, valid), [1, 1, 2, 3, 4, 4])
    pair = np.stack([values, 2 * values], 1)
    np.testing.assert_allclose(interpolate_invalid(pair, valid)[:, 1], [2, 2, 4, 6, 8, 8])
    assert interpolate_invalid(values, np.ones(6, bool)).tolist() == values.tolist()
    assert not interpolate_invalid(values, np.zeros(6, bool)).any()


# ---- motion ------------------------------------------------------------------------------------------------


def left_over(wave: np.ndarray, path: np.ndarray) -> float:
    """Share of a wave's amplitude that is left in the middle, without what the path explains."""
    full = Waveform(wave, FPS, 0.0, np.ones(len(wave), bool))
    middle = slice(300, -300)
    return float(motion_removal.remove_motion(full, path).values[middle].std() / wave[middle].std())


@pytest.mark.parametrize("times_faint", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("hz", [0.9, 1.6, 2.2])
def test_a_path_of_root_mean_square_r_leaves_one_over_one_plus_r_squared(
    times_faint: float, hz: float
) -> None:
    """Ridge regression on a path of r times the ridge; the unit of speed is that of a swing at 1.6 Hz."""
    swing = times_faint * motion_removal.RIDGE_FACE_WIDTHS * np.sqrt(2) * tone(hz, 60)
    for axis in (0, 1):
        path = np.zeros((len(swing), 2))
        path[:, axis] = swing
        assert left_over(tone(hz, 60), path) == pytest.approx(1 / (1 + times_faint**2), abs=0.02)
        speed = times_faint * hz / 1.6
        assert left_over(tone(hz, 60, phase=np.pi / 2), path) == pytest.approx(1 / (1 + speed**2), abs=0.03)
    if hz == 0.9:  # the square beats at 1.8 Hz, with half the path's amplitude over √2 / √2
        square = times_faint / np.sqrt(2)
        assert left_over(tone(2 * hz, 60), path) == pytest.approx(1 / (1 + square**2), abs=0.02)


def test_the_product_of_both_axes_is_removed() -> None:
    x, y = 0.05 * tone(0.7, 60), 0.05 * tone(1.0, 60)
    assert left_over(x * y, np.stack([x, y], 1)) < 0.1
    assert left_over(tone(2.9, 60), np.stack([x, y], 1)) > 0.95


def test_invalid_positions_are_ignored() -> None:
    swing = 0.05 * tone(1.2, 60)
    path = np.stack([swing, 0 * swing], 1)
    valid = np.ones(len(swing), bool)
    valid[600:1200] = False
    path[600:1200] = 1e3
    out = motion_removal.remove_motion(Waveform(tone(1.2, 60), FPS, 2.0, valid), path)
    assert out.start_s == 2.0
    assert np.array_equal(out.valid, valid)
    assert out.values[60:540].std() < 0.1 * tone(1.2, 60).std()


@pytest.mark.parametrize(("seconds", "changed"), [(1.9, False), (2.2, True)])
def test_motion_removal_needs_two_seconds(seconds: float, changed: bool) -> None:
    swing = 0.05 * tone(1.6, seconds)
    wave = Waveform(tone(1.6, seconds), FPS, 0.0, np.ones(len(swing), bool))
    out = motion_removal.remove_motion(wave, np.stack([swing, 0 * swing], 1))
    assert (out is not wave) == changed


def test_a_low_frame_rate_leaves_the_waveform_unchanged() -> None:
    wave = Waveform(tone(0.3, 60, fps=1.0), 1.0, 0.0, np.ones(60, bool))
    assert motion_removal.remove_motion(wave, np.ones((60, 2))) is wave
    slow = Waveform(tone(0.7, 60, fps=3.0), 3.0, 0.0, np.ones(180, bool))
    path = np.stack([0.05 * slow.values, 0 * slow.values], 1)
    assert motion_removal.remove_motion(slow, path).values[20:-20].std() < 0.2 * slow.values.std()


# ---- jitter ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hz", "noise"), [(1.2, 0.05), (1.0, 0.1), (2.0, 0.1)])
def test_the_jitter_of_a_tone_in_white_noise_is_the_formula(hz: float, noise: float) -> None:
    """σ = √(∫ S (2πf)² df) / |x''| with S = 2σₙ²/fps over 0.6 to 2.3 heart rates and |x''| = (2πf)²."""
    rng = np.random.default_rng(0)
    beats_s = np.arange(0, 239.9, 1 / hz)
    found = []
    for _ in range(8):
        values = tone(hz, 240) + noise * rng.normal(size=7200)
        found.append(beat_jitter.wave_jitter_s(Waveform(values, FPS, 0.0, np.ones(7200, bool)), beats_s))
    low_hz, high_hz = 0.6 * hz, 2.3 * hz
    slope = 2 * noise**2 / FPS * (2 * np.pi) ** 2 * (high_hz**3 - low_hz**3) / 3
    # A window ends at a beat, so few bins are left between the harmonics.
    assert np.mean(found) == pytest.approx(np.sqrt(slope) / (2 * np.pi * hz) ** 2, rel=0.12)


def test_harmonics_are_not_noise() -> None:
    """Harmonics leave the jitter as it was."""
    rng = np.random.default_rng(1)
    noise = 0.02 * rng.normal(size=3600)
    beats_s = np.arange(0, 119.9, 1.0)
    plain = Waveform(tone(1.0, 120) + noise, FPS, 0.0, np.ones(3600, bool))
    rich_values = tone(1.0, 120) + 0.3 * tone(2.0, 120) + 0.1 * tone(3.0, 120) + noise
    rich = Waveform(rich_values, FPS, 0.0, np.ones(3600, bool))
    before, after = beat_jitter.beat_jitter_s(plain, beats_s), beat_jitter.beat_jitter_s(rich, beats_s)
    assert 0.35 * before < after < 1.3 * before


def test_ten_whole_seconds_with_five_beats_are_needed() -> None:
    values = tone(1.0, 30) + 0.01 * np.random.default_rng(2).normal(size=900)
    valid = np.ones(900, bool)
    wave = Waveform(values, FPS, 100.0, valid)
    beats_s = 100.0 + np.arange(0.0, 30, 1.0)
    assert beat_jitter.beat_jitter_s(wave, beats_s) < 0.01
    assert beat_jitter.beat_jitter_s(wave, beats_s[[3, 4, 5, 6, 7]]) < 0.01
    assert beat_jitter.beat_jitter_s(wave, beats_s[[3, 4, 5, 6]]) == math.inf
    assert beat_jitter.beat_jitter_s(wave, beats_s[[7, 8, 9, 10, 11]]) == math.inf  # 3 and 2 in a window
    short = Waveform(values[:299], FPS, 100.0, valid[:299])
    assert beat_jitter.beat_jitter_s(short, beats_s) == math.inf
    exact = Waveform(values[:300], FPS, 100.0, valid[:300])
    assert beat_jitter.beat_jitter_s(exact, beats_s) < 0.01
    gaps = valid.copy()
    gaps[[5, 305, 605]] = False
    assert beat_jitter.beat_jitter_s(Waveform(values, FPS, 100.0, gaps), beats_s) == math.inf


def test_the_jitter_of_beats_at_minima_is_infinite() -> None:
    values = tone(1.0, 30) + 0.01 * np.random.default_rng(2).normal(size=900)
    wave = Waveform(values, FPS, 0.0, np.ones(900, bool))
    assert beat_jitter.beat_jitter_s(wave, 0.5 + np.arange(0.0, 29, 1.0)) == math.inf


@pytest.mark.parametrize(("fps", "filtered"), [(2.6, False), (2.8, True), (5.0, True)])
def test_the_pulse_band_needs_an_octave_below_the_frame_rate(fps: float, filtered: bool) -> None:
    """From 0.6 Hz an octave ends at 1.2 Hz, which is 0.45 of 2.67 frames per second."""
    slow = np.sin(2 * np.pi * 0.1 * np.arange(200) / fps)
    kept = filters.pulse_band(slow, fps)
    assert (np.abs(kept[50:150]).max() < 0.1) == filtered
    if not filtered:
        np.testing.assert_allclose(kept, filters.remove_linear_trend(slow))


def test_a_sample_with_one_channel_that_is_not_finite_is_not_used() -> None:
    values = np.stack([np.arange(9.0), 10 * np.arange(9.0), -np.arange(9.0)], 1)
    values[4, 1] = np.nan
    out, start_s, valid = to_uniform(np.arange(9) / 10, values, 10.0, max_gap_s=0.15)
    assert start_s == 0
    assert valid.tolist() == [True] * 4 + [False] + [True] * 4
    assert np.isfinite(out).all()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_jitter_of_beats_does_not_depend_on_the_amplitude(scale: float) -> None:
    x = tone(1.2, 30) + 0.1 * np.random.default_rng(0).normal(size=900)
    beats_s = np.arange(1, 36) / 1.2
    valid = np.ones(900, bool)
    expected = beat_jitter.beat_jitter_s(Waveform(x, FPS, 0.0, valid), beats_s)
    assert 0 < expected < 0.1
    assert beat_jitter.beat_jitter_s(Waveform(scale * x, FPS, 0.0, valid), beats_s) == pytest.approx(expected)
