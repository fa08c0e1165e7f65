"""Apply real video codecs to frames: encode and decode in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
import numpy as np
from av.video.reformatter import VideoReformatter

from ..types import ByteArray
from ..video.encode import X265_ONE_THREAD, reproducible_x264_options

NAMES = ("raw", "h264", "mjpeg", "hevc", "mpeg4")
_ENCODERS = {"h264": "libx264", "hevc": "libx265"}
# A small motion search without small blocks takes a quarter off the time of x264 and keeps the pulse. Less
# refinement, one reference frame, a shorter look-ahead and no weighted prediction save a little more, but
# together they remove 14 % of the amplitude of the pulse.
_SHORT_SEARCH = "me=dia:partitions=i8x8"
_SEARCHING_PRESETS = ("medium", "fast", "faster", "veryfast")


@dataclass(frozen=True, slots=True)
class CodecSpec:
    """The settings of an encoder; `kbps` or `bpp` > 0 selects a bit rate instead of a quality."""

    name: str = "raw"  # "raw", "h264", "hevc", "mjpeg" or "mpeg4"
    crf: float = 23.0  # constant rate factor: 0 best … 51 worst
    kbps: float = 0.0  # bit rate; 0: crf or bpp decides
    bpp: float = 0.0  # bits per pixel of h264 and hevc: the bit rate for a frame of any size
    preset: str = "medium"  # effort of the encoder
    bframes: int = 3  # B-frames in a row
    keyint: int = 250  # frames between key frames
    quality: int = 5  # quantiser of mjpeg and mpeg4, 2 good … 20 bad
    again: float = 0.0  # > 0: encode a second time with this CRF

    def bit_rate(self, width: int, height: int, fps: float) -> int:
        """Return the bit rate for frames of this size; 0 if the quality is constant."""
        if self.name not in _ENCODERS:
            return 0
        return int(1000 * self.kbps) if self.kbps > 0 else int(self.bpp * width * height * fps)


def transcode(
    frames: Iterable[ByteArray], spec: CodecSpec, fps: float = 30.0, *, economical: bool = False
) -> Iterator[ByteArray]:
    """Encode and decode frames (H,W,3 u8, even sides), and yield the decoded ones.

    `economical` shortens the search of x264 for motion; the amplitude of the pulse stays the same on average.
    """
    if spec.name == "raw":
        yield from frames
        return
    once = _encode_decode(frames, spec, fps, economical)
    if spec.again > 0:
        once = _encode_decode(once, CodecSpec("h264", crf=spec.again), fps, economical)
    yield from once


def _encode_decode(
    frames: Iterable[ByteArray], spec: CodecSpec, fps: float, economical: bool
) -> Iterator[ByteArray]:
    # One thread everywhere: the output is the same on every machine, and the threads of swscale are slower
    # at these sizes.
    to_yuv, to_rgb = VideoReformatter(), VideoReformatter()
    decoder = av.CodecContext.create(spec.name, "r")
    decoder.thread_count = 1
    encoder = None
    for k, rgb in enumerate(frames):
        if encoder is None:
            encoder = _encoder(spec, rgb.shape[1], rgb.shape[0], fps, economical)
        whole = av.VideoFrame.from_numpy_buffer(np.ascontiguousarray(rgb), format="rgb24")  # not copied
        frame = to_yuv.reformat(whole, format=encoder.pix_fmt, threads=1)
        frame.pts = k
        for packet in encoder.encode(frame):
            for decoded in decoder.decode(packet):
                yield _pixels(to_rgb.reformat(decoded, format="rgb24", threads=1))
    if encoder is not None:
        for packet in [*encoder.encode(None), None]:
            for decoded in decoder.decode(packet):
                yield _pixels(to_rgb.reformat(decoded, format="rgb24", threads=1))


def _pixels(frame: av.VideoFrame) -> ByteArray:
    pixels: Any = frame.to_ndarray()
    return pixels


def _encoder(spec: CodecSpec, width: int, height: int, fps: float, economical: bool) -> av.VideoCodecContext:
    encoder = av.CodecContext.create(_ENCODERS.get(spec.name, spec.name), "w")
    encoder.width, encoder.height = width, height
    encoder.time_base = Fraction(1, max(1, round(fps)))
    encoder.framerate = Fraction(max(1, round(fps)), 1)
    encoder.thread_count = 1
    if spec.name not in _ENCODERS:
        encoder.pix_fmt = "yuvj420p" if spec.name == "mjpeg" else "yuv420p"
        encoder.options = {"qmin": str(spec.quality), "qmax": str(spec.quality), "g": str(spec.keyint)}
        return encoder
    encoder.pix_fmt = "yuv420p"
    encoder.options = {"preset": spec.preset, "bf": str(spec.bframes), "g": str(spec.keyint)}
    if spec.name == "h264":
        own = [reproducible_x264_options(width).get("x264-params", "")]
        own += [_SHORT_SEARCH] if economical and spec.preset in _SEARCHING_PRESETS else []
        encoder.options["x264-params"] = ":".join(filter(None, own))
    else:
        encoder.options["x265-params"] = X265_ONE_THREAD
    bit_rate = spec.bit_rate(width, height, fps)
    if bit_rate > 0:
        encoder.bit_rate = bit_rate
    else:
        encoder.options["crf"] = f"{spec.crf:g}"
    return encoder
