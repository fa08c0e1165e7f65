"""What a session asks of a network: pictures of a face in, its pulse wave out, a few frames at a time."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..types import ByteArray, FloatArray


@runtime_checkable
class PulseModel(Protocol):
    """A streaming network with its state. `fresh` gives the same network at the beginning of another face."""

    name: str
    fps: float  # the uniform clock on which it wants its pictures
    size: int  # side of the square pictures
    delay_frames: int  # step() answers for the picture so many frames ago

    def fresh(self) -> PulseModel: ...

    def step(self, crops: ByteArray) -> FloatArray:
        """The wave (t,) of the next pictures (t,S,S,3) u8; any grouping gives the same numbers."""
        ...
