"""The skin sampler measures colour and motion; changes of its box and mask cause no step."""

from __future__ import annotations

import numpy as np
import pytest

from drawing import as_bytes, portrait, put, room
from phase_rppg.face.crop import AreaCrop
from phase_rppg.face.detector import Detector
from phase_rppg.face.tracker import Track
from phase_rppg.session.skin_sampler import COLUMNS, SkinSampler, displaced
from phase_rppg.types import ByteArray, FloatArray

X, Y, GREEN, FACE_PX, CLIPPED = (COLUMNS.index(name) for name in ("x", "y", "green", "face_px", "clipped"))


def scene(x: float = 160.0, tint: float = 1.0, light: float = 1.0) -> ByteArray:
    picture = room()
    put(picture, portrait(120, tint), x, 120)
    return as_bytes(picture * light)


@pytest.fixture(scope="module")
def track() -> Track:
    (found,) = Detector().detect(scene())
    return Track(0, found.box, found.landmarks, 0.0)


def copy(track: Track, shift: float = 0.0, grow: float = 1.0, seen_s: float = 0.0) -> Track:
    x, y, width, height = track.box
    marks = track.landmarks + np.array([shift, 0])
    return Track(0, (x + shift, y, width * grow, height * grow), marks, seen_s)


def test_colour_follows_the_skin(track: Track) -> None:
    sampler = SkinSampler(track, scene())
    level = [
        sampler.sample(scene(tint=tint), t_s)[GREEN] for t_s, tint in ((0.1, 0.95), (0.2, 1.0), (0.3, 1.05))
    ]
    np.testing.assert_allclose(np.array(level) / level[1], [0.95, 1.0, 1.05], atol=0.01)


@pytest.mark.parametrize("shift", [-3, -1, 1, 3])
def test_small_motion_is_measured_in_face_widths(track: Track, shift: int) -> None:
    sampler = SkinSampler(track, scene())
    before = sampler.sample(scene(), 0.0)
    after = sampler.sample(scene(160 + shift), 0.1)
    assert (after[X] - before[X]) * track.box[2] == pytest.approx(shift, rel=0.5)
    assert abs(after[Y] - before[Y]) * track.box[2] < 0.5
    assert sampler.shift == pytest.approx(abs(after[X] - before[X]), abs=0.01)


@pytest.mark.parametrize("shift", [-6, -4, 2, 4, 6])
def test_the_mask_follows_the_face_between_two_detections(track: Track, shift: int) -> None:
    """A face that moves within its crop keeps its colour; with a mask at rest the colour would change."""
    sampler = SkinSampler(track, scene())
    before, here, there = sampler.sample(scene(), 0.0), sampler.mask, sampler.box
    now = scene(160 + shift)
    after = sampler.sample(now, 0.1)
    standing = here.reshape(-1) @ AreaCrop(there, sampler.size, now.shape).mean(now).reshape(-1, 3)
    assert np.abs(after[:3] - before[:3]).max() < 0.2 * np.abs(standing - before[:3]).max()
    assert float(sampler.mask.sum()) == pytest.approx(1)


@pytest.mark.parametrize("shift", [-6, -4, 2, 4, 6])
def test_the_crop_follows_the_face(track: Track, shift: int) -> None:
    """The face stays in place within the crop. Measured: 14 % of the change in a crop at rest."""
    sampler, first, now = SkinSampler(track, scene()), scene(), scene(160 + shift)
    sampler.sample(first, 0.0)
    before, there = sampler.crop(first), sampler.box
    sampler.sample(now, 0.1)
    face = sampler.mask > 0.2 * sampler.mask.max()
    standing = AreaCrop(there, sampler.size, now.shape).mean(now)
    assert np.abs(sampler.crop(now) - before)[face].mean() < 0.2 * np.abs(standing - before)[face].mean()


def test_the_mask_stays_on_the_face_while_the_crop_moves_to_a_new_box(track: Track) -> None:
    sampler, picture = SkinSampler(track, scene()), scene()

    def mask_centre() -> FloatArray:
        """Return the centre of the mask in pixels of the frame."""
        at = (np.arange(sampler.size) + 0.5) / sampler.size
        x, y, side, _ = sampler.box
        return np.array([x + side * sampler.mask.sum(0) @ at, y + side * sampler.mask.sum(1) @ at])

    there = sampler.box
    sampler.update_mask(copy(track, shift=8.0), picture)
    assert sampler.box == pytest.approx(there)  # the crop moves gradually
    skin = mask_centre()
    for t_s in np.arange(1, 91) / 30:
        sampler.sample(picture, float(t_s))
        np.testing.assert_allclose(mask_centre(), skin, atol=1e-6)
    assert sampler.box[0] - there[0] == pytest.approx(8.0, rel=0.15)


def test_weights_are_shifted_and_blurred_equally_for_every_shift() -> None:
    weights, cells = np.zeros((15, 15)), np.arange(15)
    weights[7, 7] = 1
    for right, down in ((0.0, 0.0), (2.0, -1.0), (0.5, 0.25), (-3.0, 3.0), (1.31, -2.6), (-4.7, 5.0)):
        moved = displaced(weights, np.array([right, down]))
        assert moved.sum() == pytest.approx(1)
        for profile, shift in ((moved.sum(0), right), (moved.sum(1), down)):
            assert profile @ cells - 7 == pytest.approx(shift)
            assert profile @ (cells - 7 - shift) ** 2 == pytest.approx(0.25)


def test_light_is_not_motion(track: Track) -> None:
    sampler = SkinSampler(track, scene())
    before = sampler.sample(scene(), 0.0)
    after = sampler.sample(scene(light=0.9), 0.1)
    assert np.abs(after[[X, Y]] - before[[X, Y]]).max() * track.box[2] < 0.5


def test_a_new_box_changes_neither_colour_nor_position(track: Track) -> None:
    sampler, still_there = SkinSampler(track, scene()), scene()
    before = sampler.sample(still_there, 0.0)
    sampler.update_mask(copy(track, shift=9.0, grow=1.1), still_there)
    after = sampler.sample(still_there, 0.0)
    np.testing.assert_allclose(after[:3], before[:3], rtol=1e-4)
    assert after[FACE_PX] == pytest.approx(1.1 * before[FACE_PX])
    np.testing.assert_allclose(after[[X, Y]], before[[X, Y]], atol=0.002)


def test_colours_return_slowly_to_their_true_level(track: Track) -> None:
    sampler, picture = SkinSampler(track, scene()), scene()
    sampler.update_mask(copy(track, shift=25.0), picture)
    true_green = SkinSampler(copy(track, shift=25.0), picture).sample(picture, 0.0)[GREEN]
    sampler.sample(picture, 0.0)
    apart = [abs(sampler.sample(picture, t)[GREEN] - true_green) for t in np.arange(0.0, 60.0, 0.5)]
    assert apart[-1] < 0.2 * apart[0] + 0.05


def test_overexposed_skin_is_counted(track: Track) -> None:
    sampler = SkinSampler(track, scene())
    assert sampler.sample(scene(), 0.0)[CLIPPED] < 0.05
    bright = SkinSampler(track, scene(light=3.0))
    assert bright.sample(scene(light=3.0), 0.0)[CLIPPED] > 0.8


def test_detections_of_a_face_at_rest_change_no_sample(track: Track) -> None:
    sampler, picture = SkinSampler(track, scene()), scene()
    before = sampler.sample(picture, 0.0)
    for k in range(10):
        sampler.update_mask(copy(track, seen_s=0.1 * k), picture)
        np.testing.assert_allclose(sampler.sample(picture, 0.1 * k), before, rtol=1e-3)
