"""Splits consist of sorted subjects and do not overlap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.datasets import splits
from phase_rppg.errors import ArgumentError, UnknownNameError
from phase_rppg.types import Recording, Waveform

WAVE = Waveform(np.zeros(2), 30.0, 0.0, np.ones(2, bool))


def recordings(count: int) -> list[Recording]:
    return [Recording("ubfc_rppg", f"subject{i}", f"subject{i}", None, WAVE) for i in range(count, 0, -1)]  # type: ignore[arg-type]


def test_the_published_fractions_cut_the_sorted_subjects() -> None:
    split = splits.named("ubfc_rppg", "intra", recordings(42))
    assert split.train == tuple(f"subject{i}" for i in range(1, 31))
    assert split.test == tuple(f"subject{i}" for i in range(31, 43))
    mmpd = splits.named("mmpd", "intra", recordings(10))
    assert (len(mmpd.train), len(mmpd.valid), len(mmpd.test)) == (7, 1, 2)


@settings(deadline=None, max_examples=30)
@given(count=st.integers(1, 60), name=st.sampled_from(["intra", "cross", "whole"]))
def test_everybody_is_somewhere_and_nobody_twice(count: int, name: str) -> None:
    split = splits.named("mmpd", name, recordings(count))
    everyone = [*split.train, *split.valid, *split.test]
    assert sorted(everyone) == sorted({f"subject{i}" for i in range(1, count + 1)})


def test_a_subject_in_two_parts_is_refused() -> None:
    with pytest.raises(ArgumentError, match="anna in train and in test"):
        splits.Split("own", ("anna", "bert"), (), ("anna",))


def test_unknown_names_are_answered_with_choices() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'intra'"):
        splits.named("pure", "inter", recordings(3))
