"""The detector finds drawn faces where they were drawn, at any size, and no face in an empty scene."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from drawing import as_bytes, portrait, put, room
from phase_rppg.errors import WeightsError
from phase_rppg.face import detector as detector_module
from phase_rppg.face.detector import Detector, decimate, overlap

pytestmark = pytest.mark.smoke


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector()


@pytest.mark.parametrize(("x", "y", "width"), [(90, 100, 90), (210, 130, 110), (160, 120, 130)])
def test_a_face_is_found_where_it_is(detector: Detector, x: int, y: int, width: int) -> None:
    scene = room()
    put(scene, portrait(width), x, y)
    (found,) = detector.detect(as_bytes(scene))
    left, top, box_width, box_height = found.box
    assert abs(left + box_width / 2 - x) < 0.15 * width
    assert abs(top + box_height / 2 - y) < 0.3 * width
    assert 0.6 < box_width / width < 1.1
    right_eye, left_eye, nose, right_mouth, left_mouth = found.landmarks
    assert right_eye[0] < nose[0] < left_eye[0]
    assert max(right_eye[1], left_eye[1]) < nose[1] < min(right_mouth[1], left_mouth[1])


def test_two_faces_are_two_detections(detector: Detector) -> None:
    scene = room()
    put(scene, portrait(90), 80, 120)
    put(scene, portrait(90), 240, 120)
    assert len(detector.detect(as_bytes(scene))) == 2


def test_an_empty_scene_has_no_face(detector: Detector) -> None:
    assert detector.search(as_bytes(room(480, 640))) == []


@pytest.mark.parametrize("shape", [(33, 65), (64, 64), (101, 203), (480, 32)])
def test_any_frame_shape_is_accepted(detector: Detector, shape: tuple[int, int]) -> None:
    assert detector.detect(np.zeros((*shape, 3), np.uint8)) == []


def test_the_search_finds_small_faces_in_large_frames(detector: Detector) -> None:
    scene = room(720, 1280)
    put(scene, portrait(64), 900, 300)
    picture = as_bytes(scene)
    assert detector.detect(picture, 320) == []
    (found,) = detector.search(picture)
    assert abs(found.box[0] + found.box[2] / 2 - 900) < 10


def test_the_box_hardly_depends_on_the_scale(detector: Detector) -> None:
    scene = room(480, 640)
    put(scene, portrait(180), 333, 240)
    boxes = np.array([detector.detect(as_bytes(scene), side)[0].box for side in (320, 213)])
    assert np.abs(np.diff(boxes, axis=0)).max() < 0.1 * 180


def test_flipped_views_give_the_detections_of_a_copy(detector: Detector) -> None:
    scene = room(320, 240)
    put(scene, portrait(110), 120, 160)
    turned = np.rot90(np.rot90(as_bytes(scene)).copy(), -1)
    for side in (320, 160):
        (view,), (copied,) = detector.detect(turned, side), detector.detect(turned.copy(), side)
        assert view.box == copied.box


def test_a_changed_model_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forged = tmp_path / "yunet.onnx"
    forged.write_bytes(detector_module.WEIGHTS.read_bytes() + b"\0")
    monkeypatch.setattr(detector_module, "WEIGHTS", forged)
    with pytest.raises(WeightsError, match="install"):
        Detector()
    monkeypatch.setattr(detector_module, "WEIGHTS", tmp_path / "absent.onnx")
    with pytest.raises(WeightsError, match="install"):
        Detector()


def test_decimation_keeps_the_mean() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (97, 121, 3), dtype=np.uint8)
    for step in (1, 2, 3, 4, 7):
        small = decimate(picture, step)
        assert small.shape == (97 // step, 121 // step, 3)
        assert abs(float(small.mean()) - float(picture.mean())) < 3


def test_overlap_is_intersection_over_union() -> None:
    assert overlap((0, 0, 2, 2), (0, 0, 2, 2)) == 1
    assert overlap((0, 0, 2, 2), (1, 0, 2, 2)) == pytest.approx(1 / 3)
    assert overlap((0, 0, 2, 2), (5, 5, 2, 2)) == 0


@pytest.mark.skipif(
    "PHASE_FACES" not in os.environ, reason="set PHASE_FACES to a folder of portraits (*.jpg)"
)
def test_every_portrait_of_a_folder_has_one_face(detector: Detector) -> None:
    for path in sorted(Path(os.environ["PHASE_FACES"]).glob("*.jpg"))[::10]:
        with av.open(str(path)) as container:
            rgb = next(container.decode(video=0)).to_ndarray(format="rgb24")
        assert len(detector.detect(rgb)) == 1, path.name


def test_the_runtime_sends_no_telemetry(tmp_path: Path) -> None:
    """Telemetry would first write an identifier of the computer to the cache folder."""
    quiet = ("ORT_", "CI", "GITHUB_", "XDG_")  # variables that disable telemetry or move the folder
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith(quiet)}
    script = "from phase_rppg.face.detector import Detector; Detector()"
    command = [sys.executable, "-c", script]
    subprocess.run(command, env={**surroundings, "HOME": str(tmp_path)}, check=True, timeout=120)
    assert [str(path) for path in tmp_path.rglob("*")] == []
