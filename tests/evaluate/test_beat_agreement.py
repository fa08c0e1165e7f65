"""Beats that follow the reference with any delay agree with it; only common intervals are compared."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.evaluate.beat_agreement import interval_errors_s, variability_ratios
from phase_rppg.signal.hrv import hrv

TRUE_S = np.cumsum(0.8 + 0.05 * np.sin(np.arange(90)))


@pytest.mark.parametrize("lag_s", [-0.2, 0.0, 0.13, 0.4])
def test_a_constant_delay_is_no_error(lag_s: float) -> None:
    errors_s = interval_errors_s(TRUE_S + lag_s, TRUE_S)
    assert len(errors_s) == len(TRUE_S) - 1
    assert errors_s == pytest.approx(0, abs=1e-9)


def test_the_error_of_intervals_is_that_of_their_beats() -> None:
    moved_s = TRUE_S + 0.1
    moved_s[40] += 0.03
    errors_s = interval_errors_s(moved_s, TRUE_S)
    assert np.sort(errors_s)[[0, -1]] == pytest.approx([-0.03, 0.03])
    assert np.count_nonzero(np.abs(errors_s) > 1e-9) == 2


def test_intervals_across_a_missed_or_an_extra_beat_are_left_out() -> None:
    assert len(interval_errors_s(np.delete(TRUE_S, 30), TRUE_S)) == len(TRUE_S) - 3
    extra_s = np.sort(np.append(TRUE_S, TRUE_S[30] + 0.4))
    errors_s = interval_errors_s(extra_s, TRUE_S)
    assert len(errors_s) == len(TRUE_S) - 2
    assert errors_s == pytest.approx(0, abs=1e-9)
    assert len(interval_errors_s(TRUE_S[:1], TRUE_S)) == 0


def test_the_ratio_of_equal_beats_is_one() -> None:
    ratios = variability_ratios(hrv(TRUE_S + 0.1), TRUE_S + 0.1, TRUE_S)
    assert ratios == {"rmssd_ms": pytest.approx(1), "sdnn_ms": pytest.approx(1)}
    assert variability_ratios(None, TRUE_S, TRUE_S) == {"rmssd_ms": None, "sdnn_ms": None}
