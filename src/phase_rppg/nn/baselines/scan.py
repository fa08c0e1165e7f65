"""The selective scan of a state space model, in plain torch.

    h[l] = exp(Δ[l]·A) ⊙ h[l−1] + Δ[l]·B[l]·x[l]        y[l] = C[l]·h[l]

A loop over the tokens is slow, because a clip has tens of thousands of tokens. Here the sequence is split
into about √L chunks that are scanned in parallel. The first scan starts from zero and gives the state that
each chunk adds. A short scan over the chunks gives their initial states. The last scan starts from these and
gives the output. There is no division by decays, so the result is as stable as that of the loop.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint


def selective_scan(x: Tensor, step: Tensor, decay: Tensor, into: Tensor, out: Tensor) -> Tensor:
    """y (B,L,D) for x and step Δ (B,L,D), decay A (D,N) ≤ 0, into B and out C (B,L,N).

    While training, the states are computed again in the backward pass instead of kept.
    """
    if torch.is_grad_enabled() and x.requires_grad:
        y: Tensor = checkpoint(_scan, x, step, decay, into, out, use_reentrant=False)
        return y
    return _scan(x, step, decay, into, out)


def _scan(x: Tensor, step: Tensor, decay: Tensor, into: Tensor, out: Tensor) -> Tensor:
    batch, tokens, width = x.shape
    length = math.isqrt(tokens - 1) + 1
    chunks = -(-tokens // length)
    # Tokens after the end have Δ = 0: they do not change the state.
    x, step, into, out = (_chunked(part, chunks, length) for part in (x, step, into, out))

    state = x.new_zeros(batch, chunks, width, decay.shape[1])
    for place in range(length):
        state = _next(state, x[place], step[place], decay, into[place])

    lasting = torch.exp(step.sum(0).unsqueeze(-1) * decay)  # (B,chunks,D,N) decay of a state over a chunk
    carried = torch.zeros_like(state[:, 0])
    starts = []
    for chunk in range(chunks):
        starts.append(carried)
        carried = lasting[:, chunk] * carried + state[:, chunk]

    state = torch.stack(starts, dim=1)
    outputs = []
    for place in range(length):
        state = _next(state, x[place], step[place], decay, into[place])
        outputs.append((state @ out[place].unsqueeze(-1)).squeeze(-1))  # (B,chunks,D)
    return torch.stack(outputs, dim=2).flatten(1, 2)[:, :tokens]


def _next(state: Tensor, x: Tensor, step: Tensor, decay: Tensor, into: Tensor) -> Tensor:
    """One token in every chunk: state (B,chunks,D,N), x and step (B,chunks,D), into (B,chunks,N)."""
    return torch.exp(step.unsqueeze(-1) * decay) * state + (step * x).unsqueeze(-1) * into.unsqueeze(-2)


def _chunked(part: Tensor, chunks: int, length: int) -> Tensor:
    """(B,L,·) -> (length,B,chunks,·), zeros after the end."""
    part = F.pad(part, (0, 0, 0, chunks * length - part.shape[1]))
    return part.unflatten(1, (chunks, length)).movedim(2, 0).contiguous()
