"""The memory of one picture in the ring buffer that a decoder process shares with its parent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from ..picture import MATRICES, YuvPicture, rgb_conversion
from ..types import ByteArray

_PLANE_FORMATS = ("yuv420p", "yuvj420p")


@dataclass(frozen=True, slots=True)
class RgbLayout:
    """An RGB picture without padding."""

    height: int
    width: int

    @property
    def slot_bytes(self) -> int:
        """Size of one picture."""
        return self.height * self.width * 3

    def view(self, slot: ByteArray) -> ByteArray:
        """Return the picture (H,W,3) of a slot (slot_bytes,) as a view."""
        return slot.reshape(self.height, self.width, 3)


@dataclass(frozen=True, slots=True)
class PlaneLayout:
    """A luma plane and two chroma planes of half its size, with padded rows."""

    height: int
    width: int
    luma_stride: int  # bytes from one row to the next
    chroma_stride: int
    matrix: int
    full_range: bool

    @property
    def slot_bytes(self) -> int:
        """Size of one picture."""
        return self.height * self.luma_stride + self.height * self.chroma_stride

    def view(self, slot: ByteArray) -> YuvPicture:
        """Return the picture of a slot (slot_bytes,) as a view."""
        luma_bytes = self.height * self.luma_stride
        luma = slot[:luma_bytes].reshape(self.height, self.luma_stride)
        chroma = slot[luma_bytes:].reshape(2, self.height // 2, self.chroma_stride)
        return YuvPicture(
            slot,
            luma[:, : self.width],
            chroma[:, :, : self.width // 2],
            *rgb_conversion(self.matrix, self.full_range),
        )


SlotLayout: TypeAlias = RgbLayout | PlaneLayout


def choose_layout(facts: dict[str, Any]) -> SlotLayout:
    """Return the layout of planes for a video of 8-bit 4:2:0 planes with even sides, otherwise of RGB."""
    height, width, planes = facts["height"], facts["width"], facts["planes"]
    rgb = RgbLayout(height, width)
    if facts["pixel_format"] not in _PLANE_FORMATS or height % 2 or width % 2:
        return rgb
    luma_stride, *chroma_strides = planes["line_sizes"]
    padded = min(chroma_strides) >= width // 2 and luma_stride >= width and len(set(chroma_strides)) == 1
    if planes["matrix"] not in MATRICES or not padded:
        return rgb
    return PlaneLayout(height, width, luma_stride, chroma_strides[0], planes["matrix"], planes["full_range"])
