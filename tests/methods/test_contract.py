"""Properties that every registered method has; new files in the folder are included automatically."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from phase_rppg import registry
from phase_rppg.errors import ArgumentError
from phase_rppg.signal import rate
from phase_rppg.types import Clip, RgbTrace, Waveform

pytestmark = pytest.mark.smoke

NAMES = registry.names("methods")
Input = RgbTrace | Clip


@pytest.fixture(params=NAMES)
def method(request: pytest.FixtureRequest) -> object:
    return registry.load("methods", request.param)


@pytest.fixture
def make(
    method: object, make_trace: Callable[..., RgbTrace], make_clip: Callable[..., Clip]
) -> Callable[..., Input]:
    return make_trace if method.INPUT == "trace" else make_clip  # type: ignore[attr-defined]


def start_s(given: Input) -> float:
    return given.start_s if isinstance(given, RgbTrace) else float(given.t_s[0])


def test_all_bundled_methods_are_registered() -> None:
    assert {"green", "ica", "pca", "chrom", "pos", "lgi", "pbv", "omit", "2sr"} <= set(NAMES)


def test_it_has_a_name_and_a_citation(method) -> None:
    assert method.INPUT in ("trace", "clip")
    assert any(year in method.CITATION for year in map(str, range(2000, 2030)))
    assert method.__doc__


@pytest.mark.parametrize("bpm", [48.0, 72.0, 132.0])
@pytest.mark.parametrize("fps", [20.0, 30.0])
def test_it_recovers_the_rate_of_synthetic_skin(method, make, bpm: float, fps: float) -> None:
    wave = method.extract(make(bpm=bpm, fps=fps))
    assert abs(rate.spectral_bpm(wave) - bpm) < 0.5


def test_it_keeps_length_and_clock(method, make) -> None:
    given = make(bpm=72.0, seconds=8.0)
    wave = method.extract(given)
    assert isinstance(wave, Waveform)
    assert len(wave.values) == len(given.valid)
    assert (wave.fps, wave.start_s) == (given.fps, start_s(given))
    assert np.isfinite(wave.values).all()
    np.testing.assert_array_equal(wave.valid, given.valid)


def test_the_waveform_rises_with_blood_volume(method, make) -> None:
    wave = method.extract(make(bpm=72.0))
    angle = 2 * np.pi * 1.2 * np.arange(len(wave.values)) / wave.fps
    truth = np.sin(angle) + 0.35 * np.sin(2 * angle + 0.8)
    inner = slice(30, -30)
    assert np.corrcoef(wave.values[inner], truth[inner])[0, 1] > 0.7


def test_brightness_does_not_matter(method, make_trace: Callable[..., RgbTrace]) -> None:
    if method.INPUT != "trace":
        pytest.skip("this method reads pictures of bytes, whose brightness cannot be scaled exactly")
    given = make_trace(bpm=72.0)
    half = dataclasses.replace(given, values=given.values / 2)
    a, b = method.extract(given).values, method.extract(half).values
    assert np.corrcoef(a, b)[0, 1] > 0.999


def test_invalid_frames_neither_disturb_nor_become_valid(method, make) -> None:
    given = make(bpm=72.0)
    valid = given.valid.copy()
    valid[200:215] = False
    wrong = np.array(given.values if isinstance(given, RgbTrace) else given.pixels)
    wrong[200:215] = 0
    key = "values" if isinstance(given, RgbTrace) else "pixels"
    if key == "values":
        wrong[205] = np.nan
    wave = method.extract(dataclasses.replace(given, valid=valid, **{key: wrong}))
    assert np.isfinite(wave.values).all()
    np.testing.assert_array_equal(wave.valid, valid)
    assert abs(rate.spectral_bpm(wave) - 72) < 0.5


def test_invalid_and_constant_input_raise_no_error(method, make) -> None:
    given = make(bpm=72.0, seconds=3.0)
    nothing = dataclasses.replace(given, valid=np.zeros(len(given.valid), bool))
    assert np.isfinite(method.extract(nothing).values).all()
    key = "values" if isinstance(given, RgbTrace) else "pixels"
    for level in (0, 120):
        flat = dataclasses.replace(given, **{key: np.full_like(getattr(given, key), level)})
        assert np.isfinite(method.extract(flat).values).all()


@pytest.mark.parametrize("frames", [2, 3, 7, 31])
def test_a_short_input_gives_a_waveform_of_its_length(method, make, frames: int) -> None:
    given = make(bpm=72.0, seconds=frames / 30 + 0.01)
    assert len(method.extract(given).values) == len(given.valid)


def test_wrong_input_raises_an_argument_error(method, make) -> None:
    given = make(bpm=72.0, seconds=2.0)
    with pytest.raises(ArgumentError):
        method.extract(np.zeros((10, 3)))
    if isinstance(given, RgbTrace):
        bad = [
            {"values": np.zeros((60, 4))}, {"values": np.zeros((1, 3)), "valid": np.ones(1, bool)},
            {"fps": 0.0}, {"valid": np.ones(3, bool)}, {"values": np.full((60, 3), np.nan)},
        ]  # fmt: skip
    else:
        bad = [{"pixels": np.zeros((60, 8, 8), np.uint8)}, {"pixels": np.zeros((1, 8, 8, 3), np.uint8)}]
    for change in bad:
        with pytest.raises(ArgumentError):
            method.extract(dataclasses.replace(given, **change))
