"""A video that is measured from its planes gives the same picture as one that is converted to RGB."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.face.crop import AreaCrop, resize_area
from phase_rppg.face.detector import reduced_planes
from phase_rppg.face.skin_mask import background_mean, background_points, planes_mean
from phase_rppg.picture import MATRICES, YuvFrame, YuvPicture, decoded_frames, picture_of, rgb_conversion
from phase_rppg.types import ByteArray
from phase_rppg.video.decode import VideoFile

LIMITED, FULL = 1, 2  # the numbers of FFmpeg
BOX = (11.3, 7.6, 60.2, 60.2)


def random_planes(seed: int, height: int, width: int) -> tuple[ByteArray, ByteArray]:
    """Return luma and chroma whose colours are within the range of RGB."""
    rng = np.random.default_rng(seed)
    luma = rng.integers(70, 190, (height, width), dtype=np.uint8)
    return luma, rng.integers(112, 145, (2, height // 2, width // 2), dtype=np.uint8)


def yuv_picture(luma: ByteArray, chroma: ByteArray, matrix: int = 5, full_range: bool = False) -> YuvPicture:
    memory = np.concatenate([luma.ravel(), chroma.ravel()])
    planes = memory[: luma.size].reshape(luma.shape), memory[luma.size :].reshape(chroma.shape)
    return YuvPicture(memory, *planes, *rgb_conversion(matrix, full_range))


def av_frame(luma: ByteArray, chroma: ByteArray, matrix: int, colour_range: int) -> av.VideoFrame:
    frame = av.VideoFrame(luma.shape[1], luma.shape[0], "yuv420p")
    for plane, values in zip(frame.planes, (luma, *chroma), strict=True):
        rows = np.zeros((plane.height, plane.line_size), np.uint8)
        rows[:, : plane.width] = values
        plane.update(rows)
    frame.colorspace, frame.color_range = matrix, colour_range
    return frame


def write_planes(path: Path, frames: list[av.VideoFrame], matrix: int, colour_range: int) -> Path:
    """Write frames without loss and without conversion."""
    with av.open(str(path), "w") as output:
        stream = output.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = frames[0].width, frames[0].height, "yuv420p"
        stream.codec_context.colorspace, stream.codec_context.color_range = matrix, colour_range
        for index, frame in enumerate(frames):
            frame.pts = index
            output.mux(stream.encode(frame))
        output.mux(stream.encode(None))
    return path


def repeated(picture: YuvPicture) -> ByteArray:
    """Return luma and chroma of every pixel, (H,W,3)."""
    blue, red = (plane.repeat(2, 0).repeat(2, 1) for plane in picture.chroma)
    return np.stack([picture.luma, blue, red], -1)


@pytest.mark.parametrize("colour_range", [LIMITED, FULL])
@pytest.mark.parametrize("matrix", sorted(MATRICES))
def test_colours_follow_the_matrix_and_the_range_of_the_file(matrix: int, colour_range: int) -> None:
    """The mean differs from FFmpeg's by the share of the rounding that depends on the processor."""
    luma, chroma = random_planes(matrix, 128, 192)
    expected = av_frame(luma, chroma, matrix, colour_range).to_ndarray(format="rgb24").astype(float)
    found = yuv_picture(luma, chroma, matrix, colour_range == FULL).rgb.astype(float)
    assert np.abs(found - expected).max() <= 3
    np.testing.assert_allclose((found - expected).mean((0, 1)), 0, atol=0.2)


@pytest.mark.parametrize("colour_range", [LIMITED, FULL])
@pytest.mark.parametrize("matrix", [1, 5, 9])
def test_a_file_keeps_its_matrix_and_its_range(tmp_path: Path, matrix: int, colour_range: int) -> None:
    frames = [av_frame(*random_planes(seed, 64, 96), matrix, colour_range) for seed in range(3)]
    source = VideoFile(write_planes(tmp_path / "a.mkv", frames, matrix, colour_range))
    for rgb, decoded in zip(source.frames(), decoded_frames(source), strict=True):
        assert isinstance(decoded, YuvFrame)
        assert decoded.t_s == rgb.t_s
        difference = decoded.rgb.astype(float) - rgb.rgb
        np.testing.assert_allclose(difference.mean((0, 1)), 0, atol=0.2)
        assert np.abs(difference).max() <= 3


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    x=st.floats(-40, 60),
    y=st.floats(-40, 50),
    width=st.floats(2, 70),
    height=st.floats(2, 70),
    size=st.integers(1, 40),
)
def test_a_crop_of_planes_is_the_crop_of_every_pixel(
    seed: int, x: float, y: float, width: float, height: float, size: int
) -> None:
    picture = yuv_picture(*random_planes(seed, 36, 50))
    crop = AreaCrop((x, y, width, height), size, picture.shape)
    expected = picture.convert(crop.mean(repeated(picture)).transpose(2, 0, 1))
    np.testing.assert_allclose(crop.mean(picture), expected, atol=0.02)


