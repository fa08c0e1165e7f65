"""Zero-FLOPs Axial Swapper: transpose small blocks of the last few channels (section "ZAS" of the paper).

It mixes neighbouring cells without parameters and multiplications and does not mix frames. It is its own
inverse, so the gradient is the same swap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...errors import ArgumentError


class ZAS(nn.Module):
    """Swap rows and columns inside b×b blocks of the last k = ⌊p·C⌋ channels."""

    def __init__(self, block: int = 2, fraction: float = 0.25, *, inplace: bool = False) -> None:
        super().__init__()
        if block < 1:
            raise ArgumentError("ZAS block size b", block, "a whole number ≥ 1")
        if not 0 < fraction < 1:
            raise ArgumentError("ZAS channel fraction p", fraction, "a number between 0 and 1")
        self.block, self.fraction, self.inplace = block, fraction, inplace

    def extra_repr(self) -> str:
        return f"block={self.block}, fraction={self.fraction}"

    def forward(self, x: Tensor) -> Tensor:
        """(N,C,H,W) -> (N,C,H,W); rows and columns beyond the last whole block do not change."""
        if x.dim() != 4:
            raise ArgumentError("ZAS input", f"shape {tuple(x.shape)}", "frame-major (N,C,H,W)")
        channels = int(self.fraction * x.shape[1])
        if min(x.shape[2:]) < self.block:
            raise ArgumentError(
                "ZAS input", f"{x.shape[2]}×{x.shape[3]} pixels", f"at least the block size {self.block}"
            )
        if channels == 0 or self.block == 1:
            return x
        if torch.onnx.is_in_onnx_export():
            return swapped_by_index(x, self.block, channels)
        swapped: Tensor = _Swap.apply(x, self.block, channels, self.inplace)
        return swapped


class _Swap(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, block: int, channels: int, inplace: bool) -> Tensor:
        ctx.block, ctx.channels = block, channels
        if inplace:
            ctx.mark_dirty(x)
        return _swap_(x if inplace else x.clone(), block, channels)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        return _swap_(grads[0].clone(), ctx.block, ctx.channels), None, None, None


def _swap_(x: Tensor, b: int, channels: int) -> Tensor:
    """T(Z)_{u,v} = Z_{v,u} in every block, in place: only off-diagonal pixels change."""
    h, w = x.shape[2] // b * b, x.shape[3] // b * b
    swap = x[:, x.shape[1] - channels :]
    for u in range(b):
        for v in range(u + 1, b):
            upper, lower = swap[:, :, u:h:b, v:w:b], swap[:, :, v:h:b, u:w:b]
            held = upper.clone()
            upper.copy_(lower)
            lower.copy_(held)
    return x


def swapped_by_index(x: Tensor, b: int, channels: int) -> Tensor:
    """Return the same swap computed as one gather over pixels, for exported graphs."""
    height, width = int(x.shape[2]), int(x.shape[3])
    h, w = height // b * b, width // b * b
    source = np.arange(height * width).reshape(height, width)
    source[:h, :w] = source[:h, :w].reshape(h // b, b, w // b, b).transpose(0, 3, 2, 1).reshape(h, w)
    keep, swap = x[:, :-channels], x[:, -channels:]
    swap = swap.flatten(2).index_select(2, torch.from_numpy(source.ravel()))
    return torch.cat([keep, swap.reshape(-1, channels, height, width)], 1)
