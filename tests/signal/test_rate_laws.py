"""Laws of the refined peak that follow from its model: tone, second harmonic and straight drift."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from phase_rppg.errors import ArgumentError
from phase_rppg.signal import filters, rate
from phase_rppg.types import Waveform

FPS = 30.0


def pulse(bpm: float, seconds: float, phase: float = 0.0, harmonic: float = 0.4) -> np.ndarray:
    angle = 2 * np.pi * bpm / 60 * np.arange(round(seconds * FPS)) / FPS + phase
    return np.cos(angle) + harmonic * np.cos(2 * angle + rate.SHAPE_PHASE)


@pytest.mark.parametrize("bpm", [50.0, 60.0, 75.0])
@pytest.mark.parametrize("phase", [0.0, 1.0, 2.0, 3.0])
def test_a_clean_pulse_with_harmonic_is_fitted_without_residual(bpm: float, phase: float) -> None:
    """Tone and harmonic explain all of it: the rate is exact and its spread vanishes, even for 4 s."""
    peak = rate.spectral_peak(pulse(bpm, 4.0, phase), FPS)
    assert peak is not None
    assert peak.bpm == pytest.approx(bpm, abs=1e-4)
    assert peak.sigma_bpm < 1e-3


def tone(
    bpm: float, seconds: float, amplitude: float = 1.0, phase: float = 0.0, fps: float = FPS
) -> np.ndarray:
    return amplitude * np.cos(2 * np.pi * bpm / 60 * np.arange(round(seconds * fps)) / fps + phase)


def peak_of(values: np.ndarray, **options: float) -> rate.Peak:
    peak = rate.spectral_peak(values, FPS, **options)
    assert peak is not None
    return peak


# ---- spectrum ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("amplitude", [0.5, 3.0])
def test_the_power_of_a_tone_is_its_squared_amplitude(amplitude: float) -> None:
    spec = rate.spectrum(7 + tone(90, 20, amplitude), FPS)
    assert float(spec.at(1.5)) == pytest.approx(amplitude**2, rel=1e-3)
    np.testing.assert_allclose(spec.power, np.abs(spec.tone) ** 2)
    assert spec.hz[0] == 0


def test_the_phase_of_a_tone_is_that_in_the_middle_of_the_window() -> None:
    for phase in (0.0, 0.5, 2.0):
        x = tone(90, 20, phase=phase)
        spec = rate.spectrum(x, FPS)
        index = int(np.argmin(np.abs(spec.hz - 1.5)))
        middle = 2 * np.pi * spec.hz[index] * (len(x) - 1) / 2 / FPS + phase
        assert np.angle(spec.tone[index] * np.exp(-1j * middle)) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("fps", [15.0, 29.97, 30.0, 32.004, 60.0])
@pytest.mark.parametrize("seconds", [4.0, 60.0, 200.0])
def test_the_grid_is_finer_than_half_a_bpm_and_than_half_the_resolution(fps: float, seconds: float) -> None:
    spec = rate.spectrum(tone(90, seconds, fps=fps), fps)
    step_hz = spec.hz[1] - spec.hz[0]
    assert step_hz <= 0.5 / 60
    assert step_hz <= 1 / (2 * seconds) * (1 + 1e-3)
    assert spec.hz[-1] == pytest.approx(fps / 2)
    np.testing.assert_allclose(np.diff(spec.hz), step_hz)


def test_the_duration_is_that_of_the_valid_part() -> None:
    assert rate.spectrum(tone(90, 20), FPS).duration_s == pytest.approx(20)
    valid = np.ones(600, bool)
    valid[300:] = False
    assert rate.spectrum(tone(90, 20), FPS, valid).duration_s == pytest.approx(10)


def test_power_between_and_beyond_the_grid() -> None:
    hz = np.arange(5.0)
    spec = rate.Spectrum(hz, hz + 0j, hz**2, 10.0)
    np.testing.assert_allclose(spec.at(np.array([2.0, 2.5, 4.0, 4.1])), [4.0, 6.5, 16.0, 0.0])


def test_the_band_is_forty_to_two_hundred_bpm() -> None:
    hz = np.array([0.65, 0.66, 40 / 60, 2.0, 200 / 60, 3.34, 3.35])
    spec = rate.Spectrum(hz, 0j * hz, 0 * hz, 10.0)
    assert spec.band.tolist() == [False, True, True, True, True, True, False]


@pytest.mark.parametrize(("duration_s", "half_hz"), [(60.0, 0.1), (15.0, 0.1), (5.0, 0.3), (3.0, 0.5)])
def test_a_line_is_a_tenth_of_a_hertz_wide_or_as_wide_as_its_window_makes_it(
    duration_s: float, half_hz: float
) -> None:
    hz = np.arange(0, 4, 0.001)
    spec = rate.Spectrum(hz, 0j * hz, 0 * hz, duration_s)
    line = hz[spec.line_mask(1.5)]
    assert (line[0], line[-1]) == pytest.approx((1.5 - half_hz, 1.5 + half_hz), abs=0.0011)


def test_the_prior_is_one_at_ninety_and_about_a_quarter_at_both_ends() -> None:
    assert rate.prior(np.array([1.5])) == pytest.approx(1)
    assert rate.prior(np.array([1.5 * 1.7])) == pytest.approx(rate.prior(np.array([1.5 / 1.7])))
    np.testing.assert_allclose(rate.prior(np.array([40, 200]) / 60), 0.25, atol=0.04)
    assert np.isfinite(rate.prior(np.array([0.0]))).all()


def test_a_phasor_is_the_spectrum_at_one_rate_with_the_phase_of_the_first_sample() -> None:
    x = tone(81, 20, 2.0, 0.7)
    found = rate.phasor(x, FPS, 81)
    assert found == pytest.approx(2 * np.exp(0.7j), abs=0.01)
    assert abs(found) ** 2 == pytest.approx(float(rate.spectrum(x, FPS).at(81 / 60)), rel=0.01)
    assert rate.phasor(x, FPS, 81, np.zeros(len(x), bool)) == 0


def test_the_evidence_of_each_frequency_does_not_depend_on_the_others() -> None:
    spec = rate.spectrum(tone(72, 20) + 0.4 * tone(144, 20, phase=1.0), FPS)
    hz = np.linspace(0.7, 3.2, 24)
    each = [float(spec.evidence(np.asarray(one))) for one in hz]
    np.testing.assert_allclose(spec.evidence(hz), each)
    np.testing.assert_allclose(spec.evidence(hz.reshape(2, 3, 4)), np.reshape(each, (2, 3, 4)))


def test_a_harmonic_beyond_the_spectrum_counts_as_zero() -> None:
    """Without a harmonic the best match of the pulse's shape is the tone alone."""
    spec = rate.spectrum(tone(90, 20, fps=5.0), 5.0)
    expected = rate.prior(np.array([1.5])) * spec.at(1.5) / (1 + rate.SHAPE_RATIO**2)
    assert float(spec.evidence(np.array([1.5]))[0]) == pytest.approx(float(expected[0]), rel=0.02)


