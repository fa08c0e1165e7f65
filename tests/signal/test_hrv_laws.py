"""Limits of variability, from constructed intervals: which intervals count, and from which duration on."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal import hrv


def times(intervals_s: np.ndarray | list[float]) -> np.ndarray:
    return 3.0 + np.concatenate([[0.0], np.cumsum(intervals_s)])


def alternating(count: int, mean_s: float = 0.8, change_s: float = 0.04) -> np.ndarray:
    return mean_s + change_s / 2 * (-1.0) ** np.arange(count)


@pytest.mark.parametrize(("period_s", "counts"), [(0.28, False), (0.32, True), (1.45, True), (1.55, False)])
def test_only_intervals_of_a_normal_beat_count(period_s: float, counts: bool) -> None:
    found = hrv.hrv(times(np.full(200, period_s)))
    assert (found is not None) == counts
    if found is not None:
        assert found.duration_s == pytest.approx(200 * period_s)
        assert found.beats == 201


@pytest.mark.parametrize(("factor", "kept"), [(1.24, True), (1.26, False), (0.76, True), (0.74, False)])
def test_an_interval_far_from_its_neighbours_is_dropped(factor: float, kept: bool) -> None:
    intervals_s = np.full(60, 0.8)
    intervals_s[30] *= factor
    found = hrv.hrv(times(intervals_s))
    assert found is not None
    assert found.duration_s == pytest.approx(59 * 0.8 + (0.8 * factor if kept else 0))
    assert (found.rmssd_ms == pytest.approx(0, abs=1e-9)) == (not kept)  # no change across a dropped interval


def test_neighbours_are_the_five_on_each_side() -> None:
    """A step of the rate is normal on both sides, because most neighbours have the same rate."""
    intervals_s = np.concatenate([np.full(40, 1.0), np.full(60, 0.6)])
    found = hrv.hrv(times(intervals_s))
    assert found is not None
    assert found.duration_s == pytest.approx(40 + 36)
    short = np.full(100, 0.8)
    short[40:45] = 0.5  # five of eleven are not the median
    found = hrv.hrv(times(short))
    assert found is not None
    assert found.duration_s == pytest.approx(95 * 0.8)
    short[40:52] = 0.5  # twelve are, in their middle
    found = hrv.hrv(times(short))
    assert found is not None
    assert found.duration_s > 88 * 0.8 + 5 * 0.5


@pytest.mark.parametrize(("dropped", "given"), [(19, True), (20, True), (21, False)])
def test_at_most_a_fifth_may_be_dropped(dropped: int, given: bool) -> None:
    intervals_s = np.full(100, 0.8)
    intervals_s[2 : 2 + 4 * dropped : 4] = 1.2
    assert (hrv.hrv(times(intervals_s)) is not None) == given
    assert hrv.respiration(times(intervals_s)) is None


@pytest.mark.parametrize(
    ("count", "fields"),
    [(37, None), (38, {"rmssd_ms"}), (56, {"rmssd_ms"}), (57, {"rmssd_ms", "sdnn_ms", "pnn50"}),
     (149, {"rmssd_ms", "sdnn_ms", "pnn50"}), (151, {"rmssd_ms", "sdnn_ms", "pnn50", "lf_hf"})],
)  # fmt: skip
def test_each_number_needs_its_duration(count: int, fields: set[str] | None) -> None:
    """Intervals of 0.8 s: 30 s are 37.5 of them, 45 s are 56.25, 120 s are 150."""
    found = hrv.hrv(times(alternating(count)))
    assert (found is None) == (fields is None)
    if found is not None:
        given = {
            name for name in ("rmssd_ms", "sdnn_ms", "pnn50", "lf_hf") if getattr(found, name) is not None
        }
        assert given == fields


def test_the_numbers_of_alternating_intervals_are_known() -> None:
    found = hrv.hrv(times(alternating(100, change_s=0.06)))
    assert found is not None
    assert found.rmssd_ms == pytest.approx(60)
    assert found.sdnn_ms == pytest.approx(30 * np.sqrt(100 / 99))
    assert found.pnn50 == 1
    calm = hrv.hrv(times(alternating(100, change_s=0.04)))
    assert calm is not None
    assert calm.pnn50 == 0


def test_changes_across_a_dropped_interval_do_not_count() -> None:
    intervals_s = alternating(100)
    intervals_s[50] = 1.3
    found = hrv.hrv(times(intervals_s))
    assert found is not None
    assert found.rmssd_ms == pytest.approx(40)


def swaying(seconds: float, *sways: tuple[float, float], period_s: float = 0.8) -> np.ndarray:
    """Beats whose interval follows sines of (amplitude in s, Hz)."""
    beats = [0.0]
    while beats[-1] < seconds:
        beats.append(beats[-1] + period_s + sum(a * np.sin(2 * np.pi * hz * beats[-1]) for a, hz in sways))
    return np.array(beats)


@pytest.mark.parametrize(("low_hz", "high_hz"), [(0.055, 0.25), (0.1, 0.3), (0.135, 0.17), (0.1, 0.38)])
def test_lf_over_hf_is_the_ratio_of_the_powers(low_hz: float, high_hz: float) -> None:
    """Interpolation between beats attenuates fast modulation, so the tolerance is wide at their end."""
    found = hrv.hrv(swaying(600, (0.02, low_hz), (0.02, high_hz), period_s=0.5))
    assert found is not None
    assert found.lf_hf == pytest.approx(1, rel=0.45)
    stronger = hrv.hrv(swaying(600, (0.04, low_hz), (0.02, high_hz), period_s=0.5))
    assert stronger is not None
    assert stronger.lf_hf is not None
    assert stronger.lf_hf / found.lf_hf == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("outside_hz", [0.02, 0.43])
def test_modulation_outside_both_bands_is_ignored(outside_hz: float) -> None:
    without = hrv.hrv(swaying(600, (0.02, 0.1), (0.02, 0.25), period_s=0.5))
    beside = hrv.hrv(swaying(600, (0.02, 0.1), (0.02, 0.25), (0.04, outside_hz), period_s=0.5))
    assert without is not None
    assert beside is not None
    assert beside.lf_hf == pytest.approx(without.lf_hf, rel=0.1)


@pytest.mark.parametrize(("breathing_hz", "period_s"), [(0.11, 0.8), (0.45, 0.8), (0.48, 0.5)])
def test_breathing_from_six_to_thirty_per_minute_is_estimated(breathing_hz: float, period_s: float) -> None:
    found = hrv.respiration(swaying(120, (0.05, breathing_hz), period_s=period_s))
    assert found == pytest.approx(60 * breathing_hz, abs=0.5)


@pytest.mark.parametrize(("sway_hz", "period_s"), [(0.06, 0.8), (0.55, 0.5), (0.47, 1.0)])
def test_modulation_too_slow_or_too_fast_for_breathing_gives_none(sway_hz: float, period_s: float) -> None:
    """0.47 Hz lies above 0.9 of half the heart rate when a beat takes a second."""
    assert hrv.respiration(swaying(120, (0.05, sway_hz), period_s=period_s)) is None


def test_breathing_needs_thirty_seconds_and_ten_beats() -> None:
    beats = swaying(60, (0.05, 0.25))
    assert hrv.respiration(beats[beats < 29]) is None
    assert hrv.respiration(beats[beats < 33]) == pytest.approx(15, abs=1)
    assert hrv.respiration(np.arange(9) * 4.0) is None


def test_two_equal_modulations_give_no_breathing() -> None:
    assert hrv.respiration(swaying(120, (0.03, 0.15), (0.03, 0.35), period_s=0.6)) is None
    clear = hrv.respiration(swaying(120, (0.05, 0.15), (0.02, 0.35), period_s=0.6))
    assert clear == pytest.approx(9, abs=0.5)


def test_breathing_is_part_of_the_variability() -> None:
    found = hrv.hrv(swaying(60, (0.05, 0.25)))
    assert found is not None
    assert found.breaths_per_minute == pytest.approx(15, abs=1)


@pytest.mark.parametrize(("apart_hz", "single"), [(0.02, True), (0.07, False)])
def test_a_breathing_line_is_0_03_hz_wide_to_each_side(apart_hz: float, single: bool) -> None:
    """Three modulations within 0.03 Hz are one line of a long recording, three farther apart are not."""
    beats = swaying(300, (0.02, 0.25 - apart_hz), (0.025, 0.25), (0.02, 0.25 + apart_hz))
    assert (hrv.respiration(beats) is not None) == single


def test_the_start_time_does_not_matter() -> None:
    beats = swaying(60, (0.05, 0.25))
    assert hrv.respiration(beats + 1000) == pytest.approx(hrv.respiration(beats))
    assert hrv.respiration(beats[beats < 25] + 1000) is None
    assert hrv.hrv(beats[beats < 25] + 1000) is None


def test_thirty_breaths_per_minute_are_still_breathing() -> None:
    """The upper end of the band belongs to it; 0.5 Hz is a bin of the spectrum."""
    assert hrv.respiration(swaying(120, (0.05, 0.5), period_s=0.4)) == pytest.approx(30)
