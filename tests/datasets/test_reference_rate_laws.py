"""Laws of the reference rate: the samples of a window, the coverage that a rate needs, flat stretches."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg import registry
from phase_rppg.datasets import reference_rate, splits
from phase_rppg.types import Recording, Waveform

FPS = 50.0


def wave(values: np.ndarray, start_s: float = 3.0, valid: np.ndarray | None = None) -> Waveform:
    return Waveform(values, FPS, start_s, np.ones(len(values), bool) if valid is None else valid)


def pulse(bpm: float, seconds: float) -> np.ndarray:
    return np.cos(2 * np.pi * bpm / 60 * np.arange(round(seconds * FPS)) / FPS)


@pytest.mark.parametrize(
    ("start_s", "end_s", "first", "last"),
    [
        (3.0, 4.0, 0, 50),  # the end does not belong to it
        (3.01, 3.05, 1, 3),  # samples at 3.02 and 3.04
        (3.5, 4.5, 25, 75),
        (0.0, 3.02, 0, 1),
        (4.9, 99.0, 95, 100),
        (99.0, 100.0, 100, 100),
        (0.0, 1.0, 0, 0),
    ],
)
def test_a_window_holds_the_samples_from_its_start_to_before_its_end(
    start_s: float, end_s: float, first: int, last: int
) -> None:
    part = reference_rate.window_of(wave(np.arange(100.0)), start_s, end_s)
    assert part.values.tolist() == list(range(first, last))
    assert len(part.valid) == last - first
    assert part.fps == FPS
    if last > first:
        assert part.start_s == pytest.approx(3.0 + first / FPS)


@pytest.mark.parametrize(("known", "given"), [(0.91, True), (0.89, False)])
def test_nine_tenths_of_a_window_must_be_known(known: float, given: bool) -> None:
    values = pulse(72, 20)
    valid = np.ones(len(values), bool)
    valid[round(known * 500) : 500] = False
    found = reference_rate.window_bpm(wave(values, valid=valid), 3.0, 13.0)
    assert (found is not None) == given
    if found is not None:
        assert found == pytest.approx(72, abs=0.2)


def test_a_window_beyond_the_reference_or_without_a_pulse_has_no_rate() -> None:
    assert reference_rate.window_bpm(wave(pulse(72, 20)), 15.0, 25.0) is None
    assert reference_rate.window_bpm(wave(np.zeros(1000)), 3.0, 13.0) is None
    assert reference_rate.window_bpm(wave(pulse(72, 20)), 3.0, 13.0) == pytest.approx(72, abs=0.1)


def test_rates_come_from_windows_of_ten_seconds_every_five() -> None:
    """60 bpm for 10 s, then 90: the first window is at 60, the last at 90, the one between is neither."""
    values = np.concatenate([pulse(60, 10), pulse(90, 10)])
    found = reference_rate.window_rates(wave(values))
    assert len(found) == 3
    assert (found[0], found[2]) == pytest.approx((60, 90), abs=0.2)
    assert len(reference_rate.window_rates(wave(pulse(70, 10)))) == 1
    assert len(reference_rate.window_rates(wave(pulse(70, 9.5)))) == 1  # still nine tenths of a window
    assert len(reference_rate.window_rates(wave(pulse(70, 5)))) == 0
    np.testing.assert_allclose(reference_rate.window_rates(wave(pulse(70, 30)), 6.0, 2.0), 70, atol=0.2)
    assert len(reference_rate.window_rates(wave(pulse(70, 30)), 6.0, 2.0)) == 13


def test_windows_without_a_rate_are_left_out() -> None:
    values = np.concatenate([pulse(60, 10), np.zeros(500), pulse(90, 10)])
    valid = np.ones(1500, bool)
    valid[500:1000] = False
    np.testing.assert_allclose(reference_rate.window_rates(wave(values, valid=valid)), [60, 90], atol=0.2)


def flat(first_s: float, last_s: float, level: float = 0.3, seconds: float = 20.0) -> np.ndarray:
    values = pulse(60, seconds)
    values[round(first_s * FPS) : round(last_s * FPS)] = level
    return values


def test_a_flat_stretch_is_found_with_its_ends() -> None:
    (found,) = reference_rate.flat_intervals(wave(flat(5.0, 8.0)))
    assert found == pytest.approx((8.0, 11.0), abs=0.06)
    assert reference_rate.flat_intervals(wave(pulse(60, 20))) == []


@pytest.mark.parametrize(("length_s", "found"), [(1.3, 0), (1.7, 1)])
def test_less_than_one_and_a_half_seconds_are_no_stretch(length_s: float, found: int) -> None:
    assert len(reference_rate.flat_intervals(wave(flat(5.1, 5.1 + length_s, level=0.9)))) == found


def test_several_stretches_and_those_at_the_ends_are_found() -> None:
    values = flat(0.0, 3.0)
    values[400:550] = 0.3
    values[-150:] = 0.3
    found = reference_rate.flat_intervals(wave(values))
    assert len(found) == 3
    assert found[0][0] == pytest.approx(3.0)
    assert found[-1][1] == pytest.approx(23.0)


@pytest.mark.parametrize(("height", "found"), [(0.01, 1), (0.035, 1), (0.045, 0), (0.08, 0)])
def test_a_stretch_may_move_by_a_fiftieth_of_the_range(height: float, found: int) -> None:
    """The range of a cosine between its percentiles 5 and 95 is 1.98, a fiftieth of it 0.04."""
    values = flat(5.0, 8.0)
    values[250:400] += height * (np.arange(150) % 2)
    assert len(reference_rate.flat_intervals(wave(values))) == found


def test_the_range_is_that_of_the_valid_part() -> None:
    values = flat(5.0, 8.0)
    values[250:400] += 0.1 * (np.arange(150) % 2)
    valid = np.ones(1000, bool)
    values[:100], valid[:100] = 1e3, False
    assert len(reference_rate.flat_intervals(wave(values, valid=valid))) == 1  # only the invalid part itself
    assert reference_rate.flat_intervals(wave(np.zeros(10))) == []
    nothing = np.zeros(1000, bool)
    assert len(reference_rate.flat_intervals(wave(np.zeros(1000), valid=nothing))) == 1


# ---- splits ------------------------------------------------------------------------------------------------


def sizes(dataset: str, name: str, count: int = 100) -> tuple[int, int, int]:
    recordings = [
        Recording(dataset, f"s{i}", f"s{i}", None, wave(np.zeros(2)))  # type: ignore[arg-type]
        for i in range(count)
    ]
    split = splits.named(dataset, name, recordings)
    return len(split.train), len(split.valid), len(split.test)


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [("ubfc_rppg", (72, 0, 28)), ("pure", (60, 0, 40)), ("mmpd", (70, 10, 20)), ("buaa_mihr", (70, 0, 30)),
     ("folder", (70, 10, 20))],
)  # fmt: skip
def test_the_fractions_are_those_of_the_literature(dataset: str, expected: tuple[int, int, int]) -> None:
    assert sizes(dataset, "intra") == expected
    assert sizes(dataset, "cross") == (80, 20, 0)
    assert sizes(dataset, "whole") == (0, 0, 100)


@pytest.mark.parametrize("dataset", ["ubfc_rppg", "pure", "mmpd", "buaa_mihr", "folder"])
def test_each_part_of_a_split_is_a_range_of_fractions(dataset: str) -> None:
    own = getattr(registry.load("datasets", dataset), "SPLITS", splits.DEFAULT)
    for parts in (*own.values(), splits.CROSS, splits.WHOLE):
        assert all(0 <= begin <= end <= 1 for begin, end in parts)


def test_fractions_are_cut_downwards_and_binary_fractions_do_not_matter() -> None:
    names = [f"s{i}" for i in range(7)]
    split = splits.by_ratio("x", names, (0, 0.5), (0, 0), (0.5, 1))
    assert (len(split.train), len(split.test)) == (3, 4)
    ten = splits.by_ratio("x", [f"s{i}" for i in range(10)], (0, 0.7), (0.7, 0.8), (0.8, 1))
    assert (ten.train[-1], ten.valid, ten.test) == ("s6", ("s7",), ("s8", "s9"))
    assert splits.by_ratio("x", ["b", "a", "a"], (0, 1), (0, 0), (0, 0)).train == ("a", "b")


def test_a_split_names_what_it_is_of() -> None:
    assert splits.by_ratio("x", ["a"], (0, 1), (0, 0), (0, 0)).name == "x"
