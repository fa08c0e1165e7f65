"""The interface of a streaming network: crops of a face in, samples of the pulse wave out."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..types import ByteArray, FloatArray


@runtime_checkable
class PulseModel(Protocol):
    """A streaming network with its state."""

    name: str
    fps: float  # frame rate of the crops
    size: int  # side of the square crops
    delay_frames: int  # the output of `step` belongs to the crop this many frames earlier

    def fresh(self) -> PulseModel:
        """Return the same network in its initial state."""
        ...

    def step(self, crops: ByteArray) -> FloatArray:
        """Return the wave (t,) for the next crops (t,S,S,3) u8; the batch size does not change the values."""
        ...
