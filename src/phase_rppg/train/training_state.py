"""The state of a run that must be saved to resume it: weights, moments, averages, counters."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ..errors import WeightsError
from .checkpoint import Checkpoint, NetworkSpec, add_prefix, load_weights, save_checkpoint, strip_prefix
from .recipe import Optimise


class NormStatistics:
    """BatchNorm statistics that are updated once per step, with the mean over forward passes and processes.

    The update does not depend on how the clips are divided among passes and processes.
    """

    def __init__(self, network: nn.Module, momentum: float) -> None:
        self.momentum = momentum
        self.norms = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        for norm in self.norms:
            norm.momentum = 1.0  # the buffers then hold the statistics of the last pass
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
    """Return the learning rate: linear warm-up, then the schedule."""
    if options.schedule == "one-cycle":
        return _one_cycle(step, steps, options.lr / 25, options.lr, options.lr / 25e4)
    warm = min(1.0, (step + 1) / options.warmup_steps) if options.warmup_steps else 1.0
    if options.schedule == "constant":
        return options.lr * warm
    share = min(1.0, step / max(1, steps - 1))
    return options.lr * warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * share)))


def beta1(options: Optimise, step: int, steps: int) -> float:
    """Return β₁ of the optimiser: fixed, or from 0.95 down to 0.85 and back with a one-cycle schedule."""
    if options.schedule != "one-cycle":
        return options.betas[0]
    return _one_cycle(step, steps, 0.95, 0.85, 0.95)


def _one_cycle(step: int, steps: int, begin: float, middle: float, end: float) -> float:
    """Return begin → middle over the first 30 % of the steps, then middle → end, along half cosines."""
    turn = 0.3 * steps - 1
    if step <= turn:
        low, high, share = begin, middle, step / max(turn, 1e-9)
    else:
        low, high, share = middle, end, (step - turn) / max(steps - 1 - turn, 1e-9)
    return high + (low - high) / 2 * (1 + math.cos(math.pi * min(share, 1.0)))


@dataclass
class Progress:
    """Counters of a run."""

    step: int = 0
    best: float = math.inf  # validation score, lower is better
    since_best: int = 0  # validations


class TrainState:
    """The network, the objective, the optimiser and the running average of a run."""

    def __init__(self, network: nn.Module, objective: nn.Module, options: Optimise) -> None:
        self.network, self.objective, self.options = network, objective, options
        self.parameters = [p for p in (*network.parameters(), *objective.parameters()) if p.requires_grad]
        kind = {"adamw": torch.optim.AdamW, "adam": torch.optim.Adam}[options.optimiser]
        self.optimiser = kind(
            self.parameters, lr=options.lr, betas=options.betas, weight_decay=options.weight_decay
        )
        self.average = copy.deepcopy(network).requires_grad_(False) if options.ema else None
        self.norms = NormStatistics(network, options.norm_momentum)
        self.progress = Progress()
        self.scaler: torch.amp.GradScaler | None = None  # only for float16

    def scaled(self, loss: Tensor) -> Tensor:
        """Return the loss, multiplied by the scale of float16 if there is one."""
        return loss if self.scaler is None else self.scaler.scale(loss)

    def update_weights(self) -> None:
        """Make one step of the optimiser; a scaler skips the step if a gradient overflowed."""
        if self.scaler is None:
            self.optimiser.step()
        else:
            self.scaler.step(self.optimiser)
            self.scaler.update()

    @property
    def validated(self) -> nn.Module:
        """The network that is validated and exported: the running average, if there is one."""
        return self.average if self.average is not None else self.network

    @torch.no_grad()
    def update_average(self) -> None:
        if self.average is None:
            return
        # A smaller decay in the first steps, so that the average forgets the initial weights.
        decay = min(self.options.ema, (1 + self.progress.step) / (10 + self.progress.step))
        for mean, now in zip(
            self.average.state_dict().values(), self.network.state_dict().values(), strict=True
        ):
            if mean.dtype.is_floating_point:
                mean.lerp_(now, 1 - decay)
            else:
                mean.copy_(now)

    def save(self, path: Path, spec: NetworkSpec, provenance: dict[str, Any]) -> None:
        """Write a checkpoint from which training can resume."""
        resume = add_prefix("objective", self.objective.state_dict())
        if self.average is not None:
            resume |= add_prefix("network", self.network.state_dict())
        for index, parameter in enumerate(self.parameters):
            for name, tensor in self.optimiser.state.get(parameter, {}).items():
                resume[f"optimiser/{index}.{name}"] = tensor
        best = self.progress.best if math.isfinite(self.progress.best) else None
        progress: dict[str, Any] = {
            "step": self.progress.step,
            "best": best,
            "since_best": self.progress.since_best,
        }
        if self.scaler is not None:
            progress["scaler"] = self.scaler.state_dict()
        save_checkpoint(
            path,
            spec,
            self.validated.state_dict(),
            resume=resume,
            provenance={**provenance, "progress": progress},
        )

    def load(self, checkpoint: Checkpoint) -> None:
        """Restore the state that `save` wrote."""
        path, name = checkpoint.path, checkpoint.spec.name
        load_weights(self.validated, checkpoint.weights, path, name)
        if self.average is not None:
            load_weights(self.network, strip_prefix("network", checkpoint.resume), path, name)
        load_weights(self.objective, strip_prefix("objective", checkpoint.resume), path, "the objective")
        try:
            for key, tensor in strip_prefix("optimiser", checkpoint.resume).items():
                index, _, moment = key.partition(".")
                parameter = self.parameters[int(index)]
                # The optimiser keeps its step count on the CPU.
                place = tensor.device if moment == "step" else parameter.device
                self.optimiser.state[parameter][moment] = tensor.to(place)
            progress = checkpoint.provenance["progress"]
            best = math.inf if progress["best"] is None else float(progress["best"])
            self.progress = Progress(int(progress["step"]), best, int(progress["since_best"]))
            if self.scaler is not None and "scaler" in progress:
                self.scaler.load_state_dict(progress["scaler"])
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise WeightsError(path, "cannot be resumed: its training state is damaged") from error
