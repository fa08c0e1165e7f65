"""The Haar cascade finds the boxes of OpenCV 4, step by step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from phase_rppg.errors import WeightsError
from phase_rppg.face import haar_cascade


def test_the_cascade_is_complete() -> None:
    stages = haar_cascade._stages()
    assert (len(stages), sum(len(stage.thresholds) for stage in stages)) == (25, 2913)
    with np.load(haar_cascade.CASCADE) as file:
        assert float(file["stage_thresholds"][0]) == pytest.approx(-5.04255)


def test_a_damaged_cascade_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cascade.npz").write_bytes(b"PK")
    monkeypatch.setattr(haar_cascade, "CASCADE", tmp_path / "cascade.npz")
    haar_cascade._stages.cache_clear()
    with pytest.raises(WeightsError, match="reinstall the package"):
        haar_cascade._stages()
    haar_cascade._stages.cache_clear()


def test_grey_and_reduced_pictures_equal_those_of_opencv() -> None:
    cv2 = pytest.importorskip("cv2")
    rgb = np.random.default_rng(0).integers(0, 256, (61, 83, 3), np.uint8)
    grey = haar_cascade._grey(rgb)
    np.testing.assert_array_equal(grey, cv2.cvtColor(rgb, cv2.COLOR_BGR2GRAY))
    for shape in [(55, 75), (50, 69), (24, 33)]:
        expected = cv2.resize(grey, shape[::-1], interpolation=cv2.INTER_LINEAR_EXACT)
        np.testing.assert_array_equal(haar_cascade._resized(grey, shape), expected)


def test_sums_of_rectangles() -> None:
    grey = np.arange(30 * 40).reshape(30, 40) % 251
    integral = haar_cascade._integral(grey)
    found = haar_cascade._sum(integral.ravel(), 41, np.array([0, 2 * 41 + 5]), (1, 3, 4, 6))
    assert found.tolist() == [grey[3:9, 1:5].sum(), grey[5:11, 6:10].sum()]


def test_a_window_after_a_rejected_one_is_not_tested() -> None:
    rejected = np.array([[1, 1, 1, 0, 1, 0, 1]], bool)
    assert haar_cascade._skipped(rejected).astype(int).tolist() == [[0, 1, 0, 1, 0, 1, 0]]


def test_similar_windows_are_one_face() -> None:
    """A face is the mean of its windows; three windows are too few, a face inside a larger one is none."""
    large = [(100 + d, 80 - d, 100, 100) for d in range(5)]
    inside = [(140, 110, 30, 30 + d) for d in range(4)]
    apart = [(300, 200, 50, 50)] * 3
    windows = np.array(large + apart + inside, np.int32)
    assert haar_cascade._grouped(windows) == [(102, 78, 100, 100)]
    alone = haar_cascade._grouped(np.array(inside, np.int32))
    assert alone == [(140, 110, 30, 32)]
    assert haar_cascade._grouped(np.zeros((0, 4), np.int32)) == []


def drawn_face() -> np.ndarray:
    """Ovals for head, hair, eyes, brows, nose and mouth, blurred; integers only."""
    y, x = np.mgrid[:120, :100]
    picture = np.full((120, 100, 3), 60)

    def oval(cx: int, cy: int, rx: int, ry: int) -> np.ndarray:
        return (x - cx) ** 2 * ry**2 + (y - cy) ** 2 * rx**2 <= rx**2 * ry**2

    picture[oval(50, 60, 34, 44)] = 200, 150, 130
    picture[oval(50, 38, 34, 22) & (y < 30)] = 60, 40, 30
    for cx in (36, 64):
        picture[oval(cx, 50, 10, 7)] = 120, 80, 70
        picture[oval(cx, 50, 6, 3)] = 40, 30, 30
        picture[oval(cx, 42, 9, 2)] = 70, 50, 40
    picture[oval(50, 66, 5, 3)] = 150, 105, 95
    picture[oval(50, 62, 3, 12)] = 225, 175, 150
    picture[oval(50, 83, 12, 4)] = 130, 60, 60
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return (sum(np.roll(picture, shift, (0, 1)) for shift in shifts) // 9).astype(np.uint8)


def test_the_box_of_a_face_is_that_of_opencv_4() -> None:
    """OpenCV 4.10: CascadeClassifier(haarcascade_frontalface_default.xml).detectMultiScale(drawn_face())."""
    assert haar_cascade.detect(drawn_face()) == [(7, 19, 85, 85)]


def test_no_face_in_a_flat_or_noisy_picture() -> None:
    assert haar_cascade.detect(np.full((60, 60, 3), 90, np.uint8)) == []
    noise = np.random.default_rng(1).integers(0, 256, (60, 60, 3), np.uint8)
    assert haar_cascade.detect(noise) == []
    assert haar_cascade.detect(noise[:20, :20]) == []
