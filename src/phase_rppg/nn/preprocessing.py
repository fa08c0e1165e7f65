"""What the published networks do to the pixels before their first layer.

The two recipes of the field (named as in the rPPG-Toolbox): *DiffNormalized*, the relative change between
neighbouring frames, and *Standardized*, zero mean and unit spread. Both use statistics of the whole clip that
the network is given, one clip at a time, which alone makes these networks non-causal.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor

from ..errors import ArgumentError, UnknownNameError

TINY = 1e-7


def options_of(network: type, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The options to build a network with; lists become tuples, an unknown name is refused."""
    known = list(inspect.signature(network).parameters)
    for option in given:
        if option not in known:
            raise UnknownNameError(f"option of {name}", option, known)
    return {option: tuple(value) if isinstance(value, list) else value for option, value in given.items()}


def legal_size(size: int, *, at_least: int, multiple: int = 1) -> int:
    """The size, if the network can be built for it."""
    if not isinstance(size, int) or size < at_least or size % multiple:
        steps = f", in steps of {multiple}" if multiple > 1 else ""
        raise ArgumentError("size", size, f"at least {at_least} pixels{steps}")
    return size


def frames_of(pixels: Tensor, *, size: int, min_frames: int = 2, frames_multiple: int = 1) -> Tensor:
    """Pixels (B,T,H,W,3) as float frames (B,T,3,H,W), or an error that says which clips are accepted."""
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
    return pixels.movedim(-1, 2).float()


def difference(frames: Tensor) -> Tensor:
    """DiffNormalized: (x[t+1] − x[t]) / (x[t+1] + x[t]), over the clip's spread; the last frame is zero."""
    later, earlier = frames[:, 1:], frames[:, :-1]
    change = (later - earlier) / (later + earlier + TINY)
    spread = change.std((1, 2, 3, 4), correction=0, keepdim=True)
    change = change / spread.clamp_min(TINY)
    return torch.cat([change, torch.zeros_like(frames[:, :1])], dim=1)  # (B,T,3,H,W)


def standardise(frames: Tensor) -> Tensor:
    """Standardized: the clip minus its mean, over its spread."""
    mean = frames.mean((1, 2, 3, 4), keepdim=True)
    spread = frames.std((1, 2, 3, 4), correction=0, keepdim=True)
    return (frames - mean) / spread.clamp_min(TINY)


def channels_first(frames: Tensor) -> Tensor:
    """(B,T,3,H,W) -> (B,3,T,H,W), the layout of 3-D convolutions."""
    return frames.transpose(1, 2).contiguous()
