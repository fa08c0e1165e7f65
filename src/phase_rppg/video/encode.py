"""Encode frames to a video file; the file is written atomically."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, OutputError
from ..fileio import atomic_path
from ..types import ByteArray, FloatArray

# name → (encoder, pixel format, suffixes of the accepted containers)
CODECS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "h264": ("libx264", "yuv420p", (".mp4", ".mkv", ".mov", ".avi")),
    "mjpeg": ("mjpeg", "yuvj420p", (".avi", ".mkv", ".mov", ".mp4")),
    "hevc": ("libx265", "yuv420p", (".mp4", ".mkv", ".mov")),
    "mpeg4": ("mpeg4", "yuv420p", (".mp4", ".mkv", ".mov", ".avi")),
    "raw": ("", "", (".mkv", ".avi", ".y4m")),  # lossless; the encoder depends on the container, see _raw
}
_CLOCK_HZ = 90_000  # time base for frames with timestamps; it represents common frame rates
_MPEG4_CLOCK_HZ = 60_000  # MPEG-4 part 2 allows at most 65535
X265_ONE_THREAD = "log-level=error:pools=none:frame-threads=1"


@dataclass(frozen=True, slots=True)
class _Settings:
    """The checked arguments of `write_video`."""

    fps: float | None
    t_s: FloatArray | None
    codec: str
    crf: float | None
    bitrate: int | None
    preset: str | None
    pixel_format: str | None
    rotation: int
    quality: int | None

    @property
    def clock_hz(self) -> Fraction:
        """The inverse of the time base: the frame rate, or a fine clock for frames with timestamps."""
        if self.fps is not None:
            return Fraction(self.fps).limit_denominator(1001 * 60)
        return Fraction(_MPEG4_CLOCK_HZ if self.codec == "mpeg4" else _CLOCK_HZ)


def reproducible_x264_options(width: int) -> dict[str, str]:
    """Return options that make the output of x264 reproducible for frames of this width.

    The optimised macroblock-tree code of x264 processes eight blocks at a time. If the row length is not a
    multiple of eight, it reads uninitialised memory, and the output differs between runs. The portable code
    does not.
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
    quality: int | None = None,
) -> int:
    """Write (H,W,3) u8 frames to `path` and return their number.

    Give `fps` for a uniform clock, or `t_s` with one increasing time per frame. `crf`, `bitrate` (bit/s) and
    `preset` are passed to the encoder; `quality` is the quantiser of mjpeg and mpeg4, 2 is best. "raw" is
    lossless: FFV1 in .mkv, uncompressed in .avi and .y4m. `rotation` (0, 90, 180, 270) stores a
    counter-clockwise display rotation, as phones do. The file is written atomically.
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
        raise ArgumentError("t_s", "times that do not increase", "one finite, increasing time per frame")
    if t_s is not None and target.suffix.lower() in (".avi", ".y4m"):
        raise ArgumentError(
            "path", target.name, "a name ending in .mp4 .mkv .mov: this container has no timestamps"
        )
    if rotation not in (0, 90, 180, 270):
        raise ArgumentError("rotation", rotation, "0, 90, 180 or 270")
    import av

    settings = _Settings(fps, t_s, codec, crf, bitrate, preset, pixel_format, rotation, quality)
    with atomic_path(target) as temporary:
        try:
            with av.open(str(temporary), "w", format=_container(target)) as output:
                return _encode(output, target, iter(frames), settings)
        except av.FFmpegError as error:
            raise OutputError(target, f"the encoder failed: {error.strerror}") from error


def repeat_video(source: str | Path, path: str | Path, times: int) -> None:
    """Write the video `source` repeated `times` times, without encoding it again.

    `source` must be complete and have a uniform clock.
    """
    import av

    target = Path(path)
    if times < 1:
        raise ArgumentError("times", times, "1 or more")
    with atomic_path(target) as temporary, av.open(str(source)) as opened:
        template = opened.streams.video[0]
        packets = [packet for packet in opened.demux(template) if packet.pts is not None]
        step = round(
            1 / (Fraction(template.average_rate) * template.time_base)
        )  # duration of one frame in the time base
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


def _encode(output: Any, target: Path, frames: Iterator[ByteArray], settings: _Settings) -> int:
    import av

    first = next(frames, None)
    if first is None:
        raise ArgumentError("frames", "none", "at least one frame")
    stream = _add_stream(output, target, _checked(first), settings)
    t_s, count = settings.t_s, 0
    picture: ByteArray | None = first
    while picture is not None:
        if t_s is not None and count >= len(t_s):
            raise ArgumentError("t_s", f"{len(t_s)} times", "one time per frame")
        if _checked(picture).shape != first.shape:
            raise ArgumentError("frames", f"shape {picture.shape} after {first.shape}", "equal shapes")
        image = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
        image.pts = count if t_s is None else round((t_s[count] - t_s[0]) * float(settings.clock_hz))
        image.time_base = 1 / settings.clock_hz
        output.mux(stream.encode(image))
        count += 1
        picture = next(frames, None)
    if t_s is not None and count != len(t_s):
        raise ArgumentError("t_s", f"{len(t_s)} times for {count} frames", "one time per frame")
    output.mux(stream.encode(None))
    return count


def _add_stream(output: Any, target: Path, first: ByteArray, settings: _Settings) -> Any:
    """Add a video stream for frames of the size of the first one."""
    height, width = first.shape[:2]
    encoder, native_format = _raw(target) if settings.codec == "raw" else CODECS[settings.codec][:2]
    pixel_format = settings.pixel_format or native_format
    if pixel_format.startswith("yuv") and "420" in pixel_format and (width % 2 or height % 2):
        raise ArgumentError("frames", f"{width}×{height}", f"even sides for {pixel_format}")
    options = {"threads": "1"}
    if encoder == "libx264":
        options |= reproducible_x264_options(width)
        if target.suffix.lower() == ".avi":
            options["bf"] = "0"  # AVI has no presentation times: players may show B-frames at wrong times
    if encoder == "libx265":
        options["x265-params"] = X265_ONE_THREAD
    if settings.quality is not None:
        options |= {"qmin": str(settings.quality), "qmax": str(settings.quality)}
    if settings.crf is not None:
        options["crf"] = str(settings.crf)
    if settings.preset is not None:
        options["preset"] = settings.preset
    rate = settings.clock_hz if settings.fps is not None else 30
    stream = output.add_stream(encoder, rate=rate, options=options)
    stream.width, stream.height, stream.pix_fmt = width, height, pixel_format
    stream.time_base = stream.codec_context.time_base = 1 / settings.clock_hz
    if settings.bitrate is not None:
        stream.bit_rate = settings.bitrate
    if settings.rotation:
        stream.set_display_rotation(settings.rotation)
    return stream


def _raw(target: Path) -> tuple[str, str]:
    """Return the lossless encoder and pixel format for the container."""
    return {
        ".mkv": ("ffv1", "bgr0"),
        ".avi": ("rawvideo", "bgr24"),
        ".y4m": (
            "wrapped_avframe",
            "yuv444p",
        ),  # y4m has no RGB; only the colour conversion loses information
    }[target.suffix.lower()]


def _container(target: Path) -> str:
    names = {".mp4": "mp4", ".mkv": "matroska", ".mov": "mov", ".avi": "avi", ".y4m": "yuv4mpegpipe"}
    return names[target.suffix.lower()]


def _checked(picture: ByteArray) -> ByteArray:
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ArgumentError("frames", f"{picture.dtype} {picture.shape}", "uint8 arrays of shape (H,W,3)")
    return picture
