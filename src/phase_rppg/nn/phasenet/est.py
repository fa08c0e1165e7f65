"""Efficient Spatio-Temporal block: the vision encoder f_enc of the paper is three of these."""

from __future__ import annotations

from torch import Tensor, nn

from .layers import CausalDepthwise, ConvNorm, MeanPool, SqueezeExcite
from .zas import ZAS


class ESTBlock(nn.Module):
    """Expand 1×1 → ZAS → depthwise 3×3 → causal depthwise over time → pool → squeeze-excite → project 1×1.

    The paper pools last. Mean pooling commutes with the 1×1 projection and with the channel weights of
    squeeze-excite, because both are linear over space. So mean pooling first gives the same result from a
    quarter of the pixels, if the pooling covers every pixel. This does not hold for max pooling.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        *,
        expansion: int,
        kernel: int,
        pool: int,
        zas: ZAS | None,
        reduction: int,
    ) -> None:
        super().__init__()
        width = inputs * expansion
        self.expand = ConvNorm(inputs, width, 1)
        self.act = nn.ReLU(inplace=True)
        self.zas: nn.Module = zas if zas is not None else nn.Identity()
        self.spatial = nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False)
        self.temporal = CausalDepthwise(width, kernel)
        self.pool = MeanPool(pool)
        self.excite: nn.Module = SqueezeExcite(width, reduction) if reduction else nn.Identity()
        self.project = ConvNorm(width, outputs, 1)

    def initial_state(self, like: Tensor, batch: int, height: int, width: int) -> Tensor:
        return self.temporal.initial_state(like, batch, height, width)

    def forward(self, x: Tensor, history: Tensor) -> tuple[Tensor, Tensor]:
        """(B·T,C,H,W) -> (B·T,C',H/pool,W/pool), new history."""
        x = self.act(self.zas(self.expand(x)))
        x, history = self.temporal(self.spatial(x), history)
        x = self.pool(self.act(x))
        return self.project(self.excite(x)), history