# ---- peak --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.1, 0.3, 1.0])
def test_sigma_is_the_spread_of_the_rate_over_many_noises(noise: float) -> None:
    rng = np.random.default_rng(0)
    peaks = [
        peak_of(tone(72, 10, phase=rng.uniform(0, 6)) + noise * rng.normal(size=300), near_bpm=72.0)
        for _ in range(200)
    ]
    spread = np.std([peak.bpm - 72 for peak in peaks])
    assert np.mean([peak.sigma_bpm for peak in peaks]) == pytest.approx(spread, rel=0.15)


def explained(x: np.ndarray, hz: float) -> float:
    """Share of the Hann-weighted energy that a straight drift, a tone and its harmonic explain."""
    t_s = np.arange(len(x)) / FPS
    root = np.sin(np.pi * (np.arange(len(x)) + 0.5) / len(x))
    angles = 2 * np.pi * np.outer(t_s, [hz, 2 * hz])
    basis = np.column_stack([np.ones(len(x)), t_s, np.cos(angles), np.sin(angles)]) * root[:, None]
    residual = root * x - basis @ np.linalg.lstsq(basis, root * x, rcond=None)[0]
    return 1 - float(residual @ residual) / float((root * x) @ (root * x))


def test_the_refined_rate_is_a_local_maximum_of_the_explained_energy() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        t_s = np.arange(rng.integers(90, 400)) / FPS
        x = rng.normal(size=len(t_s)) + rng.uniform(0, 0.6) * np.cos(2 * np.pi * rng.uniform(0.7, 3.2) * t_s)
        if (peak := rate.spectral_peak(x, FPS)) is not None:
            step_hz = 0.02 * FPS / len(x)
            best = explained(x, peak.bpm / 60)
            assert best >= explained(x, peak.bpm / 60 - step_hz)
            assert best >= explained(x, peak.bpm / 60 + step_hz)


