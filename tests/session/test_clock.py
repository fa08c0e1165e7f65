"""The uniform clock: ticks from timestamps, interpolation between frames, bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.session.clock import Clock, History
from phase_rppg.signal.constants import MAX_GAP_S


@settings(max_examples=25, deadline=None)
@given(
    gaps=st.lists(st.floats(0.001, 0.4), min_size=2, max_size=60),
    fps=st.sampled_from([10.0, 29.97, 30.0]),
    start_s=st.floats(-5, 1e5),
)
def test_linear_values_are_interpolated_exactly(gaps: list[float], fps: float, start_s: float) -> None:
    """A value that is linear in time is exact at every tick, whatever the frame times are."""
    times = start_s + np.cumsum([0.0, *gaps])
    clock = Clock(fps, 10.0)
    history = History(1, 10_000, 0)
    before = times[0]
    for t_s in times:
        step = clock.advance(float(t_s))
        assert step.first == history.stop
        history.append((before + step.weights * (t_s - before))[:, None], step.seen)
        before = t_s
    rows, seen = history.window(0, clock.count)
    assert seen.all()
    np.testing.assert_allclose(rows[:, 0], times[0] + np.arange(clock.count) / fps, atol=1e-4)
    assert clock.count == int(np.floor((times[-1] - times[0]) * fps + 1e-6)) + 1


def test_a_long_pause_is_not_interpolated() -> None:
    clock = Clock(30.0, 10.0)
    clock.advance(0.0)
    assert clock.advance(MAX_GAP_S).seen
    assert not clock.advance(2.5).seen


def test_the_frame_timing_is_that_of_the_frames() -> None:
    clock = Clock(30.0, 100.0)
    for t_s in [*np.arange(0, 5, 1 / 24), *np.arange(6, 10, 1 / 24)]:
        clock.advance(float(t_s))
    fps, max_gap_s = clock.frame_timing(0.0, 10.0)
    assert fps == pytest.approx(216 / 10, abs=0.2)
    assert max_gap_s == pytest.approx(1.0, abs=0.06)
    assert clock.frame_timing(20.0, 30.0) == (0.0, 10.0)


@settings(max_examples=20, deadline=None)
@given(counts=st.lists(st.integers(0, 30), min_size=1, max_size=40), keep=st.integers(1, 50))
def test_a_history_holds_exactly_the_last_ticks(counts: list[int], keep: int) -> None:
    history, everything = History(2, keep, 5), np.zeros((0, 2))
    for count in counts:
        rows = np.arange(len(everything), len(everything) + count)[:, None] * [1.0, 2.0]
        history.append(rows, True)
        everything = np.concatenate([everything, rows])
    assert history.stop == 5 + len(everything)
    first = max(history.stop - keep, 5)
    assert history.start == first
    rows, seen = history.window(first - 3, history.stop)
    assert not seen[:3].any()
    assert seen[3:].all()
    assert np.array_equal(rows[3:], everything[first - 5 :])


def test_ticks_after_the_loss_of_a_face_become_invalid() -> None:
    history = History(1, 100, 0)
    history.append(np.ones((20, 1)), True)
    history.invalidate_after(11)
    assert np.array_equal(history.window(0, 20)[1], np.arange(20) <= 11)


def test_values_are_added_to_the_ticks_that_are_held() -> None:
    history = History(2, 10, 0)
    history.append(np.zeros((25, 2)), True)
    history.add(12, np.arange(8.0), 1)
    rows, _ = history.window(15, 25)
    assert np.array_equal(rows[:, 1], [3, 4, 5, 6, 7, 0, 0, 0, 0, 0])
