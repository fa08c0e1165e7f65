"""Everything a run needs to go on exactly where it was: weights, moments, averages, counters."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from . import checkpoint
from .recipe import Optimise


class NormStatistics:
    """BatchNorm statistics that move once per step, by the mean over its forward passes and processes.

    So a step means the same, however its clips are divided among passes and processes.
    """

    def __init__(self, network: nn.Module, momentum: float) -> None:
        self.momentum = momentum
        self.norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        for norm in self.norms:
            norm.momentum = 1.0  # each pass leaves its own statistics
        self.buffers = [b for n in self.norms for b in (n.running_mean, n.running_var) if b is not None]
        self.old: list[Tensor] = []
        self.sums: list[Tensor] = []
        self.passes = 0

    def begin(self) -> None:
        self.old = [buffer.clone() for buffer in self.buffers]
        self.sums = [torch.zeros_like(buffer) for buffer in self.buffers]
        self.passes = 0

    def after_pass(self) -> None:
        for total, buffer in zip(self.sums, self.buffers, strict=True):
            total += buffer
        self.passes += 1

    def end(self, world: int) -> None:
        if not self.buffers:
            return
        mean = torch.cat([total.flatten() for total in self.sums]) / self.passes
        if world > 1:
            dist.all_reduce(mean)
            mean /= world
        for buffer, old, new in zip(
            self.buffers, self.old, mean.split([b.numel() for b in self.buffers]), strict=True
        ):
            buffer.copy_(old + self.momentum * (new.reshape(buffer.shape) - old))


def learning_rate(options: Optimise, step: int, steps: int) -> float:
    """Warm-up, then constant or a cosine down to a hundredth."""
    warm = min(1.0, (step + 1) / options.warmup_steps) if options.warmup_steps else 1.0
    if options.schedule == "constant":
        return options.lr * warm
    share = min(1.0, step / max(1, steps - 1))
    return options.lr * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share)))


@dataclass
class Progress:
    """Counters of a run."""

    step: int = 0
    best: float = math.inf  # validation score, lower is better
    since_best: int = 0  # validations


class TrainState:
    """The moving parts of a run, and how they are saved."""

    def __init__(self, network: nn.Module, objective: nn.Module, options: Optimise) -> None:
        self.network, self.objective, self.options = network, objective, options
        self.parameters = [p for p in (*network.parameters(), *objective.parameters()) if p.requires_grad]
        self.optimiser = torch.optim.AdamW(
            self.parameters, lr=options.lr, betas=options.betas, weight_decay=options.weight_decay
        )
        self.average = copy.deepcopy(network).requires_grad_(False) if options.ema else None
        self.norms = NormStatistics(network, options.norm_momentum)
        self.progress = Progress()

    @property
    def judged(self) -> nn.Module:
        """The network that is validated and shipped: the average, if there is one."""
        return self.average if self.average is not None else self.network

    @torch.no_grad()
    def update_average(self) -> None:
        if self.average is None:
            return
        # Early on the average follows quickly, so that it does not remember the random start.
        decay = min(self.options.ema, (1 + self.progress.step) / (10 + self.progress.step))
        for mean, now in zip(
            self.average.state_dict().values(), self.network.state_dict().values(), strict=True
        ):
            if mean.dtype.is_floating_point:
                mean.lerp_(now, 1 - decay)
            else:
                mean.copy_(now)

    def save(self, path: Path, facts: dict[str, Any]) -> None:
        tensors = checkpoint.grouped("network", self.network.state_dict())
        tensors |= checkpoint.grouped("objective", self.objective.state_dict())
        if self.average is not None:
            tensors |= checkpoint.grouped("average", self.average.state_dict())
        for index, parameter in enumerate(self.parameters):
            for name, tensor in self.optimiser.state.get(parameter, {}).items():
                tensors[f"optimiser/{index}.{name}"] = tensor
        best = self.progress.best if math.isfinite(self.progress.best) else None
        progress = {"step": self.progress.step, "best": best, "since_best": self.progress.since_best}
        checkpoint.save(path, tensors, {**facts, "progress": progress})

    def load(self, path: Path) -> dict[str, Any]:
        tensors, facts = checkpoint.load(path)
        checkpoint.put(self.network, checkpoint.group(tensors, "network"), path)
        checkpoint.put(self.objective, checkpoint.group(tensors, "objective"), path)
        if self.average is not None:
            checkpoint.put(self.average, checkpoint.group(tensors, "average"), path)
        for name, tensor in checkpoint.group(tensors, "optimiser").items():
            index, _, key = name.partition(".")
            self.optimiser.state[self.parameters[int(index)]][key] = tensor
        progress = facts["progress"]
        best = math.inf if progress["best"] is None else progress["best"]
        self.progress = Progress(progress["step"], best, progress["since_best"])
        return facts
