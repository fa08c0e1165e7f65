"""The observation model: log-intensity minus its causal running mean, beside the plain pixels.

Beer–Lambert says −Δlog I ∝ ΔV ∝ Δp, so the pulse is an additive wave in log-intensity, whatever the
skin's brightness. The running mean m_t = Σ d^i L_{t−i} / Σ d^i needs no look-ahead and no clip.

The high-passed value h = L − m is computed from differences of L, where nothing cancels:
with D_t = d·D_{t−1} + 1 = Σ dⁱ (how many frames the mean holds; D = 0 before the first frame)

    h_t = d·(D_{t−1}/D_t) · (h_{t−1} + L_t − L_{t−1})                              frame by frame
        = Σ_{s≤t} d^{t−s+1} (D_{s−1}/D_t) (L_s − L_{s−1}) + d^{t+1} (D_{−1}/D_t) h_{−1}   whole chunk
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .streaming import FrontState

LOG_FLOOR = 8.0  # added to 0–255 before the logarithm: dark pixels are mostly noise
LOG_CENTRE = 120.0  # a mid-tone, so that logs are near zero
PIXEL_CENTRE, PIXEL_SPREAD = 115.0, 65.0


class FrontEnd(nn.Module):
    """Turn pixels into the channels the network sees: 6 for "log", 3 for "raw"."""

    def __init__(self, normalise: str, fps: float, mean_s: float, gain: float) -> None:
        super().__init__()
        self.log = normalise == "log"
        self.channels = 6 if self.log else 3
        self.decay = math.exp(-1.0 / (mean_s * fps))
        self.gain = gain

    def initial_state(self, like: Tensor, batch: int, size: int) -> FrontState:
        zeros = like.new_zeros(batch, 3, size, size) if self.log else None
        return FrontState(like.new_zeros(1), zeros, zeros)

    def running(self, frames: int, state: FrontState) -> tuple[Tensor, Tensor]:
        """A running mean with the same time constant over the next frames: how much each of them counts in it
        (T,T), and the mean from before them (T,)."""
        kernel, fill, weight = self._decayed(frames, state)
        return kernel / weight[:, None], fill * state.weight / weight

    def _decayed(self, frames: int, state: FrontState) -> tuple[Tensor, Tensor, Tensor]:
        """(T,T) d^{t−s}, (T,) d^{t+1} and (T,) D_t of the next frames."""
        steps = torch.arange(1, frames + 1, device=state.weight.device, dtype=torch.float32)
        age = steps[:, None] - steps[None, :]  # (T,T) t−s
        kernel = torch.where(age >= 0, self.decay ** age.clamp(min=0), torch.zeros_like(age))
        fill = self.decay**steps
        return kernel, fill, kernel.sum(1) + fill * state.weight

    def forward(self, pixels: Tensor, state: FrontState) -> tuple[Tensor, FrontState]:
        """(B,T,S,S,3) 0–255 -> frame-major (B·T,channels,S,S), channels last in memory."""
        batch, frames, size = int(pixels.shape[0]), pixels.shape[1], int(pixels.shape[2])
        kernel, fill, weight = self._decayed(frames, state)
        values = pixels.to(torch.float32)
        plain = (values - PIXEL_CENTRE) / PIXEL_SPREAD
        if state.log is None or state.high is None:
            return _frame_major(plain), FrontState(weight[-1:], None, None)

        log = torch.log((values + LOG_FLOOR) / LOG_CENTRE).reshape(batch, frames, -1)  # (B,T,S·S·3)
        last = state.log.permute(0, 2, 3, 1).reshape(batch, 1, -1)
        before = torch.cat([state.weight, weight[:-1]])  # (T,) D_{t−1}
        # The first frame ever has no past to differ from: its D_{−1} is 0 and takes the difference out.
        difference = log - torch.cat([last, log[:, :-1]], 1)
        kernel = self.decay * kernel * (before[None, :] / weight[:, None])
        past = (fill * state.weight / weight)[None, :, None]
        held = state.high.permute(0, 2, 3, 1).reshape(batch, 1, -1)
        high = torch.matmul(kernel, difference) + past * held  # (B,T,S·S·3)

        def picture(last: Tensor) -> Tensor:
            return last.reshape(batch, size, size, 3).permute(0, 3, 1, 2)

        new = FrontState(weight[-1:], picture(log[:, -1]), picture(high[:, -1]))
        both = torch.cat([high.reshape(batch, frames, size, size, 3) * self.gain, plain], -1)
        return _frame_major(both), new


def _frame_major(values: Tensor) -> Tensor:
    """(B,T,H,W,C) -> (B·T,C,H,W); the memory already is channels last."""
    return values.flatten(0, 1).permute(0, 3, 1, 2)
