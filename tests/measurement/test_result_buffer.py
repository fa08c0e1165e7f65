"""The buffer of results is small and returns exactly what was stored."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.measurement.result_buffer import ResultBuffer, WaveBuffer, WindowTable
from phase_rppg.session.results import FaceEvent, FacePosition, WindowResult
from phase_rppg.signal.rate import Peak
from phase_rppg.types import Estimate, Frame, NoReading, Quality, Reading, Reason, Waveform

NUMBER = st.floats(-1e6, 1e6)
PEAK = st.builds(Peak, *[NUMBER] * 4)
QUALITY = st.builds(Quality, *[NUMBER] * 13)


@st.composite
def windows(draw: st.DrawFn) -> WindowResult:
    start_s, end_s = draw(NUMBER), draw(NUMBER)
    reading: Reading = draw(
        st.builds(Estimate, *[NUMBER] * 4, st.just(start_s), st.just(end_s))
        | st.builds(
            NoReading,
            st.sampled_from(Reason),
            st.just(start_s),
            st.just(end_s),
            NUMBER,
            st.none() | st.floats(40, 240),
        )
    )
    return WindowResult(3, start_s, end_s, reading, draw(st.none() | PEAK), draw(QUALITY))


@settings(deadline=None, max_examples=30)
@given(st.lists(windows(), max_size=25))
def test_windows_are_returned_as_stored(given_windows: list[WindowResult]) -> None:
    kept = WindowTable(3, given_windows)
    assert list(kept) == given_windows
    assert kept[1:] == given_windows[1:]
    assert kept == WindowTable(3, given_windows)


@settings(deadline=None, max_examples=30)
@given(st.lists(windows(), min_size=1, max_size=25), windows(), st.integers(0, 24))
def test_the_reading_of_a_window_can_be_replaced(
    given_windows: list[WindowResult], other: WindowResult, at: int
) -> None:
    index = at % len(given_windows)
    kept = WindowTable(3, given_windows)
    kept.replace_reading(index, other.reading)
    old = given_windows[index]
    reading = replace(other.reading, start_s=old.start_s, end_s=old.end_s)
    assert kept[index] == replace(old, reading=reading)
    assert [w for i, w in enumerate(kept) if i != index] == [
        w for i, w in enumerate(given_windows) if i != index
    ]


def test_an_index_beyond_the_last_window_is_an_error() -> None:
    with pytest.raises(IndexError):
        WindowTable(0)[0]


def test_pieces_of_a_wave_join_and_gaps_are_invalid() -> None:
    wave = WaveBuffer(10.0, 2.0)
    seen = np.array([True, True])
    wave.append(Waveform(np.array([1.0, 2.0]), 10.0, 2.0, seen))
    wave.append(Waveform(np.array([5.0, 6.0]), 10.0, 2.4, seen))
    whole = wave.to_waveform()
    np.testing.assert_array_equal(whole.values, [1, 2, 0, 0, 5, 6])
    np.testing.assert_array_equal(whole.valid, [True, True, False, False, True, True])
    assert whole.start_s == 2.0


def test_a_long_wave_is_returned_as_stored() -> None:
    values = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    valid = values > -1
    wave = WaveBuffer(30.0, 0.0)
    for first in range(0, 5000, 37):
        piece = slice(first, first + 37)
        wave.append(Waveform(values[piece], 30.0, first / 30, valid[piece]))
    whole = wave.to_waveform()
    np.testing.assert_array_equal(whole.values, values)
    np.testing.assert_array_equal(whole.valid, valid)


def test_the_memory_of_an_hour_of_windows_is_small() -> None:
    """The peak counts, because an array that is copied when it grows needs twice its size."""
    window = WindowResult(3, 0.0, 10.0, NoReading(Reason.MOTION, 0.0, 10.0), None, Quality(*[1.0] * 11))
    tracemalloc.start()
    kept = WindowTable(3, (window for _ in range(3600)))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(kept) == 3600
    assert kept[3599] == window
    assert peak_bytes < 1.2 * 3600 * 264


def position(t_s: float, x: float = 10.0, face: int = 3) -> FacePosition:
    return FacePosition(face, t_s, (x, 20.0, 30.0, 40.0), np.zeros((5, 2)))


def test_one_box_per_second_is_kept() -> None:
    buffer = ResultBuffer()
    for i in range(50):
        buffer.add([position(i / 10, float(i))])
    track = buffer.boxes[3].to_track(3)
    np.testing.assert_allclose(track.t_s, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(track.boxes[:, 0], [0, 10, 20, 30, 40])
    np.testing.assert_array_equal(track.boxes[0, 1:], [20, 30, 40])
    assert (track.id, track.present.all()) == (3, True)


def test_boxes_show_when_a_face_was_lost_and_returned() -> None:
    buffer = ResultBuffer()
    buffer.add([position(0.0)])
    buffer.add([FaceEvent(3, 0.5, "lost"), FaceEvent(4, 0.5, "lost")])
    buffer.add([FaceEvent(3, 0.9, "returned"), position(0.9, 12.0)])
    track = buffer.boxes[3].to_track(3)
    assert track.t_s.tolist() == [0.0, 0.5, 0.9]
    assert track.present.tolist() == [True, False, True]
    assert track.boxes[:, 0].tolist() == [10, 10, 12]
    assert list(buffer.boxes) == [3]


def test_the_first_picture_of_a_face_is_kept() -> None:
    buffer = ResultBuffer()
    first, second = (np.full((100, 120, 3), level, np.uint8) for level in (50, 90))
    buffer.add([position(0.0)], Frame(first, 0.0))
    buffer.add([position(1.0)], Frame(second, 1.0))
    assert buffer.thumbnails[3].shape == (96, 96, 3)
    assert (buffer.thumbnails[3] == 50).all()
