"""The cost of a table before it is run: clips, memory of a batch and hours on a GPU.

    hours = 2 · MACs of a clip · (3 · clips of the training + clips of the test) / rate of the device

A backward pass counts as two forward passes. The rate is an assumption that `--tflops` replaces. Without
data, the data sets have the sizes of their descriptions.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..datasets import base
from ..evaluate.conventions import OURS
from .cells import CellJob
from .domains import DatasetSearch, Domain, Item, clips_in
from .plan import DATASETS, Plan, make_plan, names, with_training
from .training_settings import Budget, get_budget

if TYPE_CHECKING:
    from ..train.recipe import Recipe

TFLOPS = 5.0  # sustained in training: a quarter of the float32 peak of an A100 (19.5)
_PASSES = 3  # forward, and a backward pass of twice its cost
_MIB = 2**20
SHARED = "all, shared"


@dataclass(frozen=True)
class NominalSize:
    """The size of a data set by its description."""

    subjects: int
    per_subject: int  # recordings
    frames: int  # of a recording


NOMINAL = {
    "ubfc_rppg": NominalSize(42, 1, 1950),
    "pure": NominalSize(10, 6, 2000),
    "buaa_mihr": NominalSize(15, 11, 1800),
    "mmpd": NominalSize(33, 20, 1800),
}


@dataclass(frozen=True)
class TrainingCost:
    """One training and the tests of its network."""

    network: str
    key: str
    clips_per_epoch: int
    epochs: int
    batch: int
    frames: int
    size: int
    macs: int  # of one clip
    batch_mib: float  # memory of a training step
    test_clips: int

    @property
    def clips(self) -> int:
        """The clips that the training sees."""
        return self.clips_per_epoch // self.batch * self.batch * self.epochs

    @property
    def flops(self) -> float:
        return 2.0 * self.macs * (_PASSES * self.clips + self.test_clips)


@dataclass(frozen=True)
class PlanCost:
    """All trainings of a table; equal trainings count once."""

    name: str
    cells: int
    trainings: tuple[TrainingCost, ...]

    @property
    def clips(self) -> int:
        return sum(one.clips for one in self.trainings)

    @property
    def batch_mib(self) -> float:
        return max((one.batch_mib for one in self.trainings), default=0.0)

    def hours(self, tflops: float = TFLOPS) -> float:
        return sum(one.flops for one in self.trainings) / (tflops * 1e12) / 3600


def nominal_domains(search: DatasetSearch | None = None) -> dict[str, Domain]:
    """Return the data sets by the recordings that were found, the others with their nominal sizes."""
    found = {}
    for name in DATASETS:
        size = NOMINAL[name]
        root = None if search is None else search.found.get(name)
        if root is None:
            names_ = [
                (f"{s + 1}", f"{s + 1}-{r + 1}")
                for s in range(size.subjects)
                for r in range(size.per_subject)
            ]
        else:
            names_ = [(one.subject, one.name) for one in base.find(name, root)]
        items = tuple(Item(subject, title, {}, size.frames, ()) for subject, title in names_)
        found[name] = Domain(name, "by its description" if root is None else str(root), False, name, items)
    return found


def world_domains(plan: Plan, budget: Budget) -> dict[str, Domain]:
    """Return the worlds of a plan with the clips that would be generated."""
    frames = round(30 * budget.seconds)
    items = tuple(Item(f"{i}", f"{i}", {}, frames, ()) for i in range(budget.clips))
    return {name: Domain(name, "generated", True, name, items) for name in plan.domains}


def plan_cost(
    plan: Plan,
    budget: Budget,
    domains: Mapping[str, Domain],
    seeds: Sequence[int] = (0,),
    balance: str = "source",
) -> PlanCost:
    """Return the cost of all cells of a plan."""
    found: dict[str, TrainingCost] = {}
    for cell in plan.cells:
        if not cell.model.trainable or not cell.target:
            continue
        for seed in seeds:
            job = CellJob(cell, seed, budget, domains, plan.worlds, balance=balance, convention=OURS)
            cost = _training_cost(job)
            earlier = found.get(cost.key)
            found[cost.key] = cost if earlier is None else _with_tests(earlier, cost.test_clips)
    return PlanCost(plan.name, len(plan.cells), tuple(found.values()))


def _with_tests(cost: TrainingCost, clips: int) -> TrainingCost:
    return replace(cost, test_clips=cost.test_clips + clips)


def _training_cost(job: CellJob) -> TrainingCost:
    recipe = job.recipe()
    size, macs, mib = _network_cost(_frozen(recipe), recipe.data.frames, recipe.optimise.batch)
    return TrainingCost(
        job.cell.model.name,
        job.training_key(),
        recipe.data.clips_per_epoch,
        recipe.optimise.epochs,
        recipe.optimise.batch,
        recipe.data.frames,
        size,
        macs,
        mib,
        clips_in(job.test_items()),
    )


def _frozen(recipe: Recipe) -> tuple[str, tuple[tuple[str, Any], ...]]:
    name, options = recipe.network_options()
    return name, tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in sorted(options.items()))


@functools.cache
def _network_cost(
    network: tuple[str, tuple[tuple[str, Any], ...]], frames: int, batch: int
) -> tuple[int, int, float]:
    """Return image size, MACs of a clip and MiB of a training step."""
    from ..nn import build, complexity

    name, options = network
    built = build(name, **dict(options))
    size = int(built.size)  # type: ignore[arg-type]
    return (
        size,
        complexity.clip_macs(built, frames, size),
        complexity.training_bytes(built, batch, frames, size) / _MIB,
    )


@dataclass(frozen=True)
class CostSettings:
    """The settings of `phase reproduce` that change the cost of a table."""

    seeds: tuple[int, ...] = (0,)
    training: str = "equal"
    balance: str = "source"
    budget: str = "paper"


def used_domains(plan: Plan, settings: CostSettings, data: Mapping[str, Domain]) -> Mapping[str, Domain]:
    """Return the worlds of a plan, or else the data sets."""
    return world_domains(plan, get_budget(settings.budget, worlds=True)) if plan.worlds else data


def plan_costs(
    plans: Sequence[Plan], settings: CostSettings | None = None, data: Mapping[str, Domain] | None = None
) -> list[PlanCost]:
    """Return the cost of tables; of several, also that of all together. Shared trainings count once."""
    settings, data, found = settings or CostSettings(), data or nominal_domains(), []
    for plan in plans:
        budget = get_budget(settings.budget, worlds=plan.worlds)
        trained = with_training(plan, settings.training)
        domains = used_domains(plan, settings, data)
        found.append(plan_cost(trained, budget, domains, settings.seeds, settings.balance))
    every = {one.key: one for cost in found for one in cost.trainings}
    shared = [PlanCost(SHARED, sum(c.cells for c in found), tuple(every.values()))]
    return found + (shared if len(plans) > 1 else [])


def all_plans() -> list[Plan]:
    """Return the plans with trainings."""
    return [plan for plan in map(make_plan, names()) if plan.view != "count"]


def plan_table(costs: Iterable[PlanCost], tflops: float = TFLOPS) -> str:
    """Return the costs of tables as Markdown."""
    lines = [
        "| table | cells | trainings | clips | batch, MiB | GPU hours |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for cost in costs:
        numbers = f"{cost.cells} | {len(cost.trainings)} | {cost.clips:,} | {cost.batch_mib:,.0f}"
        lines.append(f"| {cost.name} | {numbers} | {cost.hours(tflops):,.1f} |")
    return "\n".join(lines)


def network_table(costs: Iterable[PlanCost], tflops: float = TFLOPS) -> str:
    """Return the cost of every network as Markdown: one clip, one batch, and hours per 1,000 clips."""
    lines = [
        "| network | clip | G MACs | batch | batch, MiB | GPU hours per 1,000 clips |",
        "|---|---|---:|---:|---:|---:|",
    ]
    seen: dict[tuple[object, ...], TrainingCost] = {}
    for cost in costs:
        for one in cost.trainings:
            seen.setdefault((one.network, one.frames, one.size, one.batch), one)
    for one in sorted(seen.values(), key=lambda c: (c.network, c.size)):
        hours = 2 * _PASSES * one.macs * 1000 / (tflops * 1e12) / 3600
        lines.append(
            f"| {one.network} | {one.frames}×{one.size}² | {one.macs / 1e9:,.1f} | {one.batch} | "
            f"{one.batch_mib:,.0f} | {hours:.3f} |"
        )
    return "\n".join(lines)


def text(costs: Sequence[PlanCost], tflops: float, domains: Mapping[str, Domain]) -> str:
    """Return the plan as Markdown: tables, networks and the assumptions."""
    used = [f"{d.name} {len(d.items)} recordings ({d.where})" for d in domains.values()]
    return "\n".join(
        [
            plan_table(costs, tflops),
            "",
            network_table([cost for cost in costs if cost.name != SHARED], tflops),
            "",
            f"- Rate of the device: {tflops:g} TFLOP/s sustained, an assumption (`--tflops`); "
            "no GPU was measured.",
            f"- Data: {'; '.join(used)}.",
            "- A backward pass counts as two forward passes; the memory is without the workspace of kernels.",
        ]
    )
