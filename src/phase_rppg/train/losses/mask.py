"""Losses of the attention mask, for clips whose skin mask the generator knows."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def off_skin_loss(mask: Tensor, skin: Tensor) -> Tensor:
    """Return −log of the share of the attention mask on skin: 0 if all of it is, log n if 1/n is.

    The mask (B,T,M,h,w) sums to 1; skin (B,S,S) is in 0–1. Clips without a known skin mask (all 0) are left
    out. Only the first of the M masks has a loss.
    """
    known, small = _skin_cells(mask, skin)
    if not known.any():
        return mask.new_zeros(())
    small = small / small.amax((1, 2, 3), keepdim=True)
    share = (mask[known, :, 0] * small).sum((-1, -2))  # (B,T)
    return -share.clamp_min(1e-4).log().mean()


def coverage_loss(mask: Tensor, skin: Tensor) -> Tensor:
    """Return the Kullback–Leibler divergence of the mask from the uniform distribution over all skin.

    Shapes as in `off_skin_loss`. A mask on one cheek lies on skin, but averages noise and codec artefacts
    over that cheek only. This loss grows with every part of the skin that the mask leaves out.
    """
    known, small = _skin_cells(mask, skin)
    if not known.any():
        return mask.new_zeros(())
    even = small / small.sum((1, 2, 3), keepdim=True)  # (B,1,h,w)
    distance = even * (even.clamp_min(1e-9).log() - mask[known, :, 0].clamp_min(1e-6).log())
    return distance.sum((-1, -2)).mean()


def _skin_cells(mask: Tensor, skin: Tensor) -> tuple[Tensor, Tensor]:
    """Return which clips have a skin mask (B,), and their share of skin per mask cell (known,1,h,w)."""
    height, width = mask.shape[-2:]
    small = F.adaptive_avg_pool2d(skin[:, None], (height, width))  # (B,1,h,w)
    known = small.amax((1, 2, 3)) > 0
    return known, small[known]