@pytest.mark.parametrize("bpm", [100.0, 150.0, 190.0])
def test_a_harmonic_below_half_the_frame_rate_is_fitted(bpm: float) -> None:
    """15 fps: the harmonic of 190 bpm lies at 6.3 Hz, below 0.9 of half the frame rate."""
    x = tone(bpm, 4, fps=15.0, phase=1.0) + 0.4 * tone(2 * bpm, 4, fps=15.0, phase=2 + rate.SHAPE_PHASE)
    peak = rate.spectral_peak(x, 15.0)
    assert peak is not None
    assert peak.bpm == pytest.approx(bpm, abs=1e-3)
    assert peak.sigma_bpm < 1e-2


def test_a_harmonic_above_half_the_frame_rate_is_not_fitted() -> None:
    """At a third of the frame rate the harmonic is an alias of the tone, which makes the fit ambiguous."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(100):
        x = tone(120, 20, phase=rng.uniform(0, 6), fps=6.0) + 0.3 * rng.normal(size=120)
        found.append(rate.spectral_peak(x, 6.0, near_bpm=120.0))
    peaks = [peak for peak in found if peak is not None]
    assert len(peaks) == 100
    spread = np.std([peak.bpm - 120 for peak in peaks])
    assert np.mean([peak.sigma_bpm for peak in peaks]) == pytest.approx(spread, rel=0.2)
    assert spread < 0.15


def test_sigma_counts_the_degrees_of_freedom_of_a_short_window() -> None:
    """24 samples and six fitted numbers leave 18 degrees of freedom."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        x = tone(72, 4, phase=rng.uniform(0, 6), fps=6.0) + 0.02 * rng.normal(size=24)
        found.append(rate.spectral_peak(x, 6.0, near_bpm=72.0))
    peaks = [peak for peak in found if peak is not None]
    assert len(peaks) == 400
    spread = np.sqrt(np.mean([(peak.bpm - 72) ** 2 for peak in peaks]))
    assert np.sqrt(np.mean([peak.sigma_bpm**2 for peak in peaks])) == pytest.approx(spread, rel=0.12)


@pytest.mark.parametrize("seconds", [3.0, 10.0])
def test_sigma_is_never_above_half_the_resolution(seconds: float) -> None:
    rng = np.random.default_rng(0)
    found = [rate.spectral_peak(rng.normal(size=round(seconds * FPS)), FPS, near_bpm=100) for _ in range(200)]
    largest = max(peak.sigma_bpm for peak in found if peak is not None)
    assert largest == pytest.approx(60 * 0.5 / seconds)


