"""Closed forms of the frame timing and of the quality of a window."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from phase_rppg.session.clock import Clock
from phase_rppg.session.colour_continuity import ColourContinuity
from phase_rppg.session.window_quality import Window, assess
from phase_rppg.session.window_samples import WindowSamples
from phase_rppg.signal.rate_tracking import TrackedRate
from phase_rppg.types import RgbTrace, Waveform

FPS = 30.0
T_S = np.arange(600) / FPS
ALL = np.ones(600, bool)
LEVEL = np.array([180.0, 120.0, 90.0])


# ---- frame timing ------------------------------------------------------------------------------------------


def clock_at(times_s: np.ndarray, memory_s: float = 100.0) -> Clock:
    clock = Clock(FPS, memory_s)
    for t_s in times_s.tolist():
        clock.advance(t_s)
    return clock


def test_the_frame_rate_is_that_of_the_frames_within_the_window() -> None:
    clock = clock_at(np.arange(0, 10, 0.1))
    for start_s, end_s in ((0.0, 10.0), (2.0, 5.0), (2.05, 4.95)):
        assert clock.frame_timing(start_s, end_s)[0] == pytest.approx(10)
    slower = clock_at(np.concatenate([np.arange(0, 5, 0.1), np.arange(5, 10, 0.2)]))
    assert slower.frame_timing(5.0, 10.0)[0] == pytest.approx(5)
    assert slower.frame_timing(0.0, 4.9)[0] == pytest.approx(10)


def test_the_longest_pause_includes_both_ends_of_the_window() -> None:
    clock = clock_at(np.arange(20, 31) / 10)  # frames from 2 s to 3 s
    assert clock.frame_timing(2.0, 3.0)[1] == pytest.approx(0.1)
    assert clock.frame_timing(1.5, 3.0)[1] == pytest.approx(0.5)
    assert clock.frame_timing(2.0, 3.8)[1] == pytest.approx(0.8 - 1 / FPS)  # the last tick is before the end
    paused = clock_at(np.array([0.0, 0.1, 0.4, 0.5]))
    assert paused.frame_timing(0.0, 0.5)[1] == pytest.approx(0.3)


def test_fewer_than_two_frames_have_no_rate() -> None:
    clock = clock_at(np.array([0.0, 1.0, 2.0]))
    assert clock.frame_timing(0.5, 1.5) == (0.0, 1.0)
    assert clock.frame_timing(5.0, 9.0) == (0.0, 4.0)
    assert clock.frame_timing(0.0, 1.0)[0] == pytest.approx(1)


def test_frame_times_older_than_the_memory_are_forgotten() -> None:
    assert list(clock_at(np.arange(0.0, 10.0), memory_s=3.0).frame_times) == [6.0, 7.0, 8.0, 9.0]


# ---- colour continuity -------------------------------------------------------------------------------------


def test_the_scale_is_the_ratio_of_both_regions_within_its_limits() -> None:
    continuity = ColourContinuity(5.0)
    continuity.join(np.array([110.0, 300.0, 20.0]), np.array([100.0, 100.0, 100.0]))
    np.testing.assert_allclose(continuity.scale(np.full(3, 100.0), 5.0), [110, 150, 100 / 1.5])
    continuity.join(np.array([50.0, 50.0, 50.0]), np.array([55.0, 50.0, 0.5]))  # dark regions are not scaled
    np.testing.assert_allclose(continuity.scale(np.full(3, 100.0), 5.0), [100, 150, 100 / 1.5])


@pytest.mark.parametrize("step_s", [0.5, 2.0])
def test_the_logarithm_of_the_scale_decays_with_twenty_seconds(step_s: float) -> None:
    continuity = ColourContinuity(5.0)
    continuity.join(np.full(3, 110.0), np.full(3, 100.0))
    scaled = continuity.scale(np.ones(3), 5.0 + step_s)
    np.testing.assert_allclose(np.log(scaled), np.log(1.1) * (1 - step_s / 20))
    again = continuity.scale(np.ones(3), 5.0 + 2 * step_s)
    np.testing.assert_allclose(np.log(again), np.log(1.1) * (1 - step_s / 20) ** 2)
    np.testing.assert_allclose(continuity.scale(np.ones(3), 100.0), 1)


# ---- quality of a window -----------------------------------------------------------------------------------


def tone(bpm: float, phase: float = 0.0) -> np.ndarray:
    return np.cos(2 * np.pi * bpm / 60 * T_S + phase)


def colours(relative: np.ndarray, gains: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> RgbTrace:
    """A trace with mean LEVEL and a relative change (T,) times a gain for each colour."""
    return RgbTrace(LEVEL * (1 + relative[:, None] * np.array(gains)), FPS, 0.0, ALL)


def samples_of(
    skin: RgbTrace, background: RgbTrace | None = None, centre: np.ndarray | None = None
) -> WindowSamples:
    return WindowSamples(
        skin=skin, background=background, centre=centre, coverage=0.9, face_px=77.0, clipped=0.1, fps=29.0,
        max_gap_s=0.2, end_s=20.0,
    )  # fmt: skip


PULSE = samples_of(colours(-0.01 * tone(75), (0.4, 1.0, 0.7)))


def window_of(samples: WindowSamples, bpm: float = 75.0) -> Window:
    return Window(samples, Waveform(tone(bpm), FPS, 0.0, ALL), "pos")


def test_facts_of_the_samples_are_copied() -> None:
    peak, quality = assess(window_of(PULSE))
    assert peak is not None
    assert peak.bpm == pytest.approx(75, abs=0.01)
    copied = (quality.coverage, quality.face_px, quality.clipped, quality.fps, quality.max_gap_s)
    assert copied == (0.9, 77.0, 0.1, 29.0, 0.2)
    assert quality.snr_db == peak.snr_db
    assert quality.luma == pytest.approx(0.299 * 180 + 0.587 * 120 + 0.114 * 90, abs=0.1)
    assert quality.colourfulness == pytest.approx(90 / 130, abs=0.01)
    assert quality.amplitude == pytest.approx(0.01, rel=0.05)
    assert quality.red == pytest.approx(0.4, abs=0.01)
    assert quality.agreement > 0.9  # CHROM shows the same pulse


def test_the_tracked_rate_gives_support_and_place_of_the_peak() -> None:
    wave = Waveform(tone(75) + 0.6 * tone(110), FPS, 0.0, ALL)
    window = replace(window_of(PULSE), wave=wave)
    assert assess(window)[1].support == 0
    peak, quality = assess(window, TrackedRate(110.0, 0.7, 1.0))
    assert peak is not None
    assert peak.bpm == pytest.approx(110, abs=0.5)
    assert quality.support == 0.7


def test_a_window_without_a_peak_has_the_least_snr() -> None:
    flat = replace(window_of(PULSE), wave=Waveform(np.zeros(600), FPS, 0.0, ALL))
    peak, quality = assess(flat)
    assert peak is None
    assert quality.snr_db == -60
    unseen = Waveform(np.zeros(600), FPS, 0.0, ~ALL)
    assert assess(replace(flat, wave=unseen))[0] is None
    at_72 = samples_of(colours(-0.01 * tone(72), (0.4, 1.0, 0.7)))
    assert assess(Window(at_72, unseen, "pos"))[1].amplitude == pytest.approx(0.01, rel=0.05)


def test_without_background_and_motion_both_explain_nothing() -> None:
    quality = assess(window_of(PULSE))[1]
    assert (quality.background, quality.motion, quality.background_coherence) == (0.0, 0.0, 0.3)
    hidden = replace(PULSE, background=RgbTrace(PULSE.skin.values, FPS, 0.0, ~ALL))
    quality = assess(window_of(hidden))[1]
    assert (quality.background, quality.background_coherence) == (0.0, 0.3)


def test_a_background_that_flickers_with_the_skin_explains_the_peak() -> None:
    flicker = colours(-0.01 * tone(75))
    quality = assess(window_of(samples_of(flicker, background=flicker)))[1]
    assert quality.background == pytest.approx(1, abs=0.05)
    assert quality.background_coherence == pytest.approx(1, abs=0.05)
    opposite = colours(0.01 * tone(75))
    assert assess(window_of(samples_of(flicker, background=opposite)))[1].background == 0
    weak = colours(-0.001 * tone(75))
    assert assess(window_of(samples_of(flicker, background=weak)))[1].background == pytest.approx(
        0.1, abs=0.02
    )


@pytest.mark.parametrize(("sway", "motion"), [(0.01, 1.0), (0.005, 0.5), (0.03, 1.0), (0.001, 0.1)])
def test_motion_counts_by_its_amplitude_over_a_hundredth_of_the_face(sway: float, motion: float) -> None:
    centre = np.stack([np.zeros(600), sway * tone(75)], 1)
    found = assess(window_of(replace(PULSE, centre=centre)))[1].motion
    assert found == pytest.approx(motion, abs=0.05)


def test_the_check_of_a_method_is_another_method() -> None:
    """A pulse that POS does not see: its network's wave has no agreement."""
    steady = samples_of(colours(np.zeros(600)))
    assert assess(window_of(steady))[1].agreement == 0
    named = replace(window_of(PULSE), method="network")
    assert assess(named)[1].agreement > 0.9
    second = Waveform(tone(110), FPS, 0.0, ALL)
    other = replace(named, second=second, second_method="pos")
    assert other.check_wave is second
    assert assess(other)[1].agreement < 0.1
    assert replace(other, second_method="chrom").check_wave is not second
    unseen = replace(other, second=Waveform(tone(110), FPS, 0.0, ~ALL))
    assert unseen.second_spectrum is None
    assert unseen.check_wave is not unseen.second
    nothing = samples_of(RgbTrace(PULSE.skin.values, FPS, 0.0, ~ALL))
    assert assess(window_of(nothing))[1].agreement == 0


# ---- beats -------------------------------------------------------------------------------------------------


def test_the_beats_of_two_methods_are_compared() -> None:
    shape = -0.01 * (tone(75) + 0.4 * tone(150, 1.6))
    _, quality = assess(window_of(samples_of(colours(shape, (0.4, 1.0, 0.7)))))
    assert quality.beat_bpm == pytest.approx(75, abs=1)
    assert quality.beat_difference_bpm < 0.5
    assert quality.beat_spread < 0.03
    assert quality.beat_match > 0.98
    _, other = assess(replace(window_of(PULSE), wave=Waveform(tone(100), FPS, 0.0, ALL)))
    assert other.beat_difference_bpm == pytest.approx(25, abs=2)  # CHROM still counts 75
    assert other.beat_bpm == pytest.approx(87.5, abs=1)


def test_without_beats_of_both_methods_nothing_is_known() -> None:
    flat = samples_of(colours(0 * tone(75)))
    _, quality = assess(window_of(flat))
    assert (quality.beat_bpm, quality.beat_difference_bpm, quality.beat_match) == (0, 20, 0)
    assert quality.beat_spread == 0.5
