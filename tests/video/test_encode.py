"""Encoded pixels, times and rotation can be read back, and an error leaves no partial file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.errors import ArgumentError, OutputError
from phase_rppg.types import ByteArray
from phase_rppg.video.decode import VideoFile
from phase_rppg.video.encode import repeat_video, write_video

pytestmark = pytest.mark.smoke


def noise(count: int, height: int = 48, width: int = 64) -> list[ByteArray]:
    return list(np.random.default_rng(0).integers(0, 256, (count, height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize("name", ["clip.mkv", "clip.avi"])
def test_raw_video_keeps_every_pixel(tmp_path: Path, name: str) -> None:
    frames = noise(5, 50, 70)
    assert write_video(tmp_path / name, frames, 25, codec="raw") == 5
    back = [frame.rgb for frame in VideoFile(tmp_path / name).frames()]
    assert np.array_equal(back, frames)


@pytest.mark.parametrize(("name", "codec"), [("a.mp4", "h264"), ("a.avi", "mjpeg"), ("a.y4m", "raw")])
def test_lossy_video_keeps_mean_colour_and_clock(tmp_path: Path, name: str, codec: str) -> None:
    frames = [np.full((48, 64, 3), (150 + i, 100, 80), np.uint8) for i in range(20)]
    write_video(tmp_path / name, frames, 29.97, codec=codec)
    back = list(VideoFile(tmp_path / name).frames())
    assert len(back) == 20
    np.testing.assert_allclose([f.t_s for f in back], np.arange(20) / 29.97, atol=1e-3)
    np.testing.assert_allclose([f.rgb.mean((0, 1)) for f in back], [f.mean((0, 1)) for f in frames], atol=3)


def test_avi_gets_no_b_frames(tmp_path: Path) -> None:
    """AVI has no presentation times, so other players would show B-frames at wrong times."""
    frames = [np.full((48, 64, 3), 4 * k, np.uint8) for k in range(30)]
    for name in ("a.avi", "a.mp4"):
        write_video(tmp_path / name, frames, 30)
        with av.open(str(tmp_path / name)) as opened:
            kinds = {picture.pict_type for picture in opened.decode(video=0)}
        assert (av.video.frame.PictureType.B in kinds) == (name == "a.mp4")


@settings(max_examples=5, deadline=None)
@given(gaps=st.lists(st.floats(0.005, 2.0), min_size=3, max_size=12))
def test_uneven_clocks_survive(tmp_path_factory: pytest.TempPathFactory, gaps: list[float]) -> None:
    t_s = np.cumsum(gaps)
    path = tmp_path_factory.mktemp("v") / "uneven.mp4"
    write_video(path, noise(len(t_s)), t_s=t_s)
    np.testing.assert_allclose([f.t_s for f in VideoFile(path).frames()], t_s - t_s[0], atol=1e-4)


def test_a_better_crf_is_closer(tmp_path: Path) -> None:
    frames = noise(4)
    errors = []
    for crf in (10, 40):
        write_video(tmp_path / "a.mp4", frames, 30, crf=crf)
        back = np.array([f.rgb for f in VideoFile(tmp_path / "a.mp4").frames()], dtype=float)
        errors.append(np.abs(back - frames).mean())
    assert errors[0] < errors[1]


def test_a_failure_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    target = tmp_path / "clip.mp4"
    target.write_bytes(b"old")

    def broken() -> Iterator[ByteArray]:
        yield from noise(2)
        raise RuntimeError("the renderer failed")

    with pytest.raises(RuntimeError):
        write_video(target, broken(), 30)
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["clip.mp4"]


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot write"):
        write_video(tmp_path / "file" / "clip.mp4", noise(1), 30)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a.mp4", {"frames": []}),
        ("a.mp4", {"frames": [np.zeros((48, 64), np.uint8)]}),
        ("a.mp4", {"frames": [np.zeros((49, 64, 3), np.uint8)]}),
        ("a.mp4", {"frames": [np.zeros((48, 64, 3), np.uint8), np.zeros((48, 66, 3), np.uint8)]}),
        ("a.mp4", {"fps": 0}),
        ("a.mp4", {"fps": None}),
        ("a.mp4", {"t_s": np.array([0.0, 1.0])}),
        ("a.mp4", {"fps": None, "t_s": np.array([1.0, 0.5])}),
        ("a.mp4", {"fps": None, "t_s": np.arange(9.0)}),
        ("a.avi", {"fps": None, "t_s": np.array([0.0, 1.0]), "codec": "raw"}),
        ("a.mp4", {"codec": "vp10"}),
        ("a.txt", {}),
        ("a.mp4", {"rotation": 45}),
    ],
)
def test_wrong_calls_say_what_is_accepted(tmp_path: Path, name: str, change: dict[str, object]) -> None:
    arguments: dict[str, object] = {"frames": noise(2), "fps": 30, **change}
    with pytest.raises(ArgumentError, match="accepted"):
        write_video(tmp_path / name, **arguments)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_video_is_repeated_frame_by_frame_on_one_clock(tmp_path: Path) -> None:
    frames = [np.full((32, 48, 3), 8 * i, np.uint8) for i in range(20)]
    write_video(tmp_path / "once.mp4", frames, 20, crf=10)
    repeat_video(tmp_path / "once.mp4", tmp_path / "thrice.mp4", 3)
    once, thrice = (list(VideoFile(tmp_path / f"{name}.mp4").frames()) for name in ("once", "thrice"))
    assert len(thrice) == 60
    np.testing.assert_allclose([f.t_s for f in thrice], np.arange(60) / 20, atol=1e-6)
    for i in (0, 19, 20, 59):
        np.testing.assert_array_equal(thrice[i].rgb, once[i % 20].rgb)
    with pytest.raises(ArgumentError):
        repeat_video(tmp_path / "once.mp4", tmp_path / "never.mp4", 0)


@pytest.mark.parametrize(("width", "height"), [(112, 48), (128, 48)])
def test_the_same_pictures_give_the_same_bits_whatever_was_in_memory(width: int, height: int) -> None:
    script = (
        "import hashlib, pathlib, sys, tempfile\n"
        "import numpy as np\n"
        "from phase_rppg.video.encode import write_video\n"
        "rng = np.random.default_rng(0)\n"
        f"scene = rng.integers(0, 256, ({height // 8}, {width // 8}, 3)).repeat(8, 0).repeat(8, 1)\n"
        "def picture(k):\n"
        "    moved = np.roll(scene, k // 3, 1) + rng.normal(0, 3, scene.shape)\n"
        "    return np.clip(moved, 0, 255).astype(np.uint8)\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    path = pathlib.Path(folder, 'a.mp4')\n"
        "    write_video(path, map(picture, range(20)), 30, crf=20)\n"
        "    print(hashlib.sha256(path.read_bytes()).hexdigest())\n"
    )
    bits = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "MALLOC_PERTURB_": fill},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for fill in ("1", "85", "200")
    }
    assert len(bits) == 1
