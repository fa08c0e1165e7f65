"""The front ends: plain pixels (the paper), or log-intensity minus its causal running mean beside them.

Beer–Lambert says −Δlog I ∝ ΔV ∝ Δp, so the pulse is an additive wave in log-intensity at any brightness
of the skin. The running mean m_t = Σ dⁱ L_{t−i} / Σ dⁱ is causal and needs no clip.

The high-passed value h = L − m is computed from differences of L, which avoids cancellation. With
D_t = d·D_{t−1} + 1 = Σ dⁱ, the effective number of frames in the mean (D = 0 before the first frame):

    h_t = d·(D_{t−1}/D_t) · (h_{t−1} + L_t − L_{t−1})                              frame by frame
        = Σ_{s≤t} d^{t−s+1} (D_{s−1}/D_t) (L_s − L_{s−1}) + d^{t+1} (D_{−1}/D_t) h_{−1}   whole chunk
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

MEAN_S = 1.5  # time constant of running means
LOG_FLOOR = 8.0  # added to 0–255 before the logarithm: dark pixels are mostly noise
LOG_CENTRE = 120.0  # a mid-tone, so that logarithms are near zero
PIXEL_CENTRE, PIXEL_SPREAD = 115.0, 65.0


@dataclass(frozen=True)
class FrontState:
    """State of a front end; `log` and `high` are None for plain pixels."""

    weight: Tensor  # (1,) effective number of frames in a running mean: 0 before the first frame, then ≥ 1
    log: Tensor | None  # (B,3,S,S) log-intensity of the last frame
    high: Tensor | None  # (B,3,S,S) log-intensity minus its running mean, at the last frame


class PixelFrontEnd(nn.Module):
    """Scale pixels to about unit variance: three channels."""

    normalise = "raw"
    recursive = False  # whether the output depends on all earlier frames
    channels = 3

    def __init__(self, fps: float, mean_s: float = MEAN_S) -> None:
        super().__init__()
        self.decay = math.exp(-1.0 / (mean_s * fps))

    def initial_state(self, like: Tensor, batch: int, size: int) -> FrontState:
        del batch, size
        return FrontState(like.new_zeros(1), None, None)

    def forward(self, pixels: Tensor, state: FrontState) -> tuple[Tensor, FrontState]:
        """(B,T,S,S,3) 0–255 -> frame-major (B·T,channels,S,S), channels last in memory; new state."""
        _, _, weight = self._decayed(pixels.shape[1], state)
        return _frame_major(_scaled(pixels.to(torch.float32))), FrontState(weight[-1:], None, None)

    def running_weights(self, frames: int, state: FrontState) -> tuple[Tensor, Tensor]:
        """Return the weights of a running mean: of the next frames (T,T), of the mean before them (T,)."""
        kernel, fill, weight = self._decayed(frames, state)
        return kernel / weight[:, None], fill * state.weight / weight

    def _decayed(self, frames: int, state: FrontState) -> tuple[Tensor, Tensor, Tensor]:
        """Return d^{t−s} (T,T), d^{t+1} (T,) and D_t (T,) of the next frames."""
        steps = torch.arange(1, frames + 1, device=state.weight.device, dtype=torch.float32)
        age = steps[:, None] - steps[None, :]  # (T,T) t−s
        kernel = torch.where(age >= 0, self.decay ** age.clamp(min=0), torch.zeros_like(age))
        fill = self.decay**steps
        return kernel, fill, kernel.sum(1) + fill * state.weight


class LogFrontEnd(PixelFrontEnd):
    """High-passed log-intensity beside the scaled pixels: six channels."""

    normalise = "log"
    recursive = True
    channels = 6

    def __init__(self, fps: float, mean_s: float, gain: float) -> None:
        super().__init__(fps, mean_s)
        self.gain = gain

    def initial_state(self, like: Tensor, batch: int, size: int) -> FrontState:
        zeros = like.new_zeros(batch, 3, size, size)
        return FrontState(like.new_zeros(1), zeros, zeros)

    def forward(self, pixels: Tensor, state: FrontState) -> tuple[Tensor, FrontState]:
        assert state.log is not None
        assert state.high is not None
        batch, frames, size = int(pixels.shape[0]), pixels.shape[1], int(pixels.shape[2])
        kernel, fill, weight = self._decayed(frames, state)
        values = pixels.to(torch.float32)
        log = torch.log((values + LOG_FLOOR) / LOG_CENTRE).reshape(batch, frames, -1)  # (B,T,S·S·3)
        last = state.log.permute(0, 2, 3, 1).reshape(batch, 1, -1)
        before = torch.cat([state.weight, weight[:-1]])  # (T,) D_{t−1}
        # The first frame has no predecessor: its D_{−1} is 0, which removes the difference.
        difference = log - torch.cat([last, log[:, :-1]], 1)
        kernel = self.decay * kernel * (before[None, :] / weight[:, None])
        past = (fill * state.weight / weight)[None, :, None]
        held = state.high.permute(0, 2, 3, 1).reshape(batch, 1, -1)
        high = torch.matmul(kernel, difference) + past * held  # (B,T,S·S·3)

        def picture(last: Tensor) -> Tensor:
            return last.reshape(batch, size, size, 3).permute(0, 3, 1, 2)

        new = FrontState(weight[-1:], picture(log[:, -1]), picture(high[:, -1]))
        both = torch.cat([high.reshape(batch, frames, size, size, 3) * self.gain, _scaled(values)], -1)
        return _frame_major(both), new


def _scaled(values: Tensor) -> Tensor:
    return (values - PIXEL_CENTRE) / PIXEL_SPREAD


def _frame_major(values: Tensor) -> Tensor:
    """(B,T,H,W,C) -> (B·T,C,H,W); the memory already is channels last."""
    return values.flatten(0, 1).permute(0, 3, 1, 2)