def test_share_and_snr_of_two_lines_are_the_ratios_of_their_powers() -> None:
    """Lines at 60 and 150 bpm with the harmonic of the first at 120, each far apart from the others."""
    x = tone(60, 60, 2.0) + tone(120, 60, 1.0) + tone(150, 60, 1.0)
    share, snr_db = rate.line_share(rate.spectrum(x, FPS), 1.0)
    assert share == pytest.approx(4 / 6, rel=1e-3)
    assert snr_db == pytest.approx(10 * np.log10(5 / 1), abs=0.01)
    peak = peak_of(x)
    assert (peak.power, peak.snr_db) == pytest.approx((share, snr_db), abs=0.01)


def test_a_harmonic_outside_the_band_counts_for_the_line_and_not_for_the_band() -> None:
    x = tone(130, 60, 2.0) + tone(260, 60, 1.0) + tone(80, 60, 1.0)
    share, snr_db = rate.line_share(rate.spectrum(x, FPS), 130 / 60)
    assert share == pytest.approx(4 / 5, rel=1e-3)
    assert snr_db == pytest.approx(10 * np.log10(5), abs=0.01)


def test_the_snr_is_limited_to_sixty_decibels() -> None:
    hz = np.arange(0, 4, 0.01)
    power = np.where(np.isclose(hz, 1.5), 1.0, 0.0)
    spec = rate.Spectrum(hz, np.sqrt(power) + 0j, power, 60.0)
    assert rate.line_share(spec, 1.5) == pytest.approx((1.0, 60.0))
    assert rate.line_share(spec, 2.5) == pytest.approx((0.0, -60.0))
    nothing = rate.Spectrum(hz, 0j * hz, 0 * hz, 60.0)
    assert rate.line_share(nothing, 1.5) == pytest.approx((0.0, 0.0))


def test_only_lines_near_a_given_rate_are_considered() -> None:
    x = tone(72, 20) + 0.5 * tone(110, 20)
    assert peak_of(x).bpm == pytest.approx(72, abs=0.5)
    for near_bpm in (105.0, 115.0):
        assert peak_of(x, near_bpm=near_bpm).bpm == pytest.approx(110, abs=0.5)
    assert abs(peak_of(x, near_bpm=121.0).bpm - 110) > 0.5  # more than 6 bpm and the width of a line away
    assert peak_of(x, near_bpm=121.0, within_bpm=12.0).bpm == pytest.approx(110, abs=0.5)
    assert peak_of(x, near_bpm=300.0).bpm == pytest.approx(72, abs=0.5)  # nothing of the band is near


def test_three_cycles_make_a_rate_and_fewer_do_not() -> None:
    assert rate.spectral_peak(tone(60, 2.8), FPS) is None
    assert peak_of(tone(60, 3.3)).bpm == pytest.approx(60, abs=0.5)
    assert rate.spectral_peak(tone(120, 1.4), FPS) is None
    assert peak_of(tone(120, 1.7)).bpm == pytest.approx(120, abs=1)


def test_a_faint_tone_is_a_tone_and_rounding_is_not() -> None:
    assert peak_of(1e-9 * tone(72, 10)).bpm == pytest.approx(72, abs=0.1)
    assert peak_of(1.0 + 1e-9 * tone(72, 10)).bpm == pytest.approx(72, abs=0.1)
    assert rate.spectral_peak(1.0 + 1e-14 * tone(72, 10), FPS) is None


def test_a_peak_without_spread_does_not_divide_by_zero() -> None:
    exact, rough = rate.Peak(70.0, 0.5, 3.0, 0.0), rate.Peak(80.0, 0.5, 3.0, 1.0)
    assert rate.joint_bpm([exact, rough]) == pytest.approx(70)


@pytest.mark.parametrize(
    ("values", "fps"), [(np.zeros((300, 2)), 30.0), (np.zeros(300), None), (np.zeros(300), 0.0)]
)
def test_invalid_signals_are_refused(values: np.ndarray, fps: float | None) -> None:
    with pytest.raises(ArgumentError):
        rate.spectral_peak(values, fps)


