"""Write frames to a video file, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, OutputError
from ..fileio import atomic_path
from ..types import ByteArray, FloatArray

# name → (encoder, pixel format, container suffixes it belongs into)
CODECS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "h264": ("libx264", "yuv420p", (".mp4", ".mkv", ".mov", ".avi")),
    "mjpeg": ("mjpeg", "yuvj420p", (".avi", ".mkv", ".mov", ".mp4")),
    "raw": ("", "", (".mkv", ".avi", ".y4m")),  # lossless; the container decides how, see _raw
}
_CLOCK_HZ = 90_000  # ticks per second for frames with their own timestamps: holds any common frame rate


def same_bits(width: int) -> dict[str, str]:
    """Options that make x264 give the same bits for the same pictures, for frames of this width.

    Its code for the macroblock tree goes through a row eight blocks at a time and, where the row ends before
    that, reads memory that nobody wrote: the same input then gives other bits in the next run. The portable
    code does not.
    """
    return {} if width % 128 == 0 else {"x264-params": "cpu-independent=1"}


def write_video(
    path: str | Path,
    frames: Iterable[ByteArray],
    fps: float | None = None,
    *,
    t_s: FloatArray | None = None,
    codec: str = "h264",
    crf: float | None = None,
    bitrate: int | None = None,
    preset: str | None = None,
    pixel_format: str | None = None,
    rotation: int = 0,
) -> int:
    """Write (H,W,3) u8 frames to `path` and return how many there were.

    Give `fps` for an even clock or `t_s` (one time per frame, rising) for an uneven one. `crf`, `bitrate`
    (bit/s) and `preset` are handed to the encoder. "raw" is lossless: FFV1 in .mkv, uncompressed in .avi and
    .y4m. `rotation` (0, 90, 180, 270) stores a display rotation the way phones do, counter-clockwise.
    The file appears under its name only when it is complete.
    """
    target = Path(path)
    if codec not in CODECS:
        raise ArgumentError("codec", repr(codec), ", ".join(CODECS))
    if target.suffix.lower() not in CODECS[codec][2]:
        raise ArgumentError("path", target.name, f"a name ending in {' '.join(CODECS[codec][2])} for {codec}")
    if (fps is None) == (t_s is None):
        raise ArgumentError("fps, t_s", (fps, t_s), "exactly one of the two")
    if fps is not None and not 0 < fps <= 1000:
        raise ArgumentError("fps", fps, "a rate above 0, up to 1000")
    if t_s is not None and (np.ndim(t_s) != 1 or not np.isfinite(t_s).all() or (np.diff(t_s) <= 0).any()):
        raise ArgumentError("t_s", "times that do not rise", "one finite, rising time per frame")
    if t_s is not None and target.suffix.lower() in (".avi", ".y4m"):
        raise ArgumentError(
            "path", target.name, "a name ending in .mp4 .mkv .mov: this one holds an even clock only"
        )
    if rotation not in (0, 90, 180, 270):
        raise ArgumentError("rotation", rotation, "0, 90, 180 or 270")
    import av

    with atomic_path(target) as temporary:
        try:
            with av.open(str(temporary), "w", format=_container(target)) as output:
                return _encode(
                    output,
                    target,
                    iter(frames),
                    fps,
                    t_s,
                    codec,
                    crf,
                    bitrate,
                    preset,
                    pixel_format,
                    rotation,
                )
        except av.FFmpegError as error:
            raise OutputError(target, f"the encoder refused: {error.strerror}") from error


def repeat_video(source: str | Path, path: str | Path, times: int) -> None:
    """Write the video `source` `times` over, one after the other, without encoding it again.

    For long videos at the price of a short one; `source` must be one of ours (an even clock, whole).
    """
    import av

    target = Path(path)
    if times < 1:
        raise ArgumentError("times", times, "1 or more")
    with atomic_path(target) as temporary, av.open(str(source)) as opened:
        template = opened.streams.video[0]
        packets = [packet for packet in opened.demux(template) if packet.pts is not None]
        step = round(1 / (Fraction(template.average_rate) * template.time_base))  # ticks of one frame
        first = min(packet.pts for packet in packets)
        length = max(packet.pts for packet in packets) - first + step
        stamps = [(packet.pts, packet.dts) for packet in packets]
        with av.open(str(temporary), "w", format=_container(target)) as output:
            stream = output.add_stream_from_template(template)
            for turn in range(times):
                for packet, (pts, dts) in zip(packets, stamps, strict=True):
                    packet.stream, packet.time_base = stream, template.time_base
                    packet.pts, packet.dts = pts + turn * length, dts + turn * length
                    output.mux(packet)


def _encode(
    output: Any,
    target: Path,
    frames: Iterator[ByteArray],
    fps: float | None,
    t_s: FloatArray | None,
    codec: str,
    crf: float | None,
    bitrate: int | None,
    preset: str | None,
    pixel_format: str | None,
    rotation: int,
) -> int:
    import av

    first = next(frames, None)
    if first is None:
        raise ArgumentError("frames", "none", "at least one frame")
    height, width = _checked(first).shape[:2]
    encoder, native_format = _raw(target) if codec == "raw" else CODECS[codec][:2]
    chosen_format = pixel_format or native_format
    if chosen_format.startswith("yuv") and "420" in chosen_format and (width % 2 or height % 2):
        raise ArgumentError("frames", f"{width}×{height}", f"even sides for {chosen_format}")
    rate = Fraction(fps).limit_denominator(1001 * 60) if fps is not None else Fraction(_CLOCK_HZ)
    options = {"threads": "1"}
    if encoder == "libx264":
        options |= same_bits(width)
    if crf is not None:
        options["crf"] = str(crf)
    if preset is not None:
        options["preset"] = preset
    stream = output.add_stream(encoder, rate=rate if fps is not None else 30, options=options)
    stream.width, stream.height, stream.pix_fmt = width, height, chosen_format
    stream.time_base = stream.codec_context.time_base = 1 / rate
    if bitrate is not None:
        stream.bit_rate = bitrate
    if rotation:
        stream.set_display_rotation(rotation)

    count = 0
    picture: ByteArray | None = first
    while picture is not None:
        if t_s is not None and count >= len(t_s):
            raise ArgumentError("t_s", f"{len(t_s)} times", "one time per frame")
        if _checked(picture).shape != first.shape:
            raise ArgumentError("frames", f"shape {picture.shape} after {first.shape}", "equal shapes")
        image = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        image.pts = count if t_s is None else round((t_s[count] - t_s[0]) * _CLOCK_HZ)
        image.time_base = 1 / rate
        output.mux(stream.encode(image))
        count += 1
        picture = next(frames, None)
    if t_s is not None and count != len(t_s):
        raise ArgumentError("t_s", f"{len(t_s)} times for {count} frames", "one time per frame")
    output.mux(stream.encode(None))
    return count


def _raw(target: Path) -> tuple[str, str]:
    """Lossless encoder and pixel format for the container: (encoder, pixel format)."""
    return {
        ".mkv": ("ffv1", "bgr0"),
        ".avi": ("rawvideo", "bgr24"),
        ".y4m": ("wrapped_avframe", "yuv444p"),  # y4m holds no RGB: lossless up to the colour conversion
    }[target.suffix.lower()]


def _container(target: Path) -> str:
    names = {".mp4": "mp4", ".mkv": "matroska", ".mov": "mov", ".avi": "avi", ".y4m": "yuv4mpegpipe"}
    return names[target.suffix.lower()]


def _checked(picture: ByteArray) -> ByteArray:
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ArgumentError("frames", f"{picture.dtype} {picture.shape}", "uint8 arrays of shape (H,W,3)")
    return picture
