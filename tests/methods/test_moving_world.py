"""On people who move, no method is worse than looking at green alone."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg import registry, synth
from phase_rppg.signal import rate
from phase_rppg.types import Clip, RgbTrace

RECORDINGS = 8


@pytest.fixture(scope="module")
def samples() -> list[synth.Sample]:
    world = synth.load("motion")
    return [
        synth.sample(world, 11, i, seconds=12, size=36, fixed={"codec.name": "raw"})
        for i in range(RECORDINGS)
    ]


def mean_error_bpm(name: str, samples: list[synth.Sample]) -> float:
    method = registry.load("methods", name)
    errors = []
    for one in samples:
        valid = np.ones(len(one.pixels), bool)
        skin = one.pixels[:, one.truth.mask > 0.5].mean(1)  # (T,3)
        trace = RgbTrace(skin, 30.0, 0.0, valid)
        clip = Clip(one.pixels, trace.t_s, 30.0, valid)
        wave = method.extract(trace if method.INPUT == "trace" else clip)
        errors.append(abs(rate.spectral_bpm(wave) - float(one.truth.bpm.mean())))
    return float(np.mean(errors))


@pytest.mark.parametrize("name", [n for n in registry.names("methods") if n != "green"])
def test_it_is_no_worse_than_green_when_people_move(name: str, samples: list[synth.Sample]) -> None:
    assert mean_error_bpm(name, samples) <= mean_error_bpm("green", samples)
