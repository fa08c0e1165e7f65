"""Crops are exact area means."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError
from phase_rppg.face.crop import CROP_SCALE, AreaCrop, Box, resize_area, square
from phase_rppg.types import ByteArray, FloatArray


def picture(seed: int, height: int = 23, width: int = 31) -> ByteArray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def slow_crop(rgb: ByteArray, box: tuple[float, float, float, float], size: int, fine: int) -> FloatArray:
    """Area means by sampling every cell on a fine lattice."""
    steps = (np.arange(size * fine) + 0.5) / (size * fine)
    y = np.clip(np.floor(box[1] + box[3] * steps), 0, rgb.shape[0] - 1).astype(int)
    x = np.clip(np.floor(box[0] + box[2] * steps), 0, rgb.shape[1] - 1).astype(int)
    return rgb[y][:, x].astype(float).reshape(size, fine, size, fine, 3).mean((1, 3))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    x=st.floats(-20, 40),
    y=st.floats(-20, 30),
    side=st.floats(3, 50),
    size=st.integers(1, 30),
)
def test_every_cell_is_the_mean_of_its_area(seed: int, x: float, y: float, side: float, size: int) -> None:
    rgb, box = picture(seed), (x, y, side, side)
    fine = 60
    tolerance = 255 * 2 * (side / size + 2) / (fine * side / size) + 0.1  # the lattice errs at pixel edges
    np.testing.assert_allclose(
        AreaCrop(box, size, rgb.shape).mean(rgb), slow_crop(rgb, box, size, fine), atol=tolerance
    )


def test_a_crop_of_whole_pixels_equals_the_picture() -> None:
    rgb = picture(0)
    assert np.array_equal(resize_area(rgb, (5, 3, 8, 8), 8), rgb[3:11, 5:13])


def test_the_mean_of_a_crop_is_the_mean_of_its_area() -> None:
    rgb = picture(1)
    crop = AreaCrop((2, 1, 20, 20), 7, rgb.shape).mean(rgb)
    np.testing.assert_allclose(crop.mean((0, 1)), rgb[1:21, 2:22].mean((0, 1)), rtol=1e-5)


def test_outside_the_frame_the_edge_is_repeated() -> None:
    rgb = picture(2)
    crop = resize_area(rgb, (-100, -100, 50, 50), 4)
    assert np.all(crop == rgb[0, 0])
    padded = np.pad(rgb, ((10, 10), (10, 10), (0, 0)), mode="edge")
    assert np.array_equal(resize_area(rgb, (-6, -4, 24, 24), 24), padded[6:30, 4:28])


def test_flipped_views_give_the_crop_of_a_copy() -> None:
    turned = np.rot90(picture(3))
    box = (1.5, 2.5, 15.0, 15.0)
    assert np.array_equal(resize_area(turned, box, 6), resize_area(turned.copy(), box, 6))


def test_a_square_keeps_the_centre_and_covers_the_longer_side() -> None:
    x, y, width, height = square((10, 20, 30, 40))
    assert width == height == CROP_SCALE * 40
    assert (x + width / 2, y + height / 2) == (25, 40)


@pytest.mark.parametrize(
    "box", [(0, 0, 0, 5), (0, 0, 5, -1), (float("nan"), 0, 5, 5), (0, 0, float("inf"), 5)]
)
def test_impossible_boxes_are_refused(box: tuple[float, float, float, float]) -> None:
    with pytest.raises(ArgumentError):
        resize_area(picture(0), box, 4)


@given(st.lists(st.tuples(*[st.floats(-50, 120)] * 2, *[st.floats(0.5, 90)] * 2), min_size=1, max_size=6))
@settings(deadline=None, max_examples=40)
def test_many_crops_equal_single_crops(boxes: list[Box]) -> None:
    rgb = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    together = AreaCrop.many(boxes, 15, rgb.shape)
    for crop, box in zip(together, boxes, strict=True):
        alone = AreaCrop(box, 15, rgb.shape)
        assert (crop.box, crop.size) == (box, 15)
        np.testing.assert_array_equal(crop.mean(rgb), alone.mean(rgb))
