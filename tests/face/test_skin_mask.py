"""Skin weights select skin of every tone, and background points avoid faces."""

from __future__ import annotations

import numpy as np
import pytest

from drawing import as_bytes, portrait, put, room
from phase_rppg.face.crop import AreaCrop, Box, square, to_bytes
from phase_rppg.face.detector import Detector
from phase_rppg.face.skin_mask import (
    TYPICAL_ASPECT,
    TYPICAL_LANDMARKS,
    background_mean,
    background_points,
    clip_skin_weights,
    skin_weights,
)
from phase_rppg.face.tracker import Track
from phase_rppg.session.skin_sampler import SkinSampler, displaced
from phase_rppg.types import ByteArray, FloatArray

TONES = {"light": (215.0, 170.0, 150.0), "medium": (170.0, 120.0, 90.0), "dark": (95.0, 62.0, 48.0)}


def scene_with_face(tone: str) -> ByteArray:
    scene = room()
    put(scene, portrait(120, skin=np.array(TONES[tone])), 160, 120)
    return as_bytes(scene)


def masks_of_measure_and_clip(rgb: ByteArray, face: Box, landmarks: FloatArray) -> tuple[FloatArray, ...]:
    """Return the mask of `phase measure` and the mask of the same crop without its landmarks."""
    measured = SkinSampler(Track(0, face, landmarks, 0.0), rgb).mask
    clip = to_bytes(AreaCrop(square(face), 36, rgb.shape).mean(rgb))[None]
    return measured, displaced(clip_skin_weights(clip), np.zeros(2))  # the sampler blurs in the same way


@pytest.mark.parametrize("tone", TONES)
def test_clip_mask_equals_the_mask_of_measure_for_typical_landmarks(tone: str) -> None:
    rgb = scene_with_face(tone)
    x, y, _, height = Detector(min_score=0.5).detect(rgb)[0].box
    face = (x, y, TYPICAL_ASPECT * height, height)
    landmarks = np.array(face[:2]) + TYPICAL_LANDMARKS * np.array(face[2:])
    measured, from_clip = masks_of_measure_and_clip(rgb, face, landmarks)
    # Total variation distance. Only the rounding of the clip to bytes differs; measured: at most 0.0012.
    assert np.abs(measured - from_clip).sum() / 2 < 0.002


@pytest.mark.parametrize("tone", TONES)
def test_clip_mask_is_near_the_mask_of_measure_for_detected_landmarks(tone: str) -> None:
    rgb = scene_with_face(tone)
    (found,) = Detector(min_score=0.5).detect(rgb)
    measured, from_clip = masks_of_measure_and_clip(rgb, found.box, found.landmarks)
    assert np.abs(measured - from_clip).sum() / 2 < 0.12  # total variation; measured: at most 0.101


@pytest.mark.parametrize("tone", TONES)
def test_the_weighted_mean_is_the_skin_colour(tone: str) -> None:
    rgb = scene_with_face(tone)
    (found,) = Detector(min_score=0.5).detect(rgb)
    box = square(found.box)
    picture = AreaCrop(box, 36, rgb.shape).mean(rgb)
    weights = skin_weights(picture, box, found.landmarks, found.box)
    assert weights.shape == (36, 36)
    assert weights.sum() == pytest.approx(1, abs=1e-4)
    assert weights.min() >= 0
    mean = np.tensordot(weights, picture, 2)
    np.testing.assert_allclose(mean / mean.sum(), np.array(TONES[tone]) / sum(TONES[tone]), atol=0.02)
    corners = weights[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert np.all(corners == 0)


def test_grey_pictures_still_have_a_region() -> None:
    picture = np.full((36, 36, 3), 90, np.float32)
    marks = np.array([[14, 14], [22, 14], [18, 19], [15, 24], [21, 24]], float)
    weights = skin_weights(picture, (0, 0, 36, 36), marks, (8, 6, 20, 26))
    assert weights.sum() == pytest.approx(1, abs=1e-4)


def test_background_avoids_faces_and_what_is_below_them() -> None:
    y, x = points = background_points((480, 640), [(280, 140, 80, 110)])
    assert not np.any((x > 285) & (x < 355) & (y > 145))
    assert len(x) > 800
    rgb = np.full((480, 640, 3), (10, 20, 30), np.uint8)
    rgb[140:, 280:360] = 255
    np.testing.assert_allclose(background_mean(rgb, points), (10, 20, 30), rtol=1e-5)


def test_a_face_that_fills_the_picture_leaves_no_background() -> None:
    y, _ = background_points((100, 100), [(0, 0, 100, 100)])
    assert len(y) == 0