def test_the_tone_at_the_double_rate_is_left_out_where_the_clock_is_too_slow() -> None:
    """At 6 fps the harmonic of 170 bpm lies beyond half the frame rate."""
    x = tone(170, 20, fps=6.0) + 0.05 * np.random.default_rng(0).normal(size=120)
    assert rate.spectral_bpm(x, 7.0) == pytest.approx(170 * 7 / 6, abs=1)


# ---- toolbox convention ------------------------------------------------------------------------------------


@pytest.mark.parametrize("bpm", [71.0, 72.07])  # 72.07 bpm is an odd bin of 1024
@pytest.mark.parametrize("count", [300, 512, 513])
def test_the_toolbox_rate_is_the_formula_on_scipys_filter(count: int, bpm: float) -> None:
    x = tone(bpm, 20)[:count] + 0.5 * np.random.default_rng(0).normal(size=count)
    d = np.diff(np.eye(count), 2, axis=0)
    flat = x - np.linalg.solve(np.eye(count) + 100.0**2 * d.T @ d, x)
    b, a = signal.butter(1, [0.6 / FPS * 2, 3.3 / FPS * 2], btype="bandpass")
    size = {300: 512, 512: 512, 513: 1024}[count]
    hz, power = signal.periodogram(signal.filtfilt(b, a, flat), fs=FPS, nfft=size, detrend=False)
    inside = (hz >= 0.6) & (hz <= 3.3)
    expected = 60 * hz[inside][np.argmax(power[inside])]
    assert rate.toolbox_bpm(x, FPS) == pytest.approx(expected)
    assert rate.toolbox_bpm(Waveform(x, FPS, 0.0, np.ones(count, bool))) == pytest.approx(expected)


def test_the_toolbox_rate_is_within_its_band() -> None:
    x = tone(72, 30) + 3 * tone(150, 30)
    assert rate.toolbox_bpm(x, FPS) == pytest.approx(150, abs=2)
    assert rate.toolbox_bpm(x, FPS, band_hz=(0.6, 2.0)) == pytest.approx(72, abs=2)
    assert rate.toolbox_bpm(x, FPS, band_hz=(2.0, 3.0)) == pytest.approx(150, abs=2)


# ---- beats -------------------------------------------------------------------------------------------------


def wave(values: np.ndarray, start_s: float = 0.0, fps: float = FPS) -> Waveform:
    return Waveform(values, fps, start_s, np.ones(len(values), bool))


@pytest.mark.parametrize("bpm", [53.0, 71.0, 140.0])
def test_the_beats_of_a_tone_lie_at_its_maxima_between_samples(bpm: float) -> None:
    phase = 1.3
    beats_s = rate.find_beats(wave(tone(bpm, 20, phase=phase), start_s=5.0), bpm)
    truth_s = 5.0 + (np.arange(1, 100) - phase / (2 * np.pi)) * 60 / bpm
    inner = truth_s[(truth_s > 8) & (truth_s < 22)]
    assert np.abs(inner[:, None] - beats_s).min(1).max() < 2e-3
    assert len(beats_s) == pytest.approx(20 * bpm / 60, abs=1)


@pytest.mark.parametrize("phase", np.arange(0.3, 6.2, 0.4))
def test_a_slope_at_an_end_of_the_waveform_is_not_a_beat(phase: float) -> None:
    """Every beat of a tone lies within a tenth of a period from a maximum, whatever its phase."""
    beats_s = rate.find_beats(wave(tone(66, 10, phase=phase)), 66.0)
    turns = 1.1 * beats_s + phase / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns), atol=0.1)


def test_every_beat_is_a_local_maximum_of_the_filtered_wave() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        hz = rng.uniform(0.8, 2.5)
        x = tone(60 * hz, 20, fps=8.0) + rng.normal(size=160)
        filtered = filters.bandpass(x, 8.0, 0.6 * hz, min(2.3 * hz, 3.8), order=2)
        top = np.flatnonzero((filtered[1:-1] >= filtered[:-2]) & (filtered[1:-1] >= filtered[2:])) + 1
        beats = 8.0 * rate.find_beats(wave(x, fps=8.0), 60 * hz)
        assert len(beats) > 0
        assert np.abs(beats[:, None] - top).min(1).max() <= 0.5 + 1e-9  # a parabola moves it by half a sample


