"""Variability of constructed beats has the textbook values, and None where it is not reliable."""

from __future__ import annotations

import math

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


def test_breathing_modulation_is_high_frequency_and_slow_modulation_is_low() -> None:
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


def test_a_few_missed_beats_change_little_and_many_give_none() -> None:
    times = beats(120, sway_s=0.03)
    whole = hrv.hrv(times)
    few = hrv.hrv(np.delete(times, [20, 60, 100]))
    assert whole is not None
    assert few is not None
    assert few.rmssd_ms == pytest.approx(whole.rmssd_ms, rel=0.1)
    rng = np.random.default_rng(0)
    assert hrv.hrv(np.sort(rng.uniform(0, 120, 150))) is None


@pytest.mark.parametrize("breathing_hz", [0.15, 0.25, 0.35])
def test_breathing_is_estimated_from_the_modulation(breathing_hz: float) -> None:
    assert hrv.respiration(beats(60, breathing_hz=breathing_hz)) == pytest.approx(60 * breathing_hz, abs=1)


def test_constant_intervals_have_no_breathing() -> None:
    steady = beats(60, sway_s=0.0)
    noisy = steady + np.random.default_rng(0).normal(0, 0.02, len(steady))
    assert hrv.respiration(steady) is None
    assert hrv.respiration(noisy) is None


@pytest.mark.parametrize("seconds", [31, 45, 60, 120])
@pytest.mark.parametrize("kind", ["timing", "interval", "drift"])
def test_noise_has_no_breathing(kind: str, seconds: float) -> None:
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
def test_breathing_is_estimated_from_beats_with_timing_errors(seconds: float) -> None:
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
def test_too_few_beats_give_none(times: list[float]) -> None:
    assert hrv.hrv(np.array(times)) is None


def test_each_value_is_none_above_its_noise_limit() -> None:
    times = beats(150, sway_s=0.03)
    whole = hrv.hrv(times)
    assert whole is not None
    assert whole.rmssd_ms is not None
    assert whole.sdnn_ms is not None
    third_of_rmssd_s = whole.rmssd_ms / 1000 / np.sqrt(18)  # 6σ² = RMSSD² / 3
    found = hrv.hrv(times, 0.99 * third_of_rmssd_s)
    assert found is not None
    assert (found.pnn50, found.lf_hf) == (whole.pnn50, whole.lf_hf)
    assert found.rmssd_ms is not None
    found = hrv.hrv(times, 1.01 * third_of_rmssd_s)
    assert found is not None
    assert (found.rmssd_ms, found.pnn50, found.lf_hf) == (None, None, None)
    assert found.sdnn_ms is not None
    found = hrv.hrv(times, 0.021 * 0.8)  # more than 2 % of the interval
    assert found is not None
    assert found.sdnn_ms is None


def values(found: hrv.Hrv | None) -> np.ndarray:
    """RMSSD and SDNN, which must be present."""
    assert found is not None
    assert found.rmssd_ms is not None
    assert found.sdnn_ms is not None
    return np.array([found.rmssd_ms, found.sdnn_ms])


@pytest.mark.parametrize("jitter_s", [0.002, 0.004, 0.006])
def test_variability_without_its_noise_is_that_of_the_heart(jitter_s: float) -> None:
    """Timing errors raise RMSSD and SDNN; with their size known, the mean over recordings is right."""
    rng = np.random.default_rng(3)
    raised, corrected = [], []
    for _ in range(60):
        true_s = varied_beats(80, 0.02)
        shifted_s = true_s + rng.normal(0, jitter_s, len(true_s))
        true, plain, found = hrv.hrv(true_s), hrv.hrv(shifted_s), hrv.hrv(shifted_s, jitter_s)
        known = values(true)
        raised.append(values(plain) / known)
        corrected.append(values(found) / known)
    assert (np.mean(raised, 0) > np.mean(corrected, 0)).all()
    assert np.mean(corrected, 0) == pytest.approx(1, abs=0.02)


def varied_beats(count: int, spread_s: float = 0.05) -> np.ndarray:
    return np.cumsum(0.8 + spread_s * np.random.default_rng(0).normal(size=count))


def test_the_failed_limit_is_named_with_its_distance() -> None:
    few = hrv.failed_limits(np.arange(2.0))
    assert few == dict.fromkeys(("rmssd_ms", "sdnn_ms", "pnn50", "lf_hf"), hrv.HrvLimit("beats", 2, 3))
    short = hrv.failed_limits(np.arange(20) * 0.8)
    assert {name: (limit.name, limit.value, limit.needed) for name, limit in short.items()} == {
        "rmssd_ms": ("duration_s", pytest.approx(15.2), 30),
        "sdnn_ms": ("duration_s", pytest.approx(15.2), 45),
        "pnn50": ("duration_s", pytest.approx(15.2), 45),
        "lf_hf": ("duration_s", pytest.approx(15.2), 120),
    }
    irregular = hrv.failed_limits(np.cumsum(np.tile([0.5, 1.2], 40)))
    assert {(limit.name, limit.needed) for limit in irregular.values()} == {("normal_share", 0.8)}
    noisy = hrv.failed_limits(varied_beats(50), jitter_s=0.05)
    assert (noisy["rmssd_ms"].name, noisy["rmssd_ms"].value) == ("jitter_s", 0.05)
    assert noisy["rmssd_ms"].needed < 0.02
    assert noisy["sdnn_ms"].name == "duration_s"
    unknown = hrv.failed_limits(varied_beats(50), jitter_s=float("inf"))
    assert unknown["rmssd_ms"].value is None
    assert set(hrv.failed_limits(varied_beats(50), jitter_s=0.001)) == {"sdnn_ms", "pnn50", "lf_hf"}
    assert hrv.failed_limits(varied_beats(200), jitter_s=0.001) == {}


@pytest.mark.parametrize("spread_s", [0.005, 0.02, 0.05])
def test_a_limit_fails_exactly_when_its_value_is_absent(spread_s: float) -> None:
    beats_s = varied_beats(200, spread_s)
    needed_s = {name: limit.needed for name, limit in hrv.failed_limits(beats_s, 1.0).items()}
    assert len(needed_s) == 4
    for name, limit_s in needed_s.items():
        for factor in (0.5, 0.99, 1.01, 2.0):
            found = hrv.hrv(beats_s, factor * limit_s)
            assert found is not None
            assert (getattr(found, name) is None) == (factor > 1)
            assert (name in hrv.failed_limits(beats_s, factor * limit_s)) == (factor > 1)


def test_noise_counts_less_in_sdnn_than_in_rmssd() -> None:
    """Timing errors add 2σ² to SDNN² and 6σ² to RMSSD²; here no other limit is smaller."""
    beats_s = varied_beats(200, 0.01)
    found, limits = hrv.hrv(beats_s), hrv.failed_limits(beats_s, 1.0)
    assert found is not None
    assert limits["rmssd_ms"].needed == pytest.approx(found.rmssd_ms / 1000 / math.sqrt(18))
    assert limits["sdnn_ms"].needed == pytest.approx(found.sdnn_ms / 1000 / math.sqrt(6))
