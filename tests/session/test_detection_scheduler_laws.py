"""Laws of the detection scheduler: its scales, its scans for new faces and its searches for small ones."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from phase_rppg.face.crop import Box
from phase_rppg.face.detection_scheduler import DetectionScheduler
from phase_rppg.face.detector import LONG_SIDE_PX, Detection
from phase_rppg.types import ByteArray
from plain_face import detection

PICTURE = np.zeros((480, 640, 3), np.uint8)


class ListedDetector:
    """Returns given boxes: `full` at the full scale, `small` at every other scale, `tiny` in a search."""

    def __init__(self) -> None:
        self.full: list[Box] = []
        self.small: list[Box] = []
        self.tiny: list[Box] = []
        self.calls: list[int | str] = []

    def detect(self, rgb: ByteArray, long_side_px: int = LONG_SIDE_PX) -> list[Detection]:
        self.calls.append(long_side_px)
        return [detection(box) for box in (self.full if long_side_px == LONG_SIDE_PX else self.small)]

    def search(self, rgb: ByteArray) -> list[Detection]:
        self.calls.append("search")
        return [detection(box) for box in self.tiny]


class Scene:
    """A scheduler with its detector; `at` returns the calls of the detector and the boxes that were found."""

    def __init__(self, picture: ByteArray = PICTURE) -> None:
        self.detector, self.picture = ListedDetector(), picture
        self.scheduler = DetectionScheduler(self.detector)  # type: ignore[arg-type]

    def at(self, t_s: float, *known: Box) -> tuple[list[int | str], list[Box]]:
        self.detector.calls.clear()
        tracker = SimpleNamespace(present=[SimpleNamespace(box=box) for box in known])
        found = self.scheduler.detect(self.picture, t_s, tracker)  # type: ignore[arg-type]
        return list(self.detector.calls), [one.box for one in found]


def face(width: float, x: float = 100.0) -> Box:
    return (x, 100.0, width, 1.3 * width)


def test_without_a_face_each_detection_is_at_full_scale_with_a_search_every_two_seconds() -> None:
    scene = Scene()
    scene.detector.tiny = [face(20)]
    assert scene.at(0.0) == ([LONG_SIDE_PX, "search"], [face(20)])
    assert scene.at(1.9) == ([LONG_SIDE_PX], [])
    assert scene.at(2.0) == ([LONG_SIDE_PX, "search"], [face(20)])
    assert scene.at(3.9) == ([LONG_SIDE_PX], [])


def test_a_face_at_full_scale_needs_no_search() -> None:
    scene = Scene()
    scene.detector.full = [face(80)]
    assert scene.at(0.0) == ([LONG_SIDE_PX], [face(80)])
    scene.detector.full = []
    assert scene.at(0.1)[0] == [LONG_SIDE_PX, "search"]  # the search before was not used


@pytest.mark.parametrize(
    ("width", "side_px"),
    [
        (160.0, 128),  # 640 · 32 / 160
        (128.0, 160),
        (640.0, 96),  # the least side
        (40.0, 512),
        (32.0, 640),
        (20.0, 640),  # at most the picture itself
    ],
)
def test_the_scale_makes_the_smallest_known_face_32_pixels_wide(width: float, side_px: int) -> None:
    scene = Scene()
    scene.at(0.0)  # the scan of this moment is recent
    scene.detector.small = [face(width), face(900, 2000)]
    calls, found = scene.at(0.1, face(900, 2000), face(width))
    assert calls == [side_px]
    assert found == [face(width), face(900, 2000)]


@pytest.mark.parametrize(
    ("width", "side_px"),
    [
        (48.0, LONG_SIDE_PX),
        (47.0, round(640 * 32 / 47)),
        (120.0, LONG_SIDE_PX),
        (121.0, round(640 * 32 / 121)),
    ],
)
def test_the_scale_stays_while_the_face_is_24_to_60_pixels_wide(width: float, side_px: int) -> None:
    """At the full scale of 320 a picture of 640 is halved."""
    scene = Scene()
    scene.at(0.0)
    scene.detector.small = scene.detector.full = [face(width)]
    assert scene.at(0.1, face(width))[0] == [side_px]


def test_the_longer_side_of_the_picture_counts() -> None:
    scene = Scene(np.zeros((640, 480, 3), np.uint8))
    scene.at(0.0)
    scene.detector.small = [face(160)]
    assert scene.at(0.1, face(160))[0] == [128]


def test_new_faces_are_scanned_for_every_two_seconds() -> None:
    scene = Scene()
    scene.at(0.0)
    scene.detector.small = [face(160)]
    scene.detector.full = [face(150), face(60, 400)]
    assert scene.at(1.9, face(160)) == ([128], [face(160)])
    # The scan adds only the face that does not overlap a known one.
    assert scene.at(2.0, face(160)) == ([128, LONG_SIDE_PX], [face(160), face(60, 400)])
    assert scene.at(3.9, face(160)) == ([128], [face(160)])
    assert scene.at(4.0, face(160))[0] == [128, LONG_SIDE_PX]


def test_a_face_that_is_missed_is_scanned_for_at_once() -> None:
    scene = Scene()
    scene.at(0.0)
    scene.detector.small = [face(160)]
    scene.detector.full = [face(160), face(150, 400)]
    found = scene.at(0.1, face(160), face(150, 400))
    assert found == ([round(640 * 32 / 150), LONG_SIDE_PX], [face(160), face(150, 400)])
    scene.detector.small = [face(160), face(150, 400)]
    assert len(scene.at(0.2, face(160), face(150, 400))[0]) == 1
    scene.detector.small = [(100.0, 100.0, 160.0, 16.0)]  # overlaps the known face by a thirteenth only
    assert len(scene.at(0.3, face(160))[0]) == 2
