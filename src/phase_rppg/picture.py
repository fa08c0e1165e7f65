"""Pictures as the decoder delivers them: RGB, or planes of brightness and colour difference.

Most videos store brightness (luma) for every pixel and colour difference (chroma) for every second row and
column. The mean colour of a region is a linear function of these planes. So a measurement averages the planes
first and converts a few means to RGB, instead of converting every pixel of every frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .types import ByteArray, FloatArray, Frame, FrameSource

# Weights of the red and blue channels in luma (ITU-T H.273, table 4), by the number of the matrix in a video.
# 0 and 2 mean that the video does not name its matrix; decoders then use that of BT.601.
_RED_BLUE: Mapping[int, tuple[float, float]] = {
    0: (0.299, 0.114),
    1: (0.2126, 0.0722),  # BT.709
    2: (0.299, 0.114),
    4: (0.30, 0.11),  # FCC
    5: (0.299, 0.114),  # BT.601, 625 lines
    6: (0.299, 0.114),  # BT.601, 525 lines
    7: (0.212, 0.087),  # SMPTE 240M
    9: (0.2627, 0.0593),  # BT.2020
}
IntArray: TypeAlias = npt.NDArray[np.integer]
MATRICES = frozenset(_RED_BLUE)
_CHROMA_ZERO = 128
# FFmpeg's fast conversion to RGB rounds down several times. Its bytes are below the exact values by this much
# on average, for limited and full range. The networks and the calibration were made with it, and the same
# file read as RGB frames must give the same readings. `tests/video/test_planes.py` measures it again.
_ROUNDED_DOWN = {False: (1.0, 1.47, 1.0), True: (0.45, 0.93, 0.48)}


@dataclass(frozen=True, slots=True, eq=False)
class YuvPicture:
    """A picture of even sides as planes with 4:2:0 subsampling, and its conversion to RGB."""

    memory: ByteArray  # (n,) of which the planes are views
    luma: ByteArray  # (H,W)
    chroma: ByteArray  # (2,H/2,W/2) blue and red difference; each value covers 2×2 pixels
    black: FloatArray  # (3,) f32: luma and chroma of black
    to_rgb_weights: FloatArray  # (3,3) f32: the difference from black times this is RGB

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the RGB picture, (H,W,3)."""
        height, width = self.luma.shape
        return height, width, 3

    @property
    def rgb(self) -> ByteArray:
        """The whole picture as RGB (H,W,3) u8. Its conversion takes longer than decoding the picture."""
        height, width = self.luma.shape
        yuv = np.empty((3, height, width), np.float32)
        yuv[0] = self.luma
        for target, plane in zip(yuv[1:], self.chroma, strict=True):
            target.reshape(height // 2, 2, width // 2, 2)[:] = plane[:, None, :, None]
        return np.rint(self.convert(yuv)).astype(np.uint8)

    def convert(self, yuv: FloatArray) -> FloatArray:
        """Convert means (3,…) of luma and chroma to RGB (…,3), limited to 0–255."""
        rgb: FloatArray = (yuv.reshape(3, -1) - self.black[:, None]).T @ self.to_rgb_weights  # (N,3)
        np.maximum(rgb, 0.0, out=rgb)
        np.minimum(rgb, 255.0, out=rgb)
        return rgb.reshape(*yuv.shape[1:], 3)

    def convert_planes(self, yuv: FloatArray) -> FloatArray:
        """Convert means (3,…) of luma and chroma to planes of red, green and blue (3,…), limited to 0–255."""
        rgb: FloatArray = self.to_rgb_weights.T @ (yuv.reshape(3, -1) - self.black[:, None])  # (3,N)
        np.maximum(rgb, 0.0, out=rgb)
        np.minimum(rgb, 255.0, out=rgb)
        return rgb.reshape(yuv.shape)

    def offsets(self, rows: IntArray, columns: IntArray) -> IntArray:
        """Return where `memory` holds luma and both chroma values of N pixels, (3,N)."""
        half_rows, half_columns = rows >> 1, columns >> 1
        luma, (blue, red) = self.luma, self.chroma
        found = [_offset(luma, self.memory) + rows * luma.strides[0] + columns * luma.strides[1]]
        found += [
            _offset(plane, self.memory) + half_rows * plane.strides[0] + half_columns * plane.strides[1]
            for plane in (blue, red)
        ]
        return np.stack(found)

    def rotated(self, quarter_turns: int) -> YuvPicture:
        """Return a view of the picture, rotated counter-clockwise."""
        return YuvPicture(
            self.memory,
            np.rot90(self.luma, quarter_turns),
            np.rot90(self.chroma, quarter_turns, axes=(1, 2)),
            self.black,
            self.to_rgb_weights,
        )


Picture: TypeAlias = ByteArray | YuvPicture  # an array is RGB (H,W,3) u8


def _offset(plane: ByteArray, memory: ByteArray) -> int:
    """Return the position of the first value of a plane in its memory."""
    return int(plane.__array_interface__["data"][0] - memory.__array_interface__["data"][0])


def rgb_conversion(matrix: int, full_range: bool) -> tuple[FloatArray, FloatArray]:
    """Return `black` and `to_rgb_weights` of a YuvPicture, so that its RGB is as FFmpeg converts it.

    `matrix` is one of MATRICES. Limited range has luma 16–235 and chroma 16–240, full range 0–255.
    """
    red, blue = _RED_BLUE[matrix]
    green = 1 - red - blue
    luma_zero, luma_gain, chroma_gain = (0, 1.0, 1.0) if full_range else (16, 255 / 219, 255 / 224)
    from_blue, from_red = 2 * (1 - blue) * chroma_gain, 2 * (1 - red) * chroma_gain
    weights = np.array(
        [
            [luma_gain, luma_gain, luma_gain],
            [0.0, -from_blue * blue / green, from_blue],
            [from_red, -from_red * red / green, 0.0],
        ]
    )
    rounding = np.linalg.solve(weights.T, _ROUNDED_DOWN[full_range])  # in luma and chroma
    black = np.array([luma_zero, _CHROMA_ZERO, _CHROMA_ZERO]) + rounding
    return black.astype(np.float32), weights.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class YuvFrame:
    """One picture as planes and its timestamp. It is used like a `Frame`; `rgb` is made on demand."""

    picture: YuvPicture
    t_s: float

    @property
    def rgb(self) -> ByteArray:
        """The picture as RGB (H,W,3) u8."""
        return self.picture.rgb


AnyFrame: TypeAlias = Frame | YuvFrame


def decoded_frames(source: FrameSource) -> Iterator[AnyFrame]:
    """Start to read a source and return its frames as decoded, valid until the next one is requested."""
    frames: Iterator[AnyFrame] = getattr(source, "frames_without_copy", source.frames)()
    return frames


def with_time(frame: AnyFrame, t_s: float) -> AnyFrame:
    """Return the frame with another time."""
    return YuvFrame(frame.picture, t_s) if isinstance(frame, YuvFrame) else Frame(frame.rgb, t_s)


def picture_of(frame: AnyFrame) -> Picture:
    """Return the picture of a frame in the form in which it was decoded."""
    return frame.picture if isinstance(frame, YuvFrame) else frame.rgb
