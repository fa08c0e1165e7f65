"""The meter sees the skin's colour and the face's motion, and changes of its crop leave no step."""

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
    return Track(0, found.box, found.landmarks, 0.0, 0.0)


def copy(track: Track, shift: float = 0.0, grow: float = 1.0, seen_s: float = 0.0) -> Track:
    x, y, width, height = track.box
    marks = track.landmarks + np.array([shift, 0])
    return Track(0, (x + shift, y, width * grow, height * grow), marks, seen_s, 0.0)


def test_colour_follows_the_skin(track: Track) -> None:
    meter = SkinSampler(track, scene())
    level = [
        meter.measure(scene(tint=tint), t_s)[GREEN] for t_s, tint in ((0.1, 0.95), (0.2, 1.0), (0.3, 1.05))
    ]
    np.testing.assert_allclose(np.array(level) / level[1], [0.95, 1.0, 1.05], atol=0.01)


@pytest.mark.parametrize("shift", [-3, -1, 1, 3])
def test_small_motion_is_seen_in_face_widths(track: Track, shift: int) -> None:
    meter = SkinSampler(track, scene())
    before = meter.measure(scene(), 0.0)
    after = meter.measure(scene(160 + shift), 0.1)
    assert (after[X] - before[X]) * track.box[2] == pytest.approx(shift, rel=0.5)
    assert abs(after[Y] - before[Y]) * track.box[2] < 0.5
    assert meter.shift == pytest.approx(abs(after[X] - before[X]), abs=0.01)


@pytest.mark.parametrize("shift", [-6, -4, 2, 4, 6])
def test_the_skin_is_followed_between_two_looks(track: Track, shift: int) -> None:
    """A face that moves within its crop keeps its colour; with weights that stand still it would not."""
    meter = SkinSampler(track, scene())
    before, here, there = meter.measure(scene(), 0.0), meter.skin, meter.box
    now = scene(160 + shift)
    after = meter.measure(now, 0.1)
    standing = here.reshape(-1) @ AreaCrop(there, meter.size, now.shape).mean(now).reshape(-1, 3)
    assert np.abs(after[:3] - before[:3]).max() < 0.2 * np.abs(standing - before[:3]).max()
    assert float(meter.skin.sum()) == pytest.approx(1)


@pytest.mark.parametrize("shift", [-6, -4, 2, 4, 6])
def test_the_picture_goes_with_the_face(track: Track, shift: int) -> None:
    """A network sees the face at one place. Measured: 14 % of what a crop that stands still sees change."""
    meter, first, now = SkinSampler(track, scene()), scene(), scene(160 + shift)
    meter.measure(first, 0.0)
    before, there = meter.cut(first), meter.box
    meter.measure(now, 0.1)
    face = meter.skin > 0.2 * meter.skin.max()
    standing = AreaCrop(there, meter.size, now.shape).mean(now)
    assert np.abs(meter.cut(now) - before)[face].mean() < 0.2 * np.abs(standing - before)[face].mean()


def test_the_skin_stays_on_the_face_while_the_square_goes_over_to_a_new_box(track: Track) -> None:
    meter, picture = SkinSampler(track, scene()), scene()

    def middle_of_skin() -> FloatArray:
        """Where the skin is in the frame, by the square and the weights in it."""
        at = (np.arange(meter.size) + 0.5) / meter.size
        x, y, side, _ = meter.box
        return np.array([x + side * meter.skin.sum(0) @ at, y + side * meter.skin.sum(1) @ at])

    there = meter.box
    meter.look(copy(track, shift=8.0), picture)
    assert meter.box == pytest.approx(there)  # not at once
    skin = middle_of_skin()
    for t_s in np.arange(1, 91) / 30:
        meter.measure(picture, float(t_s))
        np.testing.assert_allclose(middle_of_skin(), skin, atol=1e-6)
    assert meter.box[0] - there[0] == pytest.approx(8.0, rel=0.15)


def test_weights_are_moved_and_widened_alike_for_every_shift() -> None:
    weights, cells = np.zeros((15, 15)), np.arange(15)
    weights[7, 7] = 1
    for right, down in ((0.0, 0.0), (2.0, -1.0), (0.5, 0.25), (-3.0, 3.0), (1.31, -2.6), (-4.7, 5.0)):
        moved = displaced(weights, np.array([right, down]))
        assert moved.sum() == pytest.approx(1)
        for profile, shift in ((moved.sum(0), right), (moved.sum(1), down)):
            assert profile @ cells - 7 == pytest.approx(shift)
            assert profile @ (cells - 7 - shift) ** 2 == pytest.approx(0.25)


def test_light_is_not_motion(track: Track) -> None:
    meter = SkinSampler(track, scene())
    before = meter.measure(scene(), 0.0)
    after = meter.measure(scene(light=0.9), 0.1)
    assert np.abs(after[[X, Y]] - before[[X, Y]]).max() * track.box[2] < 0.5


def test_moving_the_crop_makes_no_step_and_keeps_the_place(track: Track) -> None:
    meter, still_there = SkinSampler(track, scene()), scene()
    before = meter.measure(still_there, 0.0)
    meter.look(copy(track, shift=9.0, grow=1.1), still_there)
    after = meter.measure(still_there, 0.0)
    np.testing.assert_allclose(after[:3], before[:3], rtol=1e-4)
    assert after[FACE_PX] == pytest.approx(1.1 * before[FACE_PX])
    np.testing.assert_allclose(
        after[[X, Y]], before[[X, Y]], atol=0.002
    )  # in face widths, whatever a width is


def test_colours_drift_back_to_their_true_level(track: Track) -> None:
    meter, picture = SkinSampler(track, scene()), scene()
    meter.look(copy(track, shift=25.0), picture)
    true_green = SkinSampler(copy(track, shift=25.0), picture).measure(picture, 0.0)[GREEN]
    meter.measure(picture, 0.0)
    apart = [abs(meter.measure(picture, t)[GREEN] - true_green) for t in np.arange(0.0, 60.0, 0.5)]
    assert apart[-1] < 0.2 * apart[0] + 0.05


def test_overexposed_skin_is_counted(track: Track) -> None:
    meter = SkinSampler(track, scene())
    assert meter.measure(scene(), 0.0)[CLIPPED] < 0.05
    bright = SkinSampler(track, scene(light=3.0))
    assert bright.measure(scene(light=3.0), 0.0)[CLIPPED] > 0.8


def test_looking_at_an_unmoved_face_changes_nothing_visible(track: Track) -> None:
    meter, picture = SkinSampler(track, scene()), scene()
    before = meter.measure(picture, 0.0)
    for k in range(10):
        meter.look(copy(track, seen_s=0.1 * k), picture)
        np.testing.assert_allclose(meter.measure(picture, 0.1 * k), before, rtol=1e-3)