def test_three_samples_can_hold_one_beat() -> None:
    (beat_s,) = rate.find_beats(wave(np.array([-1.0, 2.0, -1.0]), fps=4.0), 60.0)
    assert beat_s == pytest.approx(0.25, abs=0.01)


def test_a_second_wave_within_a_beat_is_no_beat() -> None:
    """Each beat has a smaller maximum 0.4 s after it; the rate is given, so the filter keeps both."""
    t_s = np.arange(600) / FPS
    beats = np.arange(0.5, 20, 1.2)
    shape = np.exp(-0.5 * ((t_s[:, None] - beats) / 0.1) ** 2)
    second = 0.6 * np.exp(-0.5 * ((t_s[:, None] - beats - 0.4) / 0.1) ** 2)
    for order in ((shape, second), (second, shape)):
        x = order[0].sum(1) + order[1].sum(1)
        found = rate.find_beats(wave(x), 50.0)
        inner = beats[2:-2]
        assert np.abs(inner[:, None] - found).min(1).max() < 0.08
        assert np.median(np.diff(found)) == pytest.approx(1.2, abs=0.03)


def test_the_rate_at_each_sample_sets_the_least_distance_of_beats() -> None:
    t_s = np.arange(900) / FPS
    bpm = np.interp(t_s, [0, 30], [50, 100])
    beats_s = rate.find_beats(wave(np.cos(2 * np.pi * np.cumsum(bpm / 60) / FPS)), bpm)
    intervals_s = np.diff(beats_s)[3:-3]
    expected_s = 60 / np.interp(beats_s[3:-4] + intervals_s / 2, t_s, bpm)
    np.testing.assert_allclose(intervals_s, expected_s, rtol=0.03)


@pytest.mark.parametrize("values", [np.zeros(300), np.zeros(2), np.zeros(0)])
def test_a_flat_or_empty_wave_has_no_beats(values: np.ndarray) -> None:
    assert len(rate.find_beats(wave(values))) == 0
    if len(values):
        assert len(rate.find_beats(wave(values), 70.0)) == 0


def test_a_rate_beyond_half_the_frame_rate_has_no_beats() -> None:
    assert len(rate.find_beats(wave(np.random.default_rng(0).normal(size=100), fps=2.0), 120.0)) == 0


def test_a_wave_that_is_never_valid_has_no_beats() -> None:
    assert len(rate.find_beats(Waveform(tone(70, 10), FPS, 0.0, np.zeros(300, bool)), 70.0)) == 0


def test_the_rate_of_beats_is_that_of_their_median_interval() -> None:
    assert rate.beat_bpm(np.array([0.0, 1.0])) is None
    assert rate.beat_bpm(np.array([0.0, 1.0, 1.5])) == pytest.approx(80)
    assert rate.beat_bpm(np.array([0.0, 0.5, 1.0, 3.0])) == pytest.approx(120)


def test_the_subharmonic_excess_is_high_at_the_double_and_triple_of_a_rate_only() -> None:
    t_s = np.arange(300) / 30
    for bpm in (40.0, 43.3, 50.0):
        phase = 2 * np.pi * bpm / 60 * t_s
        beats = sum(np.cos(k * phase) / k for k in (1, 2, 3, 4))
        found = rate.spectrum(beats, 30.0).subharmonic_excess(np.array([bpm, 2 * bpm, 3 * bpm]) / 60)
        assert found[0] < 0.1
        assert found[1] > 0.4
        assert found[2] > 0.2
    assert rate.spectrum(np.zeros(300), 30.0).subharmonic_excess(np.array([1.0, 2.0])) == pytest.approx(
        [0, 0]
    )
