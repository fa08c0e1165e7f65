"""Training clips are a pure function of (seed, epoch, index)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import InputError
from phase_rppg.signal.rate import spectral_bpm
from phase_rppg.train import augment
from phase_rppg.train.loader import Plan, TrainingClips, batches, make_clip, starts
from phase_rppg.train.recipe import Augment
from phase_rppg.train.sources import Subset

from .helpers import FPS, Toy, tiny

STILL = {"flip": 0.0, "shift": 0.0, "scale": [1.0, 1.0], "stretch": [1.0, 1.0], "gain": 0.0, "gamma": 0.0,
         "brightness": 0.0, "noise": 0.0}  # fmt: skip


@given(st.lists(st.integers(1, 20), min_size=1, max_size=3), st.integers(1, 40), st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_every_clip_comes_before_any_comes_again(sizes: list[int], per_epoch: int, seed: int) -> None:
    plan = Plan(tuple(sizes), (1.0,) * len(sizes), per_epoch, 2, seed)
    seen: dict[tuple[int, int], int] = {}
    for epoch in range(4):
        assert len(plan.epoch(epoch)) == per_epoch
        for place in plan.epoch(epoch):
            seen[place] = seen.get(place, 0) + 1
    for source in range(len(sizes)):
        counts = [n for (s, _), n in seen.items() if s == source]
        if len(counts) == sizes[source]:
            assert max(counts) - min(counts) <= 1
        else:
            assert max(counts, default=1) == 1


def test_sources_come_by_their_weights() -> None:
    plan = Plan((10, 10), (3.0, 1.0), 40, 4, 0)
    assert sum(source == 0 for source, _ in plan.epoch(0)) == 30


def test_the_same_place_is_the_same_clip_and_another_is_not() -> None:
    clips = TrainingClips(tiny(), [Toy(8)], 8, FPS)
    again = TrainingClips(tiny(), [Toy(8)], 8, FPS)
    assert np.array_equal(clips[(1, 5)][0], again[(1, 5)][0])
    assert not np.array_equal(clips[(1, 5)][0], clips[(2, 5)][0])
    other = TrainingClips(tiny(seed=4), [Toy(8)], 8, FPS)
    assert not np.array_equal(clips[(1, 5)][0], other[(1, 5)][0])


def test_processes_share_a_batch_and_a_resumed_run_sees_the_rest() -> None:
    clips = TrainingClips(tiny(), [Toy(8)], 8, FPS)
    plain = {"first_step": 0, "last_step": 4, "workers": 0}
    whole = list(batches(clips, rank=0, world=1, **plain))
    for rank in (0, 1):
        for one, all_ in zip(batches(clips, rank=rank, world=2, **plain), whole, strict=True):
            assert np.array_equal(one.pixels, all_.pixels[2 * rank : 2 * rank + 2])
    rest = list(batches(clips, first_step=3, last_step=4, rank=0, world=1, workers=0))
    assert np.array_equal(rest[0].pixels, whole[3].pixels)


def test_a_worker_changes_nothing() -> None:
    clips = TrainingClips(tiny(), [Toy(8)], 8, FPS)
    here, there = (
        list(batches(clips, first_step=0, last_step=2, rank=0, world=1, workers=workers))
        for workers in (0, 1)
    )
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(here, there, strict=True))


def test_time_stretch_changes_the_rate_and_its_label_together() -> None:
    source = Toy(1, frames=400)
    plain = spectral_bpm(source.clip(0)[1].astype(float), FPS)
    for stretch in (0.8, 1.25):
        recipe = tiny(augment={**STILL, "stretch": [stretch, stretch]}, data={"frames": 256})
        pixels, wave, _ = make_clip(source, 0, recipe, 8, FPS, np.random.default_rng(0))
        assert abs(spectral_bpm(wave.astype(float), FPS) - plain * stretch) < 1
        green = pixels[..., 1].mean((1, 2))
        assert np.corrcoef(green, wave)[0, 1] > 0.98


@pytest.mark.parametrize(("bpm", "factor"), [(60, 2.0), (82, 1.0), (120, 0.5)])
def test_an_octave_brings_fast_and_slow_rates_together(bpm: float, factor: float) -> None:
    class Steady(Toy):
        def clip(self, index: int) -> tuple:
            pixels, _, fps, meta = super().clip(index)
            return pixels, np.sin(2 * np.pi * bpm / 60 * np.arange(len(pixels)) / fps), fps, meta

    for probability, expected in ((1.0, factor), (0.0, 1.0)):
        recipe = tiny(augment={**STILL, "octave": probability}, data={"frames": 256})
        _, wave, _ = make_clip(Steady(1, frames=700), 0, recipe, 8, FPS, np.random.default_rng(0))
        assert abs(spectral_bpm(wave.astype(float), FPS) - expected * bpm) < 1
    assert "octave" not in tiny().to_dict()["augment"]  # keys of older runs stay


def test_a_source_of_another_rate_is_brought_to_the_networks_clock() -> None:
    class Half(Toy):
        def clip(self, index: int) -> tuple:
            pixels, wave, _, meta = super().clip(index)
            return pixels[::2], wave[::2], FPS / 2, meta

    recipe = tiny(augment=STILL, data={"frames": 150})
    _, wave, _ = make_clip(Half(1, frames=400), 0, recipe, 8, FPS, np.random.default_rng(0))
    truth = spectral_bpm(Toy(1, frames=400).clip(0)[1].astype(float), FPS)
    assert abs(spectral_bpm(wave.astype(float), FPS) - truth) < 1


def test_without_augmentation_the_pixels_are_the_source() -> None:
    source = Toy(1, frames=70, size=8)
    pixels, wave, _ = make_clip(source, 0, tiny(augment=STILL), 8, FPS, np.random.default_rng(0))
    original, truth, _, _ = source.clip(0)
    start = next(s for s in range(7) if np.allclose(truth[s : s + 64], wave, atol=1e-6))
    assert np.array_equal(pixels, original[start : start + 64])


def test_flip_is_a_mirror_and_noise_has_its_size() -> None:
    pixels = np.full((50, 6, 6, 3), 120, np.float32)
    pixels[:, :, :3] = 60
    flipped = augment.recolour(
        pixels, augment.AugmentParameters(True, (0, 0, 1, 1), 1.0, np.ones(3), 1.0, 0.0, 0)
    )
    assert np.array_equal(flipped, pixels[:, :, ::-1].astype(np.uint8))
    noisy = augment.recolour(
        pixels, augment.AugmentParameters(False, (0, 0, 1, 1), 1.0, np.ones(3), 1.0, 3.0, 0)
    )
    assert 2.7 < (noisy - pixels).std() < 3.3


def test_the_skin_moves_with_the_picture() -> None:
    """A mask equal to one channel of the frame stays equal to it under every augmentation."""

    class Marked(Toy):
        def clip(self, index: int) -> tuple:
            pixels, wave, fps, _ = super().clip(index)
            mask = np.linspace(0, 1, 12)[None, :] * np.linspace(0, 1, 12)[:, None]
            pixels = np.repeat(np.rint(255 * mask).astype(np.uint8)[None, :, :, None], len(pixels), 0)
            return np.repeat(pixels, 3, 3), wave, fps, {"mask": mask}

    for flip in (0.0, 1.0):
        recipe = tiny(augment={**STILL, "flip": flip, "shift": 0.1, "scale": [0.7, 0.9]})
        pixels, _, skin = make_clip(Marked(1), 0, recipe, 8, FPS, np.random.default_rng(1))
        assert np.abs(255 * skin - pixels[0, :, :, 0]).max() < 1.01
        assert (skin[-1, 0] > skin[-1, -1]) == bool(flip)
    assert not make_clip(Toy(1), 0, tiny(), 8, FPS, np.random.default_rng(0))[2].any()  # unknown skin


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=20)
def test_every_draw_keeps_to_its_limits(seed: int) -> None:
    how = augment.draw(Augment(), np.random.default_rng(seed))
    assert 0.88 <= how.box[2] == how.box[3] <= 1.06
    assert abs(how.box[0] + how.box[2] / 2 - 0.5) <= 0.06 + 1e-9
    assert 0.8 <= how.stretch <= 1.25
    assert 0 <= how.noise <= 1.5


@pytest.mark.parametrize("size", [12, 13])
def test_a_codec_changes_the_pictures_and_nothing_else(size: int) -> None:
    def made(**codec: object) -> tuple[np.ndarray, np.ndarray]:
        recipe = tiny(augment={"stretch": [0.9, 1.1], "noise": 0.0, **codec})
        return make_clip(Toy(1, size=size), 0, recipe, 8, FPS, np.random.default_rng(5))[:2]

    plain, wave = made()
    fine, fine_wave = made(codec=1.0, crf=[8, 8])
    coarse, _ = made(codec=1.0, crf=[38, 38])
    assert np.array_equal(wave, fine_wave)
    assert np.array_equal(plain, made(codec=0.0, crf=[38, 38])[0])
    assert np.array_equal(coarse, made(codec=1.0, crf=[38, 38])[0])
    apart = [np.abs(plain.astype(int) - other).mean() for other in (fine, coarse)]
    assert 0 < apart[0] < apart[1] < 20


def test_a_codec_comes_as_often_as_the_recipe_says() -> None:
    drawn = [augment.draw(Augment(codec=0.3), np.random.default_rng(k)).crf for k in range(400)]
    chosen = [crf for crf in drawn if crf is not None]
    assert 0.2 < len(chosen) / 400 < 0.4
    assert all(18 <= crf <= 30 for crf in chosen)


def test_frames_without_a_face_are_left_out() -> None:
    class Gaps(Toy):
        def clip(self, index: int) -> tuple:
            pixels, wave, fps, _ = super().clip(index)
            valid = np.ones(len(pixels), bool)
            valid[: 40 if index == 0 else 100] = False
            return pixels, wave, fps, {"valid": valid, "name": f"clip {index}"}

    recipe = tiny(augment=STILL)
    _, wave, _ = make_clip(Gaps(2), 0, recipe, 8, FPS, np.random.default_rng(0))
    truth = Toy(2).clip(0)[1]
    assert any(np.allclose(truth[s : s + 64], wave, atol=1e-6) for s in range(40, 57))
    with pytest.raises(InputError, match="clip 1"):
        make_clip(Gaps(2), 1, recipe, 8, FPS, np.random.default_rng(0))
    assert list(starts(np.array([1, 1, 0, 1, 1, 1], bool), 2)) == [0, 3, 4]
    assert len(starts(np.ones(3, bool), 5)) == 0


@pytest.mark.parametrize("change", [{"stretch": [1.25, 1.25]}, {"octave": 1.0}])
def test_a_run_of_valid_frames_that_fits_only_without_stretching_is_stretched_less(
    change: dict[str, Any],
) -> None:
    class Short(Toy):
        def clip(self, index: int) -> tuple:
            pixels, _, fps, _ = super().clip(index)
            wave = np.sin(2 * np.pi * np.arange(len(pixels)) / fps)  # 60 bpm
            valid = np.zeros(len(pixels), bool)
            valid[30:96] = True  # 66 frames; a clip has 64
            return pixels, wave, fps, {"valid": valid}

    recipe = tiny(augment={**STILL, **change})
    _, wave, _ = make_clip(Short(1), 0, recipe, 8, FPS, np.random.default_rng(0))
    truth = Short(1).clip(0)[1]
    assert wave == pytest.approx(np.interp(np.linspace(30, 95, 64), np.arange(len(truth)), truth), abs=1e-5)


def test_a_part_is_a_part() -> None:
    part = Subset(Toy(10), (0.5, 0.8))
    assert len(part) == 3
    assert np.array_equal(part.clip(0)[1], Toy(10).clip(5)[1])
    with pytest.raises(InputError, match="no clips"):
        Subset(Toy(1), (0.0, 0.5))
