"""The incremental clock and the array resampler follow one rule."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal import resample
from phase_rppg.signal.constants import MAX_GAP_S
from phase_rppg.signal.uniform_clock import UniformClock, can_interpolate, ticks_until


@pytest.mark.parametrize("fps", [10.0, 29.97, 30.0])
def test_incremental_and_array_form_agree(fps: float) -> None:
    rng = np.random.default_rng(3)
    t_s = 5 + np.cumsum(rng.uniform(0.01, 0.06, 300) + 0.8 * (rng.random(300) < 0.02))
    values = rng.normal(size=300)
    clock, out, seen, before = UniformClock(fps), [], [], values[0]
    for time_s, value in zip(t_s, values, strict=True):
        step = clock.advance(float(time_s))
        out += list(before + step.weights * (value - before))
        seen += [step.seen] * len(step.weights)
        before = value
    expected, start_s, valid = resample.to_uniform(t_s, values, fps)
    assert start_s == clock.time_s(0)
    assert not valid.all()
    np.testing.assert_array_equal(seen, valid)
    np.testing.assert_allclose(np.array(out)[valid], expected[valid], atol=1e-9)


def test_a_rounded_timestamp_still_reaches_its_tick() -> None:
    assert ticks_until(1 / 30 - 1e-9, 30.0) == 2
    assert ticks_until(1 / 30 - 1e-6, 30.0) == 1


def test_the_longest_gap_is_included() -> None:
    assert can_interpolate(MAX_GAP_S)
    assert not can_interpolate(MAX_GAP_S + 1e-6)
