"""Laws of variability: textbook values on constructed beats, and silence where it would mean nothing."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg.signal import hrv


def beats(
    seconds: float, sway_s: float = 0.05, breathing_hz: float = 0.25, period_s: float = 0.8
) -> np.ndarray:
    times = [0.0]
    while times[-1] < seconds:
        times.append(times[-1] + period_s + sway_s * np.sin(2 * np.pi * breathing_hz * times[-1]))
    return np.array(times)


def test_numbers_equal_their_definitions() -> None:
    times = beats(300)
    ms = 1000 * np.diff(times)
    found = hrv.hrv(times)
    assert found is not None
    assert found.sdnn_ms == pytest.approx(ms.std(ddof=1))
    assert found.rmssd_ms == pytest.approx(np.sqrt(np.mean(np.diff(ms) ** 2)))
    assert found.pnn50 == pytest.approx(np.mean(np.abs(np.diff(ms)) > 50))


def test_breathing_sway_is_high_frequency_and_slow_sway_is_low() -> None:
    fast, slow = hrv.hrv(beats(300, breathing_hz=0.25)), hrv.hrv(beats(300, breathing_hz=0.08))
    assert fast is not None
    assert slow is not None
    assert fast.lf_hf is not None
    assert slow.lf_hf is not None
    assert fast.lf_hf < 0.2
    assert slow.lf_hf > 5


@pytest.mark.parametrize(("seconds", "has"), [(20, ""), (40, "r"), (80, "rs"), (150, "rsl")])
def test_each_number_has_its_least_duration(seconds: float, has: str) -> None:
    found = hrv.hrv(beats(seconds))
    assert (found is not None) == ("r" in has)
    if found is not None:
        assert (found.sdnn_ms is not None) == (found.pnn50 is not None) == ("s" in has)
        assert (found.lf_hf is not None) == ("l" in has)


def test_a_few_missed_beats_change_little_and_many_silence_it() -> None:
    times = beats(120, sway_s=0.03)
    whole = hrv.hrv(times)
    few = hrv.hrv(np.delete(times, [20, 60, 100]))
    assert whole is not None
    assert few is not None
    assert few.rmssd_ms == pytest.approx(whole.rmssd_ms, rel=0.1)
    rng = np.random.default_rng(0)
    assert hrv.hrv(np.sort(rng.uniform(0, 120, 150))) is None


@pytest.mark.parametrize("breathing_hz", [0.15, 0.25, 0.35])
def test_breathing_is_read_from_the_sway(breathing_hz: float) -> None:
    assert hrv.respiration(beats(60, breathing_hz=breathing_hz)) == pytest.approx(60 * breathing_hz, abs=1)


def test_no_sway_no_breathing() -> None:
    steady = beats(60, sway_s=0.0)
    noisy = steady + np.random.default_rng(0).normal(0, 0.02, len(steady))
    assert hrv.respiration(steady) is None
    assert hrv.respiration(noisy) is None


@pytest.mark.parametrize("seconds", [31, 45, 60, 120])
@pytest.mark.parametrize("kind", ["timing", "interval", "drift"])
def test_noise_does_not_breathe(kind: str, seconds: float) -> None:
    rng = np.random.default_rng(4)
    found = 0
    for _ in range(200):
        count = int(seconds / 0.8) + 1
        steps_s = np.full(count, 0.8)
        if kind == "interval":
            steps_s += rng.normal(0, 0.03, count)
        elif kind == "drift":
            wander_s = np.cumsum(rng.normal(0, 0.008, count))
            steps_s += wander_s - wander_s.mean()
        times = np.cumsum(steps_s)
        if kind == "timing":
            times += rng.normal(0, 0.015, count)
        found += hrv.respiration(times) is not None
    assert found <= 4  # of 200


@pytest.mark.parametrize("seconds", [35, 60, 120])
def test_breathing_is_still_read_from_beats_that_are_timed_roughly(seconds: float) -> None:
    rng = np.random.default_rng(5)
    read = [
        hrv.respiration(times + rng.normal(0, 0.008, len(times)))
        for times in (beats(seconds, breathing_hz=hz) for hz in np.linspace(0.13, 0.38, 40))
    ]
    given = [found for found in read if found is not None]
    assert len(given) >= 36
    true = 60 * np.linspace(0.13, 0.38, 40)
    assert all(abs(f - t) < 1 for f, t in zip(read, true, strict=True) if f is not None)


@pytest.mark.parametrize("times", [[], [1.0], [1.0, 2.0]])
def test_too_few_beats_say_nothing(times: list[float]) -> None:
    assert hrv.hrv(np.array(times)) is None


def test_each_number_is_held_back_by_the_noise_that_would_make_it() -> None:
    times = beats(150, sway_s=0.03)
    whole = hrv.hrv(times)
    assert whole is not None
    assert whole.rmssd_ms is not None
    assert whole.sdnn_ms is not None
    third_of_rmssd_s = whole.rmssd_ms / 1000 / np.sqrt(18)  # 6σ² = RMSSD² / 3
    found = hrv.hrv(times, 0.99 * third_of_rmssd_s)
    assert found == whole
    found = hrv.hrv(times, 1.01 * third_of_rmssd_s)
    assert found is not None
    assert (found.rmssd_ms, found.pnn50, found.lf_hf) == (None, None, None)
    assert found.sdnn_ms == whole.sdnn_ms
    found = hrv.hrv(times, 0.021 * 0.8)  # more than 2 % of the interval
    assert found is not None
    assert found.sdnn_ms is None
