"""Decoded frames have the timestamps and the orientation of the file, for every format."""

from __future__ import annotations

import pickle
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from phase_rppg.errors import ArgumentError, VideoError
from phase_rppg.types import ByteArray, FrameSource
from phase_rppg.video.decode import ImageSequence, VideoFile
from phase_rppg.video.encode import write_video
from phase_rppg.video.probe import probe

pytestmark = pytest.mark.smoke


def scene(shade: int = 100, height: int = 48, width: int = 64) -> ByteArray:
    """Grey with a red top left corner, which shows the orientation."""
    picture = np.full((height, width, 3), shade, np.uint8)
    picture[: height // 2, : width // 2] = (220, 40, 40)
    return picture


def encode(path: Path, pixel_format: str, pictures: list[ByteArray], codec: str = "ffv1") -> Path:
    """Write with PyAV alone, for formats that write_video does not offer."""
    with av.open(str(path), "w") as output:
        stream = output.add_stream(codec, rate=25)
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = pixel_format
        for picture in pictures:
            output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        output.mux(stream.encode(None))
    return path


def encode_h264_avi(path: Path, count: int, b_frames: int, dropped: range = range(0)) -> list[int]:
    """Write frames k = 0, 1, … of brightness 4·k at 30 per second, and return the numbers of those kept."""
    kept = [k for k in range(count) if k not in dropped]
    with av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=30, options={"bf": str(b_frames), "b_strategy": "0"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for k in kept:
            image = av.VideoFrame.from_ndarray(np.full((48, 64, 3), 4 * k, np.uint8), format="rgb24")
            image.pts, image.time_base = k, Fraction(1, 30)
            output.mux(stream.encode(image))
        output.mux(stream.encode(None))
    return kept


@pytest.mark.parametrize("b_frames", [0, 3])
@pytest.mark.parametrize("dropped", [range(0), range(25, 32)])
def test_h264_in_avi_keeps_every_frame_at_its_time(tmp_path: Path, b_frames: int, dropped: range) -> None:
    """An AVI has no presentation times: those that FFmpeg guesses run backwards with B-frames."""
    kept = encode_h264_avi(tmp_path / "a.avi", 60, b_frames, dropped)
    video = VideoFile(tmp_path / "a.avi")
    frames = list(video.frames())
    assert video.notes == []
    np.testing.assert_allclose([f.rgb.mean() / 4 for f in frames], kept, atol=0.5)
    np.testing.assert_allclose([30 * f.t_s for f in frames], kept, atol=0.01)


def test_a_damaged_frame_of_an_avi_does_not_shift_the_later_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.avi"
    encode_h264_avi(path, 60, b_frames=0)
    with av.open(str(path)) as opened:
        broken = [(p.pos, p.size) for p in opened.demux(video=0) if p.pos is not None][20]
    data = bytearray(path.read_bytes())
    data[broken[0] : sum(broken)] = bytes(broken[1])
    path.write_bytes(data)
    frames = list(VideoFile(path).frames())
    assert 50 < len(frames) < 60
    assert [30 * f.t_s for f in frames[-5:]] == pytest.approx(range(55, 60))


def is_red(colour: ByteArray) -> bool:
    return bool(colour[0] > 150 and colour[1] < 100)


@pytest.mark.parametrize(
    ("rotation", "corner"), [(0, (0, 0)), (90, (-1, 0)), (180, (-1, -1)), (270, (0, -1))]
)
def test_rotation_is_applied(tmp_path: Path, rotation: int, corner: tuple[int, int]) -> None:
    path = tmp_path / "phone.mp4"
    write_video(path, [scene()] * 3, 30, rotation=rotation, crf=5)
    source = VideoFile(path)
    frame = next(source.frames())
    turned = rotation in (90, 270)
    assert frame.rgb.shape == ((64, 48, 3) if turned else (48, 64, 3))
    assert (source.info.height, source.info.width) == frame.rgb.shape[:2]
    assert is_red(frame.rgb[corner])  # counter-clockwise: the top left corner goes down the left side


@pytest.mark.parametrize("pixel_format", ["yuv420p10le", "yuv422p", "gray", "gray10le", "yuv444p12le"])
def test_any_depth_becomes_eight_bit_rgb(tmp_path: Path, pixel_format: str) -> None:
    path = encode(tmp_path / "deep.mkv", pixel_format, [scene(i * 10 + 50) for i in range(5)])
    source = VideoFile(path)
    frames = list(source.frames())
    assert [round(float(f.rgb[-1, -1, 1])) for f in frames] == pytest.approx(range(50, 100, 10), abs=4)
    assert frames[0].rgb.dtype == np.uint8
    grey = pixel_format.startswith("gray")
    assert source.info.grey == grey
    assert any("no colour" in note for note in source.notes) == grey
    assert (source.info.bits > 8) == (pixel_format[-2:] == "le")


def test_a_file_without_timestamps_uses_the_header_rate_and_says_so(tmp_path: Path) -> None:
    path = encode(tmp_path / "raw.h264", "yuv420p", [scene()] * 10, codec="libx264")
    source = VideoFile(path)
    times = [f.t_s for f in source.frames()]
    assert len(times) == 10
    assert np.all(np.diff(times) > 0)
    if source.notes:  # newer demuxers make up timestamps themselves
        assert "no timestamp" in source.notes[0]


def test_a_given_rate_replaces_the_clock(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", [scene()] * 6, 30)
    times = [f.t_s for f in VideoFile(tmp_path / "a.mp4", fps=10).frames()]
    np.testing.assert_allclose(times, np.arange(6) / 10)
    with pytest.raises(ArgumentError):
        VideoFile(tmp_path / "a.mp4", fps=-1)


def test_gaps_stay_gaps(tmp_path: Path) -> None:
    t_s = np.r_[np.arange(10) / 30, 5 + np.arange(10) / 30]
    write_video(tmp_path / "gap.mkv", [scene()] * 20, t_s=t_s, codec="raw")
    times = [f.t_s for f in VideoFile(tmp_path / "gap.mkv").frames()]
    np.testing.assert_allclose(times, t_s, atol=2e-3)


def test_odd_sizes_have_no_padding(tmp_path: Path) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (51, 77, 3), dtype=np.uint8)
    write_video(tmp_path / "odd.mkv", [picture] * 2, 30, codec="raw")
    assert np.array_equal(next(VideoFile(tmp_path / "odd.mkv").frames()).rgb, picture)


def test_frames_belong_to_the_caller(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mkv", [scene(i) for i in range(40)], 30, codec="raw")
    frames = list(VideoFile(tmp_path / "a.mkv").frames())
    assert [f.rgb[-1, -1, 0] for f in frames] == list(range(40))


def test_sources_can_be_read_twice_and_pickled(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", [scene()] * 4, 30)
    source = VideoFile(tmp_path / "a.mp4")
    assert isinstance(source, FrameSource)
    again = pickle.loads(pickle.dumps(source))
    assert (
        [f.t_s for f in source.frames()]
        == [f.t_s for f in source.frames()]
        == [f.t_s for f in again.frames()]
    )


def test_stopping_early_ends_the_child(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", [scene()] * 60, 30)
    frames = VideoFile(tmp_path / "a.mp4").frames()
    next(frames)
    frames.close()  # type: ignore[attr-defined]
    assert list(frames) == []


def test_probe_tells_the_facts(tmp_path: Path) -> None:
    write_video(tmp_path / "a.mp4", [scene()] * 60, 30)
    info = probe(tmp_path / "a.mp4")
    assert (info.width, info.height, info.codec, info.frame_count) == (64, 48, "h264", 60)
    assert info.fps == pytest.approx(30)
    assert info.duration_s == pytest.approx(2.0, abs=0.05)


@pytest.mark.parametrize("name", ["a.mkv", "a.mp4", "a.avi"])
@pytest.mark.parametrize("place", ["container", "stream"])
def test_metadata_that_is_not_utf_8_does_not_matter(tmp_path: Path, name: str, place: str) -> None:
    path, title = tmp_path / name, "title of the clip"
    with av.open(str(path), "w") as output:
        stream = output.add_stream("mjpeg", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuvj420p"
        (output if place == "container" else stream).metadata["title"] = title
        for _ in range(5):
            output.mux(stream.encode(av.VideoFrame.from_ndarray(scene(), format="rgb24")))
        output.mux(stream.encode(None))
    data = path.read_bytes()
    assert title.encode() in data
    path.write_bytes(data.replace(title.encode(), b"\xff\xfe\xe9".ljust(len(title), b"\xc3")))
    assert len(list(VideoFile(path).frames())) == 5


def test_images_keep_their_given_times(tmp_path: Path) -> None:
    paths = []
    for i in range(3):
        paths.append(tmp_path / f"image{i}.png")
        encode(paths[-1], "rgb24", [scene(50 + i)], codec="png")
    t_s = [0.0, 0.04, 0.1]
    frames = list(ImageSequence(paths, t_s).frames())
    assert [f.t_s for f in frames] == t_s
    assert [f.rgb[-1, -1, 0] for f in frames] == [50, 51, 52]


def test_a_damaged_image_ends_the_sequence_with_its_name(tmp_path: Path) -> None:
    good = encode(tmp_path / "good.png", "rgb24", [scene()], codec="png")
    bad = tmp_path / "bad.png"
    bad.write_text("no picture")
    frames = ImageSequence([good, bad], [0.0, 1.0]).frames()
    assert next(frames).t_s == 0.0
    with pytest.raises(VideoError, match=r"bad\.png"):
        next(frames)


def test_image_times_must_rise() -> None:
    with pytest.raises(ArgumentError):
        ImageSequence(["a.png", "b.png"], [1.0, 1.0])
    with pytest.raises(ArgumentError):
        ImageSequence([], [])
