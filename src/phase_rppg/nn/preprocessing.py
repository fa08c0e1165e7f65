"""The normalisation of pixels in the published networks, and checks of their input.

The names are those of the rPPG-Toolbox: *DiffNormalized* is the relative change between consecutive frames,
*Standardized* has zero mean and unit variance. Both use statistics of the whole clip, so these networks are
not causal. Within `part_of` they use those of the whole video, as rPPG-Toolbox does when it tests.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..errors import ArgumentError, UnknownNameError

TINY = 1e-7


@dataclass(frozen=True)
class VideoStatistics:
    """What normalises every clip of a video alike."""

    mean: float
    spread: float  # standard deviation of the pixels
    change_spread: float  # of the relative changes between consecutive frames
    following: Tensor | None = None  # (B,1,H,W,3) the frame after the clip; None at the end of the video


_video: ContextVar[VideoStatistics | None] = ContextVar("video", default=None)


@contextlib.contextmanager
def part_of(video: VideoStatistics) -> Iterator[None]:
    """Normalise clips with the statistics of the video that they are a part of."""
    token = _video.set(video)
    try:
        yield
    finally:
        _video.reset(token)


def options_of(network: type, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a network; lists become tuples, an unknown name is refused."""
    known = list(inspect.signature(network).parameters)
    for option in given:
        if option not in known:
            raise UnknownNameError(f"option of {name}", option, known)
    return {option: tuple(value) if isinstance(value, list) else value for option, value in given.items()}


def legal_size(size: int, *, at_least: int, multiple: int = 1) -> int:
    """Return the size if the network can be built for it, or raise."""
    if not isinstance(size, int) or size < at_least or size % multiple:
        steps = f", in steps of {multiple}" if multiple > 1 else ""
        raise ArgumentError("size", size, f"at least {at_least} pixels{steps}")
    return size


def frames_of(pixels: Tensor, *, size: int, min_frames: int = 2, frames_multiple: int = 1) -> Tensor:
    """Return pixels (B,T,H,W,3) as float frames (B,T,3,H,W); raise if the clip is not accepted."""
    if not isinstance(pixels, Tensor):
        raise ArgumentError("pixels", type(pixels).__name__, "a torch tensor (B,T,H,W,3)")
    shape = tuple(pixels.shape)
    if pixels.ndim != 5 or shape[-1] != 3 or shape[0] < 1:
        raise ArgumentError("pixels", f"shape {shape}", "(B,T,H,W,3) with at least one clip")
    if not (pixels.dtype == torch.uint8 or pixels.is_floating_point()):
        raise ArgumentError("pixels", f"dtype {pixels.dtype}", "uint8 or float, values 0–255")
    frames, height, width = shape[1:4]
    if (height, width) != (size, size):
        raise ArgumentError(
            "pixels", f"{height}×{width}", f"{size}×{size}: build the network with size={height}"
        )
    if frames < min_frames or frames % frames_multiple:
        steps = f", in steps of {frames_multiple}" if frames_multiple > 1 else ""
        raise ArgumentError("pixels", f"{frames} frames", f"at least {min_frames} frames{steps}")
    return pixels.permute(0, 1, 4, 2, 3).float()


def difference(frames: Tensor) -> Tensor:
    """Return (x[t+1] − x[t]) / (x[t+1] + x[t]), divided by its standard deviation; the last frame is zero."""
    video = _video.get()
    last = torch.zeros_like(frames[:, :1])
    if video is not None and video.following is not None:
        last = relative_change(torch.cat([frames[:, -1:], video.following.movedim(-1, 2).to(frames)], 1))
    change = torch.cat([relative_change(frames), last], 1)  # (B,T,3,H,W)
    if video is not None:
        return change / max(video.change_spread, TINY)
    spread = change[:, :-1].std((1, 2, 3, 4), correction=0, keepdim=True)
    return change / spread.clamp_min(TINY)


def relative_change(frames: Tensor) -> Tensor:
    """Return (x[t+1] − x[t]) / (x[t+1] + x[t]) of frames (B,T,…) as (B,T−1,…)."""
    later, earlier = frames[:, 1:], frames[:, :-1]
    return (later - earlier) / (later + earlier + TINY)


def standardise(frames: Tensor) -> Tensor:
    """Return the clip minus its mean, divided by its standard deviation."""
    video = _video.get()
    if video is not None:
        return (frames - video.mean) / max(video.spread, TINY)
    mean = frames.mean((1, 2, 3, 4), keepdim=True)
    spread = frames.std((1, 2, 3, 4), correction=0, keepdim=True)
    return (frames - mean) / spread.clamp_min(TINY)


def centred(frames: Tensor) -> Tensor:
    """Return pixel values 0–255 as −1 … 1."""
    return (frames - 127.5) / 128


def channels_first(frames: Tensor) -> Tensor:
    """(B,T,3,H,W) -> (B,3,T,H,W), the layout of 3-D convolutions."""
    return frames.transpose(1, 2).contiguous()
