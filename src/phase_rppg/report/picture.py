"""Encode a picture as PNG without an image library, to embed it in a report."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from ..types import ByteArray

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_RGB_8_BIT = (8, 2, 0, 0, 0)  # bit depth, colour type, compression, filter, interlace


def data_uri(rgb: ByteArray) -> str:
    """Return a picture (H,W,3) as the address of an embedded PNG."""
    return f"data:image/png;base64,{base64.b64encode(png(rgb)).decode()}"


def png(rgb: ByteArray) -> bytes:
    """Return a picture (H,W,3) as PNG."""
    height, width = rgb.shape[:2]
    rows = np.ascontiguousarray(rgb, np.uint8).reshape(height, -1)
    unfiltered = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1)  # filter 0 in each row
    header = struct.pack(">IIBBBBB", width, height, *_RGB_8_BIT)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(unfiltered.tobytes(), 9)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
