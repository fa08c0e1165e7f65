"""Every unusable input gives one line with the problem and a hint, and never a crash."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import badfiles
from phase_rppg.errors import VideoError
from phase_rppg.video.decode import VideoFile
from phase_rppg.video.encode import write_video
from phase_rppg.video.probe import is_still_picture, probe

pytestmark = pytest.mark.smoke


def text(folder: Path) -> Path:
    return badfiles.text(folder / "notes.mp4")


def empty(folder: Path) -> Path:
    return badfiles.empty(folder / "empty.mp4")


def directory(folder: Path) -> Path:
    path = folder / "folder.mp4"
    path.mkdir()
    return path


def absent(folder: Path) -> Path:
    return folder / "absent.mp4"


def sound(folder: Path) -> Path:
    return badfiles.sound(folder / "sound.wav")


def tiny(folder: Path) -> Path:
    path = folder / "tiny.mp4"
    write_video(path, [np.zeros((16, 16, 3), np.uint8)] * 3, 30)
    return path


def huge(folder: Path) -> Path:
    return badfiles.huge(folder / "huge.avi")


def impossible(folder: Path) -> Path:
    return badfiles.huge(folder / "impossible.avi", 60_000)


def playlist(folder: Path) -> Path:
    """A playlist that would make a player fetch something from the network."""
    path = folder / "list.m3u8"
    path.write_text("#EXTM3U\n#EXTINF:10,\nhttp://127.0.0.1:9/clip.ts\n#EXT-X-ENDLIST\n")
    return path


def headless(folder: Path) -> Path:
    """A recording whose index, at the end of the file, was never written."""
    whole = folder / "whole.mp4"
    write_video(whole, [np.zeros((64, 64, 3), np.uint8)] * 30, 30)
    path = folder / "headless.mp4"
    path.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    return path


def unopenable(folder: Path) -> Path:
    """A lossless video whose decoder refuses its parameters (FFV1 keeps them at the end of the header)."""
    path = folder / "unopenable.mkv"
    write_video(path, [np.zeros((64, 64, 3), np.uint8)] * 5, 30, codec="raw")
    data = bytearray(path.read_bytes())
    element = data.find(b"\x63\xa2")  # CodecPrivate of Matroska
    size = data[element + 2] & 0x7F
    assert 0 < size < 0x7F
    data[element + 3 : element + 3 + size] = b"\xff" * size
    path.write_bytes(data)
    return path


CASES = {
    unopenable: "no picture that can be decoded",
    text: "not a video",
    empty: "empty",
    directory: "directory",
    absent: "does not exist",
    sound: "no video stream",
    tiny: "16×16",
    huge: "16000×16000",
    impossible: "invalid picture size",
    playlist: "not a video",
    headless: "not a video",
}


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_unusable_files_are_refused_with_a_hint(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    path = make(tmp_path)
    for attempt in (lambda: probe(path), lambda: next(VideoFile(path).frames())):
        with pytest.raises(VideoError, match=CASES[make]) as caught:
            attempt()
        assert caught.value.hint
        assert caught.value.exit_code == 4
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["cut.avi", "cut.mkv"])
def test_the_prefix_of_a_truncated_file_is_delivered(tmp_path: Path, name: str) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (30, 64, 64, 3), dtype=np.uint8)
    path = tmp_path / name
    write_video(path, frames, 30, codec="raw")
    data = path.read_bytes()
    path.write_bytes(data[: int(0.6 * len(data))])
    got = []
    frames_that_came = VideoFile(path).frames()
    with pytest.raises(VideoError, match="ends after"):
        got.extend(frame.rgb for frame in frames_that_came)
    assert 12 <= len(got) <= 20
    assert np.array_equal(got[:12], frames[:12])


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_damaged_bytes_end_in_frames_or_a_video_error(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("fuzz") / "damaged.mp4"
    write_video(path, rng.integers(0, 256, (10, 48, 64, 3), dtype=np.uint8), 30)
    data = bytearray(path.read_bytes())
    for place in rng.integers(0, len(data), 20):
        data[place] = rng.integers(0, 256)
    path.write_bytes(data)
    times: list[float] = []
    with contextlib.suppress(VideoError):
        times.extend(frame.t_s for frame in VideoFile(path).frames())
    assert np.all(np.diff(times) > 0)


@pytest.mark.parametrize(
    ("head", "still"),
    [
        (b"\xff\xd8\xff\xe0", True),
        (b"RIFF\x24\0\0\0WEBPVP8 ", True),
        (b"RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0ANIM", False),
        (b"RIFF\x24\0\0\0AVI LIST", False),
        (b"\0\0\0\x18ftypheic", True),
        (b"\0\0\0\x18ftypavif", True),
        (b"\0\0\0\x18ftypisom", False),
        (b"\0\0\0\x14ftypqt  ", False),
    ],
)
def test_still_pictures_are_known_by_their_first_bytes(head: bytes, still: bool) -> None:
    assert is_still_picture(head) == still
