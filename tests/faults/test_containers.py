"""Files that are damaged, crafted or no video: one line, a documented exit code, bounded time and memory."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

import badfiles
from faults.table import Row, faults
from phase_rppg.types import ByteArray
from phase_rppg.video.encode import write_video

Pictures = list[ByteArray]


def text(folder: Path, pictures: Pictures) -> Path:
    return badfiles.text(folder / "text.mp4")


def empty(folder: Path, pictures: Pictures) -> Path:
    return badfiles.empty(folder / "empty.mp4")


def sound(folder: Path, pictures: Pictures) -> Path:
    return badfiles.sound(folder / "sound.mp4")


def directory(folder: Path, pictures: Pictures) -> Path:
    (folder / "folder").mkdir()
    return folder / "folder"


def link_loop(folder: Path, pictures: Pictures) -> Path:
    (folder / "a.mp4").symlink_to(folder / "b.mp4")
    (folder / "b.mp4").symlink_to(folder / "a.mp4")
    return folder / "a.mp4"


def broken_link(folder: Path, pictures: Pictures) -> Path:
    (folder / "a.mp4").symlink_to(folder / "absent.mp4")
    return folder / "a.mp4"


def no_index(folder: Path, pictures: Pictures) -> Path:
    path = short(folder, pictures)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path


def huge(folder: Path, pictures: Pictures) -> Path:
    return badfiles.huge(folder / "huge.avi")


def tiny(folder: Path, pictures: Pictures) -> Path:
    path = folder / "tiny.mp4"
    write_video(path, [np.full((16, 16, 3), i, np.uint8) for i in range(60)], 30)
    return path


def short(folder: Path, pictures: Pictures, count: int = 30, name: str = "short.mp4") -> Path:
    write_video(folder / name, pictures[:count], 30, crf=14, preset="veryfast")
    return folder / name


def no_frames(folder: Path, pictures: Pictures) -> Path:
    path = short(folder, pictures, name="whole.mkv")
    data = path.read_bytes()
    path.write_bytes(data[: data.find(b"\x1f\x43\xb6\x75")])  # before the first cluster
    return path


@faults(
    Row("a text file", "error: not a video", 4, case=text),
    Row("an empty file", "error: is empty", 4, case=empty),
    Row("a file with sound only", "error: no video stream", 4, case=sound),
    Row("a folder without videos", "error: contains no videos", 4, case=directory),
    Row("symbolic links in a loop", "error: cannot be read", 4, case=link_loop),
    Row("a symbolic link to an absent file", "error: does not exist", 4, case=broken_link),
    Row("a recording whose index was never written", "error: not a video", 4, case=no_index),
    Row("a container without frames", "error: not a video", 4, case=no_frames),
    Row("a header that states 16000×16000 pixels", "error: 16000×16000", 4, case=huge),
    Row("a picture of 16×16 pixels", "error: only 16×16", 4, case=tiny),
)
def test_an_unusable_file_is_one_line(row: Row, measure: Any, pictures: Pictures, tmp_path: Path) -> None:
    video = row.case(tmp_path, pictures)
    before = sorted(tmp_path.iterdir())
    start_s = time.monotonic()
    found = measure(video, "--csv", str(tmp_path / "out.csv"))
    assert time.monotonic() - start_s < 20
    assert found.code == row.exit_code
    assert found.err.startswith("error: ")
    assert found.err.count("\n") == 1
    assert found.document == {
        "schema_version": found.document["schema_version"],
        "video": str(video),
        "error": found.err.strip().removeprefix("error: "),
    }
    assert row.happens.removeprefix("error: ") in found.err
    assert sorted(tmp_path.iterdir()) == before


@faults(
    Row("a video of 1 frame", "no reading: TOO_SHORT", 3, case=1),
    Row("a video of 30 frames", "no reading: TOO_SHORT", 3, case=30),
)
def test_few_frames_are_too_short(row: Row, measure: Any, pictures: Pictures, tmp_path: Path) -> None:
    found = measure(short(tmp_path, pictures, row.case), "--model", "pos")
    assert found.code == row.exit_code
    assert found.rates == []
    assert found.reasons == {"TOO_SHORT"}


def truncated(folder: Path, pictures: Pictures) -> Path:
    path = short(folder, pictures, 270, "cut.mkv")
    data = path.read_bytes()
    path.write_bytes(data[: int(0.85 * len(data))])
    return path


def flipped(folder: Path, pictures: Pictures) -> Path:
    """40 bits of the compressed pictures are wrong."""
    path = short(folder, pictures, 270, "flipped.mkv")
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    for place in rng.integers(len(data) // 10, len(data) * 9 // 10, 40):
        data[place] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)
    return path


def billion_frames(folder: Path, pictures: Pictures) -> Path:
    """The header of an AVI file states 10⁹ frames."""
    path = folder / "billion.avi"
    write_video(path, pictures, 30, codec="mjpeg", quality=3)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.find(b"avih") + 8 + 16, 10**9)
    struct.pack_into("<I", data, data.find(b"strh") + 8 + 32, 10**9)
    path.write_bytes(data)
    return path


def many_streams(folder: Path, pictures: Pictures) -> Path:
    """The face is the first of 200 video streams."""
    path = folder / "streams.mkv"
    with av.open(str(path), "w", format="matroska") as output:
        streams = [
            output.add_stream("mjpeg", rate=30, options={"qmin": "3", "qmax": "3"}) for _ in range(200)
        ]
        for number, stream in enumerate(streams):
            shape = pictures[0].shape if number == 0 else (64, 64, 3)
            stream.height, stream.width, stream.pix_fmt = shape[0], shape[1], "yuvj420p"
        for number, rgb in enumerate(pictures):
            picture = av.VideoFrame.from_ndarray(rgb, format="rgb24")
            picture.pts = number
            output.mux(streams[0].encode(picture))
        for stream in streams[1:]:
            other = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
            other.pts = len(pictures) - 1
            output.mux(stream.encode(other))
    return path


def late_streams(folder: Path, pictures: Pictures) -> Path:
    """A transport stream of a face, and behind it one that declares 201 streams."""

    def write(path: Path, count: int, shown: Pictures) -> bytes:
        with av.open(str(path), "w", format="mpegts") as output:
            options = {"threads": "1", "preset": "veryfast", "crf": "14"}
            streams = [output.add_stream("libx264", rate=30, options=options) for _ in range(count)]
            for stream in streams:
                stream.height, stream.width, stream.pix_fmt = *shown[0].shape[:2], "yuv420p"
            for number, rgb in enumerate(shown):
                for stream in streams:
                    picture = av.VideoFrame.from_ndarray(rgb, format="rgb24")
                    picture.pts, picture.time_base = number, Fraction(1, 30)
                    output.mux(stream.encode(picture))
            for stream in streams:
                output.mux(stream.encode(None))
        return path.read_bytes()

    path = folder / "late.ts"
    path.write_bytes(
        write(folder / "a.ts", 1, pictures)
        + write(folder / "b.ts", 201, [np.zeros((64, 64, 3), np.uint8)] * 2)
    )
    return path


@faults(
    Row("a file that is cut off after 85 %", "a warning; the rate is correct", 0,
        "the reading up to the cut", case=truncated),
    Row("40 wrong bits in the compressed pictures", "the rate is correct, or none", None, "the reading",
        case=flipped),
    Row("a header that states 10⁹ frames", "a warning; the rate is correct", 0, "the reading",
        case=billion_frames),
    Row("200 streams that appear at the end of the file", "the first stream is measured", 0, "the reading",
        case=late_streams),
    Row("200 video streams", "the first stream is measured", 0, "the reading", case=many_streams),
)  # fmt: skip
def test_a_damaged_file_never_gives_a_wrong_rate(
    row: Row, measure: Any, pictures: Pictures, tmp_path: Path
) -> None:
    found = measure(row.case(tmp_path, pictures), "--model", "pos")
    assert found.code in ({0, 3} if row.exit_code is None else {row.exit_code}), found
    assert all(abs(bpm - 72) < 3 for bpm in found.rates)
    assert bool(found.rates) == (found.code == 0)
    if "warning" in row.happens:
        assert any("ends after" in text for text in found.document["warnings"])


NAMES = ("a b  c.mp4", "naïve 心拍 ❤.mp4", "-leading.mp4", "quote'\"$(x);.mp4", "%s{0}.mp4")


@faults(*(Row(f"a video named `{name}`", "measured; the JSON holds its name", 3, "the document", case=name)
          for name in NAMES))  # fmt: skip
def test_any_name_is_measured(row: Row, measure: Any, pictures: Pictures, tmp_path: Path) -> None:
    video = short(tmp_path, pictures, 10, row.case)
    found = measure(video, "--model", "pos")
    assert found.code == row.exit_code
    assert found.document["video"] == str(video)


LOCALES = ({"LC_ALL": "C"}, {"LC_ALL": "tr_TR.UTF-8"}, {"LC_ALL": "no_such_LOCALE"}, {"TZ": "Nowhere/Else"})


@faults(*(Row(f"the environment variable {key}={value}", "measured as usual", 3, "the document",
              case={key: value}) for each in LOCALES for key, value in each.items()))  # fmt: skip
def test_the_locale_does_not_matter(row: Row, pictures: Pictures, tmp_path: Path) -> None:
    video = short(tmp_path, pictures, 5, "naïve.mp4")
    done = subprocess.run(
        [sys.executable, "-m", "phase_rppg", "measure", str(video), "--json", "--model", "pos"],
        env={**os.environ, **row.case}, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (row.exit_code, b"")
    assert json.loads(done.stdout)["video"] == str(video)