def test_a_box_much_larger_than_the_picture_needs_no_more_memory() -> None:
    picture = yuv_picture(*random_planes(0, 36, 50))
    huge = AreaCrop((-1e6, -1e6, 2e6, 2e6), 8, picture.shape)
    np.testing.assert_allclose(huge.mean(picture), huge.mean(picture.rgb), atol=1)


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_rotated_picture_is_cropped_and_sampled_where_it_is_shown(turns: int) -> None:
    whole = yuv_picture(*random_planes(3, 100, 140))
    picture, rgb = whole.rotated(turns), np.rot90(whole.rgb, turns)
    assert picture.shape == rgb.shape
    assert np.array_equal(picture.rgb, rgb)
    np.testing.assert_allclose(resize_area(picture, BOX, 9), resize_area(rgb, BOX, 9), atol=1.01)
    points = background_points(rgb.shape, [(30, 20, 20, 25)])
    np.testing.assert_allclose(background_mean(picture, points), background_mean(rgb, points), atol=0.1)
    np.testing.assert_allclose(
        planes_mean(picture, picture.offsets(*points)), background_mean(picture, points)
    )


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 7, 8])
def test_the_picture_for_the_detector_is_the_same(step: int) -> None:
    picture = yuv_picture(*random_planes(4, 100, 142))
    found, expected = reduced_planes(picture, step), reduced_planes(picture.rgb, step)
    assert found.shape == expected.shape
    assert np.abs(found - expected.astype(float)).max() <= 2
    np.testing.assert_allclose((found - expected.astype(float)).mean(), 0.5 if step > 1 else 0, atol=0.4)


@pytest.mark.parametrize(
    ("height", "width", "pixel_format"),
    [(65, 96, "yuv420p"), (64, 97, "yuv420p"), (64, 96, "yuv422p"), (64, 96, "yuv420p10le")],
)
def test_other_formats_are_converted_to_rgb(
    tmp_path: Path, height: int, width: int, pixel_format: str
) -> None:
    with av.open(str(tmp_path / "a.mkv"), "w") as output:
        stream = output.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = width, height, pixel_format
        grey = av.VideoFrame.from_ndarray(np.full((height, width, 3), 90, np.uint8), format="rgb24")
        output.mux(stream.encode(grey.reformat(format=pixel_format)))
        output.mux(stream.encode(None))
    (frame,) = decoded_frames(VideoFile(tmp_path / "a.mkv"))
    picture = picture_of(frame)
    assert isinstance(picture, np.ndarray)
    np.testing.assert_allclose(picture, 90, atol=3)


def test_a_change_of_size_within_the_video_keeps_size_and_colours(tmp_path: Path) -> None:
    """Two H.264 streams of different size in one file, as some cameras write them."""
    parts = []
    for height, width in ((64, 96), (96, 144)):
        with av.open(str(tmp_path / f"{height}.h264"), "w") as output:
            stream = output.add_stream("libx264", rate=25)
            stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
            picture = np.full((height, width, 3), (180, 120, 90), np.uint8)
            for _ in range(4):
                output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
            output.mux(stream.encode(None))
        parts.append((tmp_path / f"{height}.h264").read_bytes())
    (tmp_path / "both.h264").write_bytes(b"".join(parts))
    frames = list(VideoFile(tmp_path / "both.h264").frames())
    assert len(frames) == 8
    for frame, rgb in zip(decoded_frames(VideoFile(tmp_path / "both.h264")), frames, strict=True):
        assert isinstance(frame, YuvFrame)
        assert frame.rgb.shape == (64, 96, 3)
        np.testing.assert_allclose(frame.rgb.mean((0, 1)), rgb.rgb.mean((0, 1)), atol=2.5)
