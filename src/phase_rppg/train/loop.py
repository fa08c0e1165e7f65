"""The training loop: can be stopped, killed and resumed, and goes on to the very same weights.

OUT/log.csv             one line per `log_every` steps and per validation
OUT/last.safetensors    everything needed to go on
OUT/best.safetensors    the network that validated best
OUT/bad-batch.npz       what made the loss not a number, if that happened
OUT/NAME/               the same of the recipe NAME that comes first, if there is one (`after`)
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from .. import __version__, registry
from ..errors import InputError, Interrupted, OutputError, RecipeError
from ..fileio import atomic_path
from ..nn import build
from ..nn.memory import keep_memory
from . import checkpoint
from .interrupt import Stop
from .loader import Batch, TrainingClips, batches
from .log import Log
from .losses import Objective, Terms
from .recipe import Recipe, from_dict, load
from .sources import ClipSource, open_source
from .state import TrainState, learning_rate
from .validate import Score, choose, validate


@dataclass(frozen=True)
class Event:
    """What the loop tells whoever watches, after each step."""

    step: int
    steps: int
    loss: float
    pearson: float
    score: Score | None  # of the last validation


def train(
    recipe: Recipe,
    out: str | Path,
    *,
    resume: bool = False,
    sources: tuple[list[ClipSource], list[ClipSource]] | None = None,
    watch: Callable[[Event], None] | None = None,
) -> Path:
    """Train what the recipe says into the folder `out`; returns the checkpoint to use.

    Under torchrun every process takes its share of each batch, and the result is that of one process with the
    whole batch. `sources` (for training and validation) replace those of the recipe.
    """
    out, begin = Path(out), recipe.init
    if recipe.after and not (resume and (out / "last.safetensors").exists()):
        before, first = out / Path(recipe.after).stem, load(recipe.after)
        begin = str(before / "last.safetensors")
        if not _finished(first, begin):
            train(first, before, resume=True, sources=sources, watch=watch)
    rank, world = _processes()
    run = Run(recipe, out, rank, world, resume, sources, begin)
    with Stop() as stop:
        run.go(stop, watch or _ignore)
    best = run.out / "best.safetensors"
    return best if best.exists() else run.out / "last.safetensors"


class Run:
    """One training run."""

    def __init__(
        self,
        recipe: Recipe,
        out: Path,
        rank: int,
        world: int,
        resume: bool,
        sources: tuple[list[ClipSource], list[ClipSource]] | None,
        begin: str,  # checkpoint of the weights to begin with, or nothing
    ) -> None:
        self.recipe, self.out, self.rank, self.world = recipe, out, rank, world
        share, uneven = divmod(recipe.optimise.batch, world)
        self.micro = recipe.optimise.micro or share
        if uneven or share % self.micro:
            raise RecipeError(
                "optimise.batch", f"{recipe.optimise.batch} clips cannot be shared by {world} processes"
            )
        torch.set_num_threads(1)
        keep_memory()
        torch.manual_seed(recipe.seed)
        options = {key: value for key, value in recipe.network.items() if key != "name"}
        network = build(recipe.network["name"], **options)
        self.size = int(getattr(network, "size", registry.load("nn", recipe.network["name"]).SIZE))
        self.fps = float(getattr(getattr(network, "config", None), "fps", 30.0))
        if begin:
            checkpoint.put(network, self._weights(begin), begin)
        self.state = TrainState(network, self._objective(network), recipe.optimise)
        training, validation = sources or self._open()
        self.clips = TrainingClips(recipe, training, self.size, self.fps)
        self.validation = choose(validation, recipe.data.validate_clips)
        self.steps = recipe.optimise.epochs * self.clips.plan.steps_per_epoch
        self.score: Score | None = None
        last = out / "last.safetensors"
        if resume and last.exists():
            facts = self.state.load(last)
            if _comparable(from_dict(facts["recipe"], str(last))) != _comparable(recipe):
                raise RecipeError("--resume", f"{last} was made by another recipe; choose another --out")
        elif last.exists():
            raise OutputError(
                out, "it holds a run already; add --resume to go on with it, or choose another folder"
            )
        self.log = Log(out / "log.csv", self.state.progress.step) if rank == 0 else None

    def go(self, stop: Stop, watch: Callable[[Event], None]) -> None:
        """Take steps until the recipe, patience or the user says enough."""
        progress, options = self.state.progress, self.recipe.watch
        feed = batches(
            self.clips,
            first_step=progress.step,
            last_step=self.steps,
            rank=self.rank,
            world=self.world,
            workers=self.recipe.data.workers,
        )
        started, since = time.monotonic(), 0
        for batch in feed:
            rate = learning_rate(self.recipe.optimise, progress.step, self.steps)
            terms, norm = self._step(batch, rate)
            progress.step, since = progress.step + 1, since + 1
            ended = progress.step == self.steps
            if self.log and (progress.step % options.log_every == 0 or ended):
                per_s = since * self.recipe.optimise.batch / (time.monotonic() - started)
                self.log.write(
                    step=progress.step,
                    epoch=progress.step / self.clips.plan.steps_per_epoch,
                    clips=progress.step * self.recipe.optimise.batch,
                    lr=rate,
                    loss=float(terms.total),
                    pearson=float(terms.pearson),
                    auxiliary=float(terms.auxiliary),
                    grad_norm=norm,
                    clips_per_s=per_s,
                )
                started, since = time.monotonic(), 0
            if self.validation and (progress.step % options.validate_every == 0 or ended):
                self._validate()
            halted = self._agreed(stop.asked)
            if progress.step % options.save_every == 0 or self._enough or halted:
                self._save("last")
            watch(Event(progress.step, self.steps, float(terms.total), float(terms.pearson), self.score))
            if halted:
                raise Interrupted(f"stopped at step {progress.step}; go on with --resume")
            if self._enough:
                break

    @property
    def _enough(self) -> bool:
        """Whether all steps are done, or patience is at its end."""
        progress, patience = self.state.progress, self.recipe.watch.patience
        return progress.step == self.steps or bool(patience and progress.since_best >= patience)

    def _step(self, batch: Batch, rate: float) -> tuple[Terms, float]:
        """One change of the weights from this process's share of a batch."""
        state, options = self.state, self.recipe.optimise
        # Networks with dropout: the draw depends on the step only, so a resumed run repeats it.
        torch.manual_seed((self.recipe.seed * 1_000_003 + state.progress.step) * 4096 + self.rank)
        state.network.train()
        state.norms.begin()
        state.optimiser.zero_grad(set_to_none=True)
        sums = torch.zeros(3)
        for first in range(0, len(batch.pixels), self.micro):
            part = slice(first, first + self.micro)
            terms = state.objective(
                state.network(batch.pixels[part]), batch.wave[part], batch.labelled[part], batch.skin[part]
            )
            share = len(batch.pixels[part]) / options.batch
            (terms.total * share).backward()
            state.norms.after_pass()
            sums += share * torch.stack([terms.total.detach(), terms.pearson, terms.auxiliary])
        if self.world > 1:
            dist.all_reduce(sums)
            self._share_gradients()
        state.norms.end(self.world)
        norm = float(nn.utils.clip_grad_norm_(state.parameters, options.clip_norm or math.inf))
        if not (math.isfinite(float(sums[0])) and math.isfinite(norm)):
            raise self._bad(batch, float(sums[0]), norm)
        for group in state.optimiser.param_groups:
            group["lr"] = rate
        state.optimiser.step()
        state.update_average()
        return Terms(*sums), norm

    def _share_gradients(self) -> None:
        grads = [p.grad for p in self.state.parameters if p.grad is not None]
        joined = torch.cat([g.flatten() for g in grads])
        dist.all_reduce(joined)
        for grad, mean in zip(grads, joined.split([g.numel() for g in grads]), strict=True):
            grad.copy_(mean.reshape(grad.shape))

    def _validate(self) -> None:
        progress = self.state.progress
        worse = 0.0
        if self.rank == 0:
            self.score = validate(
                self.state.judged,
                self.validation,
                self.size,
                self.fps,
                delay_frames=self.recipe.delay_frames,
                frames=self.recipe.data.frames,
                summed=self.recipe.loss.target == "difference",
            )
            worse = math.inf if self.score is None else self.score.value
            if self.log and self.score is not None:
                self.log.write(
                    step=progress.step,
                    valid_pearson=self.score.pearson,
                    valid_mae_bpm=self.score.mae_bpm,
                    valid_within_5=self.score.within_5,
                )
        value = self._told(worse)
        if value < progress.best:
            progress.best, progress.since_best = value, 0
            self._save("best")
        else:
            progress.since_best += 1

    def _save(self, name: str) -> None:
        if self.rank != 0:
            return
        facts: dict[str, Any] = {
            "version": __version__,
            "recipe": _comparable(self.recipe),
            "clips_seen": self.state.progress.step * self.recipe.optimise.batch,
            "finished": self._enough,
            "score": None if self.score is None else vars(self.score),
        }
        if name == "last":
            self.state.save(self.out / "last.safetensors", facts)
        else:
            weights = checkpoint.grouped("network", self.state.judged.state_dict())
            checkpoint.save(
                self.out / "best.safetensors", weights, {**facts, "step": self.state.progress.step}
            )

    def _bad(self, batch: Batch, loss: float, norm: float) -> InputError:
        """Keep the evidence; the last good checkpoint stays untouched."""
        step = self.state.progress.step
        with atomic_path(self.out / "bad-batch.npz") as temporary, open(temporary, "wb") as file:
            np.savez(file, pixels=batch.pixels.numpy(), wave=batch.wave.numpy(), step=step)
        return InputError(
            f"step {step + 1}: the loss is {loss}, its gradient {norm}; the batch is in "
            f"{self.out / 'bad-batch.npz'}, last.safetensors is from before; try a lower lr or a clip_norm"
        )

    def _agreed(self, asked: bool) -> bool:
        """Whether any process was asked to stop."""
        return self._told(float(asked), everyone=True) > 0

    def _told(self, value: float, *, everyone: bool = False) -> float:
        """What process 0 says (or the largest of all), in every process."""
        if self.world == 1:
            return value
        box = torch.tensor([value], dtype=torch.float64)
        if everyone:
            dist.all_reduce(box, dist.ReduceOp.MAX)
        else:
            dist.broadcast(box, 0)
        return float(box)

    def _weights(self, begin: str) -> dict[str, Tensor]:
        """The weights of a checkpoint, or of an exported network."""
        if begin.endswith(".safetensors"):
            return checkpoint.judged(checkpoint.load(begin)[0])
        from .restore import trainable

        return dict(trainable(begin).state_dict())

    def _objective(self, network: nn.Module) -> Objective:
        with torch.no_grad():
            frames = torch.zeros(1, self.recipe.data.frames, self.size, self.size, 3)
            example = network.eval()(frames)
        loss = self.recipe.loss
        return Objective(
            loss.auxiliary,
            loss.weight,
            self.fps,
            warmup_frames=loss.warmup_frames,
            delay_frames=self.recipe.delay_frames,
            example=example,
            main=loss.main,
            target=loss.target,
        )

    def _open(self) -> tuple[list[ClipSource], list[ClipSource]]:
        data = self.recipe.data
        opened = []
        for sources in (data.train, data.validate):
            if self.world > 1 and self.rank:
                dist.barrier()  # process 0 makes what has to be made
            opened.append([open_source(source, data.workers) for source in sources])
            if self.world > 1 and not self.rank:
                dist.barrier()
        return opened[0], opened[1]


def _finished(recipe: Recipe, path: str) -> bool:
    """Whether a checkpoint is the end of this recipe: then its clips are not needed any more."""
    if not Path(path).exists():
        return False
    facts = checkpoint.load(path)[1]
    same = _comparable(from_dict(facts["recipe"], path)) == _comparable(recipe)
    return bool(same and facts.get("finished"))


def _ignore(event: Event) -> None:
    del event


def _processes() -> tuple[int, int]:
    """(rank, world size), joined to the others if torchrun started us."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("gloo")
    return (dist.get_rank(), world) if world > 1 else (0, 1)


def _comparable(recipe: Recipe) -> dict[str, Any]:
    """The recipe as it comes back from JSON."""
    import json

    plain: dict[str, Any] = json.loads(json.dumps(recipe.to_dict()))
    return plain
