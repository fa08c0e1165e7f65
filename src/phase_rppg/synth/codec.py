"""What compression does to a video: encode and decode in memory, with real encoders at full scale."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av
import numpy as np
from av.video.reformatter import VideoReformatter

from ..types import ByteArray
from ..video.encode import same_bits

NAMES = ("raw", "h264", "mjpeg")


@dataclass(frozen=True, slots=True)
class CodecSpec:
    """One encoder setting; `kbps` > 0 aims at a bit rate instead of a quality."""

    name: str = "raw"
    crf: float = 23.0
    kbps: float = 0.0
    preset: str = "medium"
    bframes: int = 3
    keyint: int = 250
    quality: int = 5  # MJPEG quantiser, 2 good … 20 bad
    again: float = 0.0  # > 0: compressed a second time with this CRF


def transcode(frames: Iterable[ByteArray], spec: CodecSpec, fps: float = 30.0) -> Iterator[ByteArray]:
    """The frames (H,W,3 u8, even sides) as a viewer of the compressed video gets them."""
    if spec.name == "raw":
        yield from frames
        return
    once = _through(frames, spec, fps)
    if spec.again > 0:
        once = _through(once, CodecSpec("h264", crf=spec.again), fps)
    yield from once


def _through(frames: Iterable[ByteArray], spec: CodecSpec, fps: float) -> Iterator[ByteArray]:
    # One thread everywhere: the same input gives the same bits on every machine, and swscale's own threads
    # cost far more than they bring at these sizes.
    to_yuv, to_rgb = VideoReformatter(), VideoReformatter()
    decoder = av.CodecContext.create("h264" if spec.name == "h264" else "mjpeg", "r")
    decoder.thread_count = 1
    encoder = None
    for k, rgb in enumerate(frames):
        if encoder is None:
            encoder = _encoder(spec, rgb.shape[1], rgb.shape[0], fps)
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


def _encoder(spec: CodecSpec, width: int, height: int, fps: float) -> av.VideoCodecContext:
    encoder = av.CodecContext.create("libx264" if spec.name == "h264" else "mjpeg", "w")
    encoder.width, encoder.height = width, height
    encoder.time_base = Fraction(1, max(1, round(fps)))
    encoder.framerate = Fraction(max(1, round(fps)), 1)
    encoder.thread_count = 1
    if spec.name == "mjpeg":
        encoder.pix_fmt = "yuvj420p"
        encoder.options = {"qmin": str(spec.quality), "qmax": str(spec.quality)}
        return encoder
    encoder.pix_fmt = "yuv420p"
    encoder.options = {
        "preset": spec.preset, "bf": str(spec.bframes), "g": str(spec.keyint), **same_bits(width),
    }  # fmt: skip
    if spec.kbps > 0:
        encoder.bit_rate = int(1000 * spec.kbps)
    else:
        encoder.options["crf"] = f"{spec.crf:g}"
    return encoder
