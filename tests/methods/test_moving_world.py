"""On people who move, no method is worse than the green channel, except PCA in `wild`."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from phase_rppg import registry, synth
from phase_rppg.signal import rate
from phase_rppg.types import Clip, RgbTrace

RECORDINGS = 8
# A fast heart that is missed costs 100 bpm, so the mean error of 8 recordings of `wild` varies by 30 bpm.
# PCA is not shown to be better than green in `wild`: −1.4 ± 1.7 bpm over 320 recordings.
METHODS = [name for name in registry.names("methods") if name != "green"]
CASES = [
    *(("motion", (11,), name) for name in METHODS),
    *(pytest.param("phone", (11, 12), name, marks=pytest.mark.slow) for name in METHODS),
    *(
        pytest.param("wild", tuple(range(11, 19)), name, marks=pytest.mark.slow)
        for name in METHODS
        if name != "pca"
    ),
]


@functools.cache
def samples(world: str, seeds: tuple[int, ...]) -> list[synth.Sample]:
    made = synth.load(world)
    return [
        synth.sample(made, seed, i, seconds=12, size=36, fixed={"codec.name": "raw"})
        for seed in seeds
        for i in range(RECORDINGS)
    ]


@functools.cache
def mean_error_bpm(name: str, world: str, seeds: tuple[int, ...]) -> float:
    method = registry.load("methods", name)
    errors = []
    for one in samples(world, seeds):
        valid = np.ones(len(one.pixels), bool)
        skin = one.pixels[:, one.truth.mask > 0.5].mean(1)  # (T,3)
        trace = RgbTrace(skin, 30.0, 0.0, valid)
        clip = Clip(one.pixels, trace.t_s, 30.0, valid)
        wave = method.extract(trace if method.INPUT == "trace" else clip)
        errors.append(abs(rate.spectral_bpm(wave) - float(one.truth.bpm.mean())))
    return float(np.mean(errors))


@pytest.mark.parametrize(("world", "seeds", "name"), CASES)
def test_it_is_no_worse_than_green_when_people_move(world: str, seeds: tuple[int, ...], name: str) -> None:
    assert mean_error_bpm(name, world, seeds) <= mean_error_bpm("green", world, seeds)
