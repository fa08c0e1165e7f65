"""What is kept of a long video is small, and comes back exactly as it was."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.measurement.result_buffer import WaveBuffer, WindowTable
from phase_rppg.session.results import WindowResult
from phase_rppg.signal.rate import Peak
from phase_rppg.types import Estimate, NoReading, Quality, Reading, Reason, Waveform

NUMBER = st.floats(-1e6, 1e6)
PEAK = st.builds(Peak, *[NUMBER] * 4)
QUALITY = st.builds(Quality, *[NUMBER] * 13)


@st.composite
def windows(draw: st.DrawFn) -> WindowResult:
    start_s, end_s = draw(NUMBER), draw(NUMBER)
    reading: Reading = draw(
        st.builds(Estimate, *[NUMBER] * 4, st.just(start_s), st.just(end_s))
        | st.builds(NoReading, st.sampled_from(Reason), st.just(start_s), st.just(end_s), NUMBER)
    )
    return WindowResult(3, start_s, end_s, reading, draw(st.none() | PEAK), draw(QUALITY))


@settings(deadline=None, max_examples=30)
@given(st.lists(windows(), max_size=25))
def test_windows_come_back_as_they_went_in(given_windows: list[WindowResult]) -> None:
    kept = WindowTable(3, given_windows)
    assert list(kept) == given_windows
    assert kept[1:] == given_windows[1:]
    assert kept == WindowTable(3, given_windows)


@settings(deadline=None, max_examples=30)
@given(st.lists(windows(), min_size=1, max_size=25), windows(), st.integers(0, 24))
def test_a_window_may_get_another_reading(
    given_windows: list[WindowResult], other: WindowResult, at: int
) -> None:
    index = at % len(given_windows)
    kept = WindowTable(3, given_windows)
    kept.change(index, other.reading)
    old = given_windows[index]
    reading = replace(other.reading, start_s=old.start_s, end_s=old.end_s)
    assert kept[index] == replace(old, reading=reading)
    assert [w for i, w in enumerate(kept) if i != index] == [
        w for i, w in enumerate(given_windows) if i != index
    ]


def test_there_is_no_window_beyond_the_last() -> None:
    with pytest.raises(IndexError):
        WindowTable(0)[0]


def test_pieces_of_a_wave_join_and_what_lies_between_was_not_seen() -> None:
    wave = WaveBuffer(10.0, 2.0)
    seen = np.array([True, True])
    wave.append(Waveform(np.array([1.0, 2.0]), 10.0, 2.0, seen))
    wave.append(Waveform(np.array([5.0, 6.0]), 10.0, 2.4, seen))
    whole = wave.whole()
    np.testing.assert_array_equal(whole.values, [1, 2, 0, 0, 5, 6])
    np.testing.assert_array_equal(whole.valid, [True, True, False, False, True, True])
    assert whole.start_s == 2.0


def test_a_long_wave_is_what_went_in() -> None:
    values = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    valid = values > -1
    wave = WaveBuffer(30.0, 0.0)
    for first in range(0, 5000, 37):
        piece = slice(first, first + 37)
        wave.append(Waveform(values[piece], 30.0, first / 30, valid[piece]))
    whole = wave.whole()
    np.testing.assert_array_equal(whole.values, values)
    np.testing.assert_array_equal(whole.valid, valid)


def test_an_hour_of_windows_stays_small_while_it_grows() -> None:
    """Its peak, too: an array that is copied as it grows needs twice what it holds."""
    window = WindowResult(3, 0.0, 10.0, NoReading(Reason.MOTION, 0.0, 10.0), None, Quality(*[1.0] * 11))
    tracemalloc.start()
    kept = WindowTable(3, (window for _ in range(3600)))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(kept) == 3600
    assert kept[3599] == window
    assert peak_bytes < 1.2 * 3600 * 232
