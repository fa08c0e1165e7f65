"""Pixel formats and exposures: the rate is correct, or the reason is named."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from faults.table import Row, faults
from phase_rppg.types import ByteArray

Pictures = list[ByteArray]


def encode(path: Path, pictures: Pictures, encoder: str, pixel_format: str, **settings: Any) -> Path:
    """Encode with any pixel format; `settings` are attributes of the codec context, options or a rotation."""
    options = {"threads": "1", **settings.pop("options", {})}
    rotation = settings.pop("rotation", 0)
    with av.open(str(path), "w") as output:
        stream = output.add_stream(encoder, rate=30, options=options)
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = pixel_format
        for name, value in settings.items():
            setattr(stream.codec_context, name, value)
        if rotation:
            stream.set_display_rotation(rotation)
        for number, rgb in enumerate(pictures):
            picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
            picture.pts, picture.time_base = number, Fraction(1, 30)
            output.mux(stream.encode(picture))
        output.mux(stream.encode(None))
    return path


X264 = {"crf": "12", "preset": "veryfast"}
BT2020, PQ = 9, 16  # colour primaries and transfer function of HDR10


def rotated(folder: Path, pictures: Pictures) -> Path:
    """The picture is stored on its side, as phones do; a player turns it back."""
    turned = [np.rot90(rgb, -1) for rgb in pictures]
    return encode(folder / "a.mp4", turned, "libx264", "yuv420p", options=X264, rotation=90)


def ten_bit(folder: Path, pictures: Pictures) -> Path:
    return encode(folder / "a.mp4", pictures, "libx264", "yuv420p10le", options=X264)


def hdr(folder: Path, pictures: Pictures) -> Path:
    return encode(
        folder / "a.mp4", pictures, "libx264", "yuv420p10le", options=X264,
        color_primaries=BT2020, color_trc=PQ, colorspace=9,
    )  # fmt: skip


def full_range(folder: Path, pictures: Pictures) -> Path:
    return encode(folder / "a.mp4", pictures, "libx264", "yuvj420p", options=X264, color_range=2)


def limited_range(folder: Path, pictures: Pictures) -> Path:
    return encode(folder / "a.mp4", pictures, "libx264", "yuv420p", options=X264, color_range=1)


def interlaced(folder: Path, pictures: Pictures) -> Path:
    return encode(folder / "a.mp4", pictures, "libx264", "yuv420p", options={**X264, "x264-params": "tff=1"})


def alpha(folder: Path, pictures: Pictures) -> Path:
    return encode(folder / "a.mkv", pictures, "ffv1", "bgra")


def grey(folder: Path, pictures: Pictures) -> Path:
    return encode(folder / "a.mkv", pictures, "ffv1", "gray")


def dark(folder: Path, pictures: Pictures) -> Path:
    return encode(folder / "a.mkv", [rgb // 12 for rgb in pictures], "ffv1", "bgr0")


def clipped(folder: Path, pictures: Pictures) -> Path:
    bright = [np.clip(rgb.astype(int) * 3, 0, 255).astype(np.uint8) for rgb in pictures]
    return encode(folder / "a.mkv", bright, "ffv1", "bgr0")


@faults(
    Row("a picture stored on its side", "turned; the rate is correct", 0, "the reading", case=rotated),
    Row("10 bits per colour", "converted; the rate is correct", 0, "the reading", case=ten_bit),
    Row("colour tags of HDR", "read as 8-bit RGB; the rate is correct", 0, "the reading", case=hdr),
    Row("full colour range", "the rate is correct", 0, "the reading", case=full_range),
    Row("limited colour range", "the rate is correct", 0, "the reading", case=limited_range),
    Row("interlaced pictures", "the rate is correct", 0, "the reading", case=interlaced),
    Row("pictures with transparency", "transparency is ignored; the rate is correct", 0, "the reading",
        case=alpha),
)  # fmt: skip
def test_every_pixel_format_has_the_true_rate(
    row: Row, measure: Any, pictures: Pictures, tmp_path: Path
) -> None:
    found = measure(row.case(tmp_path, pictures[:255]), "--model", "pos")
    assert found.code == row.exit_code, found
    assert found.rates
    assert all(abs(bpm - 72) < 3 for bpm in found.rates)


@faults(
    Row("pictures without colour", "no reading: NO_COLOUR", 3, case=grey),
    Row("a dark picture", "no reading: TOO_DARK", 3, case=dark),
    Row("an overexposed face", "no reading: CLIPPED", 3, case=clipped),
)
def test_pictures_that_cannot_show_a_pulse_name_the_reason(
    row: Row, measure: Any, pictures: Pictures, tmp_path: Path
) -> None:
    found = measure(row.case(tmp_path, pictures[:255]), "--model", "pos")
    assert found.code == row.exit_code
    assert found.rates == []
    assert found.reasons == {row.happens.rpartition(" ")[2]}
