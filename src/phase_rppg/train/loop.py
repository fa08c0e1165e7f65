"""The training loop. A run that is interrupted and resumed ends with the same weights, bit by bit.

OUT/log.csv             one line per `log_every` steps and per validation
OUT/last.safetensors    the latest checkpoint, from which training can resume
OUT/best.safetensors    the checkpoint with the best validation score
OUT/bad-batch.npz       the batch that made the loss NaN or infinite, if there was one
OUT/NAME/               the same files of the earlier stage NAME
OUT/CACHE/              the generated clips of a source with `cache = "CACHE"`
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from .. import __version__
from ..errors import InputError, Interrupted, OutputError, RecipeError
from ..evaluate.leaks import merged, recorded_subjects
from ..fileio import atomic_path
from ..nn import build
from ..nn.memory_allocator import keep_memory
from ..nn.output import as_float32
from .checkpoint import Checkpoint, describe, load_checkpoint, load_weights, save_checkpoint
from .compute import Compute
from .interrupt import StopRequest
from .loader import Batch, TrainingClips, batches
from .log import CsvLog
from .losses import Objective, Terms
from .recipe import Recipe, Stage, from_dict
from .sources import ClipSource, OnClips, open_sources, subjects_of
from .training_state import TrainState, beta1, learning_rate
from .validate import Score, choose_clips, validate


@dataclass(frozen=True)
class Event:
    """The progress after a step, for the callback `on_step`."""

    step: int
    steps: int
    loss: float
    pearson: float
    clips_per_s: float  # since the start of this run
    step_rate: float  # steps per second, likewise
    score: Score | None  # of the last validation


LONGEST_WAIT = timedelta(days=7)  # of a process for the others; torch waits 10 or 30 minutes
OnStep = Callable[[Event], None]
Sources = tuple[list[ClipSource], list[ClipSource]]  # for training and for validation


def train_stages(
    stages: Sequence[Stage],
    out: str | Path,
    *,
    resume: bool = False,
    sources: Sources | None = None,
    cache: Path | None = None,
    on_step: OnStep | None = None,
    on_clips: OnClips | None = None,
    compute: Compute | None = None,
) -> Path:
    """Train the stages of a recipe in order; returns the checkpoint to use.

    The last stage writes to the folder `out`, an earlier one to `out`/NAME. Finished stages are not repeated.
    All stages keep generated clips below the folder `cache`, by default `out`. `on_clips` reports the clips
    that are generated before a stage, `on_step` each step.
    """
    out, begin = Path(out), ""

    def run(stage: Stage, folder: Path, resume: bool) -> Path:
        named = None if on_clips is None else lambda made: on_clips(replace(made, stage=stage.name))
        return train(
            stage.recipe,
            folder,
            resume=resume,
            sources=sources,
            cache=cache or out,
            on_step=on_step,
            on_clips=named,
            begin=begin,
            compute=compute,
        )

    *earlier, last = stages
    _check_folder(out, resume=resume)
    if not (resume and (out / "last.safetensors").exists()):
        ends = [out / stage.name / "last.safetensors" for stage in earlier]
        finished = [_finished(stage.recipe, end) for stage, end in zip(earlier, ends, strict=True)]
        first = max((number + 1 for number, done in enumerate(finished) if done), default=0)
        begin = str(ends[first - 1]) if first else ""
        for stage, end in zip(earlier[first:], ends[first:], strict=True):
            run(stage, end.parent, resume=True)
            begin = str(end)
    return run(last, out, resume=resume)


def train(
    recipe: Recipe,
    out: str | Path,
    *,
    resume: bool = False,
    sources: Sources | None = None,
    cache: Path | None = None,
    on_step: OnStep | None = None,
    on_clips: OnClips | None = None,
    begin: str = "",
    compute: Compute | None = None,
) -> Path:
    """Train one recipe, with results in the folder `out`; returns the checkpoint to use.

    Under torchrun every process takes its share of each batch. The result is that of one process with the
    whole batch. `sources` replace those of the recipe; `begin` is a checkpoint that replaces `init`.
    Generated clips are kept below the folder `cache`, by default `out`. `compute` chooses the device, by
    default a CPU.
    """
    compute = compute or Compute()
    rank, world = join_processes(compute)

    def open_all() -> Sources:
        return sources or _open(recipe, cache or Path(out), rank, world, on_clips)

    run = Run(recipe, Path(out), rank, world, resume, open_all, begin or recipe.init, compute)
    with StopRequest() as stop:
        run.go(stop, on_step or _ignore)
    if world > 1:
        dist.barrier()  # process 0 has written the checkpoint that the next stage reads
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
        open_all: Callable[[], Sources],  # called after the settings have been checked
        begin: str,  # checkpoint to start from; empty: random weights
        compute: Compute,
    ) -> None:
        self.compute, self.device = compute, compute.resolve()
        self.recipe, self.out, self.rank, self.world = recipe, out, rank, world
        share, uneven = divmod(recipe.optimise.batch, world)
        self.micro = recipe.optimise.micro or share
        if uneven or share % self.micro:
            raise RecipeError(
                "optimise.batch", f"{recipe.optimise.batch} clips cannot be shared by {world} processes"
            )
        if self.device.type == "cpu":
            torch.set_num_threads(1)
            keep_memory()
        torch.manual_seed(recipe.seed)
        name, options = recipe.network_options()
        network = build(name, **options)
        self.spec = describe(
            name,
            options,
            network,
            frames=recipe.data.frames,
            delay_frames=recipe.delay_frames,
            target=recipe.loss.target,
        )
        self.size, self.fps = self.spec.size, self.spec.fps
        subjects: dict[str, list[str]] = {}
        if begin:
            start = load_checkpoint(begin)
            load_weights(network, start.weights, begin, name)
            subjects = recorded_subjects(start.provenance)
        objective = self._objective(network)  # before the network moves, so that all devices start equal
        self.state = TrainState(compute.place(network), objective.to(self.device), recipe.optimise)
        self.state.scaler = compute.scaler()
        self.forward = compute.compiled(self.state.network)
        training, validation = open_all()
        used = {"train": subjects_of(training), "validate": subjects_of(validation)}
        self.subjects = merged(subjects, used)  # those of the initial weights included
        self.clips = TrainingClips(recipe, training, self.size, self.fps)
        self.validation = choose_clips(validation, recipe.data.validate_clips)
        self.steps = recipe.optimise.epochs * self.clips.plan.steps_per_epoch
        self.score: Score | None = None
        _check_folder(out, resume=resume)
        self._load_last(out / "last.safetensors")
        self.log = CsvLog(out / "log.csv", self.state.progress.step) if rank == 0 else None

    def _load_last(self, last: Path) -> None:
        """Continue from the last checkpoint, if there is one of the same recipe and precision."""
        if not last.exists():
            return
        saved = load_checkpoint(last)
        if not _same_recipe(saved, self.recipe):
            raise RecipeError("--resume", f"{last} was made by another recipe; choose another --out")
        made_with = saved.provenance.get("compute", {}).get("precision", "fp32")
        if made_with != self.compute.precision:
            raise RecipeError("--resume", f"{last} was made with --precision {made_with}; repeat it")
        self.state.load(saved)

    def go(self, stop: StopRequest, on_step: OnStep) -> None:
        """Train until all steps are done, patience is exhausted or the user interrupts."""
        progress, options = self.state.progress, self.recipe.watch
        feed = batches(
            self.clips,
            first_step=progress.step,
            last_step=self.steps,
            rank=self.rank,
            world=self.world,
            workers=self.recipe.data.workers,
            pin_memory=self.compute.pins_memory,
        )
        began, first = time.monotonic(), progress.step
        started, since = began, 0
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
            halted = self._agreed(stop.requested)
            if progress.step % options.save_every == 0 or self._finished or halted:
                self._save("last")
            step_rate = (progress.step - first) / (time.monotonic() - began)
            losses = float(terms.total), float(terms.pearson)
            clips_per_s = step_rate * self.recipe.optimise.batch
            on_step(Event(progress.step, self.steps, *losses, clips_per_s, step_rate, self.score))
            if halted:
                raise Interrupted(f"stopped at step {progress.step}; continue with --resume")
            if self._finished:
                break

    @property
    def _finished(self) -> bool:
        """Whether all steps are done or patience is exhausted."""
        progress, patience = self.state.progress, self.recipe.watch.patience
        return progress.step == self.steps or bool(patience and progress.since_best >= patience)

    def _step(self, batch: Batch, rate: float) -> tuple[Terms, float]:
        """Update the weights from the clips of this process; returns the loss terms and the gradient norm."""
        state, options = self.state, self.recipe.optimise
        # For dropout: random numbers depend on the step only, so a resumed run repeats them.
        torch.manual_seed((self.recipe.seed * 1_000_003 + state.progress.step) * 4096 + self.rank)
        state.network.train()
        state.norms.begin()
        state.optimiser.zero_grad(set_to_none=True)
        sums = torch.zeros(3, device=self.device)
        finished = state.progress.step // self.clips.plan.steps_per_epoch / options.epochs
        batch = batch.to(self.device)
        for first in range(0, len(batch.pixels), self.micro):
            part = slice(first, first + self.micro)
            with self.compute.autocast():
                output = self.forward(batch.pixels[part])
            terms = state.objective(
                as_float32(output), batch.wave[part], batch.labelled[part], batch.skin[part], finished
            )
            share = len(batch.pixels[part]) / options.batch
            state.scaled(terms.total * share).backward()
            state.norms.after_pass()
            sums += share * torch.stack([terms.total.detach(), terms.pearson, terms.auxiliary])
        if self.world > 1:
            dist.all_reduce(sums)
            self._share_gradients()
        state.norms.end(self.world)
        if state.scaler is not None:
            state.scaler.unscale_(state.optimiser)
        norm = float(nn.utils.clip_grad_norm_(state.parameters, options.clip_norm or math.inf))
        # With a loss scaler, gradients may overflow: the scaler skips the step and lowers its scale.
        overflow = not math.isfinite(norm) and state.scaler is None
        if not math.isfinite(float(sums[0])) or overflow:
            raise self._bad_batch(batch, float(sums[0]), norm)
        for group in state.optimiser.param_groups:
            group["lr"] = rate
            group["betas"] = (beta1(options, state.progress.step, self.steps), options.betas[1])
        state.update_weights()
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
        value = 0.0
        if self.rank == 0:
            self.score = validate(self.state.validated, self.validation, self.spec)
            value = math.inf if self.score is None else self.score.value
            if self.log and self.score is not None:
                self.log.write(
                    step=progress.step,
                    valid_pearson=self.score.pearson,
                    valid_mae_bpm=self.score.mae_bpm,
                    valid_within_5=self.score.within_5,
                )
        value = self._broadcast(value)
        if value < progress.best:
            progress.best, progress.since_best = value, 0
            self._save("best")
        else:
            progress.since_best += 1

    def _save(self, name: str) -> None:
        if self.rank != 0:
            return
        provenance: dict[str, Any] = {
            "version": __version__,
            "recipe": _comparable(self.recipe),
            "subjects": self.subjects,
            "compute": self.compute.facts(),
            "clips_seen": self.state.progress.step * self.recipe.optimise.batch,
            "finished": self._finished,
            "score": None if self.score is None else vars(self.score),
        }
        if name == "last":
            self.state.save(self.out / "last.safetensors", self.spec, provenance)
        else:
            provenance["step"] = self.state.progress.step
            save_checkpoint(
                self.out / "best.safetensors",
                self.spec,
                self.state.validated.state_dict(),
                provenance=provenance,
            )

    def _bad_batch(self, batch: Batch, loss: float, norm: float) -> InputError:
        """Save the batch for inspection; the last checkpoint is not overwritten."""
        step = self.state.progress.step
        with atomic_path(self.out / "bad-batch.npz") as temporary, open(temporary, "wb") as file:
            np.savez(file, pixels=batch.pixels.cpu().numpy(), wave=batch.wave.cpu().numpy(), step=step)
        return InputError(
            f"step {step + 1}: the loss is {loss}, its gradient norm {norm}; the batch is in "
            f"{self.out / 'bad-batch.npz'}; resume from last.safetensors with a lower lr or a clip_norm"
        )

    def _agreed(self, asked: bool) -> bool:
        """Whether any process was asked to stop."""
        return self._broadcast(float(asked), largest=True) > 0

    def _broadcast(self, value: float, *, largest: bool = False) -> float:
        """Return the value of process 0, or the largest of all processes, in every process."""
        if self.world == 1:
            return value
        box = torch.tensor([value], dtype=torch.float64, device=self.device)
        if largest:
            dist.all_reduce(box, dist.ReduceOp.MAX)
        else:
            dist.broadcast(box, 0)
        return float(box)

    def _objective(self, network: nn.Module) -> Objective:
        with torch.no_grad():
            frames = torch.zeros(1, self.recipe.data.frames, self.size, self.size, 3)
            example = network.eval()(frames)
        return Objective(self.recipe.loss, self.fps, delay_frames=self.recipe.delay_frames, example=example)


def _open(recipe: Recipe, cache: Path, rank: int, world: int, on_clips: OnClips | None) -> Sources:
    """Open the sources of a recipe; process 0 generates the clips, the others wait."""
    with first_process_first(rank, world):
        return open_sources(recipe.data, cache, on_clips)


@contextmanager
def first_process_first(rank: int, world: int) -> Iterator[None]:
    """Let process 0 do the work of a block before the others, which then find its files."""
    if world > 1 and rank:
        dist.barrier()
    yield
    if world > 1 and not rank:
        dist.barrier()


def _check_folder(out: Path, *, resume: bool) -> None:
    """Refuse a folder with a run that would be overwritten."""
    if not resume and (out / "last.safetensors").exists():
        raise OutputError(
            out, "it contains a run already; add --resume to continue it, or choose another folder"
        )


def _finished(recipe: Recipe, path: Path) -> bool:
    """Whether a checkpoint is the end of this recipe; then its clips are not needed."""
    if not path.exists():
        return False
    saved = load_checkpoint(path)
    return bool(_same_recipe(saved, recipe) and saved.provenance.get("finished"))


def _same_recipe(saved: Checkpoint, recipe: Recipe) -> bool:
    made_by = from_dict(saved.provenance.get("recipe", {}), str(saved.path))
    return _comparable(made_by) == _comparable(recipe)


def _ignore(event: Event) -> None:
    del event


def join_processes(compute: Compute) -> tuple[int, int]:
    """Return (rank, world size); under torchrun this joins the process group.

    Processes wait for the first one while it generates clips or prepares data, which may take hours.
    """
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        if compute.backend == "nccl":
            torch.cuda.set_device(compute.resolve())
        dist.init_process_group(compute.backend, timeout=LONGEST_WAIT)
    return (dist.get_rank(), world) if world > 1 else (0, 1)


def _comparable(recipe: Recipe) -> dict[str, Any]:
    """Return the recipe as it is after a round trip through JSON."""
    import json

    plain: dict[str, Any] = json.loads(json.dumps(recipe.to_dict()))
    return plain
