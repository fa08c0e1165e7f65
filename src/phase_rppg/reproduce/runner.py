"""All cells of a plan, one after the other: what fails is named, the rest is finished."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import Interrupted, PhaseError
from ..evaluate.data_stamp import words
from .budget import Budget
from .cells import Work, count, perform
from .domains import Domain
from .plan import Cell, Plan
from .store import Store

COUNT_FRAMES, COUNT_SIZE = 128, 128  # the clip of the paper's efficiency table


@dataclass(frozen=True)
class Outcome:
    """What became of a plan: results by cell and seed, and what is missing, and why."""

    plan: Plan
    budget: Budget
    seeds: tuple[int, ...]
    results: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[str, tuple[float, float]] = field(default_factory=dict)  # of the plan that counts
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)  # cell → data sets that are not there
    places: dict[str, str] = field(default_factory=dict)  # domain → where it lies
    synthetic: dict[str, bool] = field(default_factory=dict)

    @property
    def stamp(self) -> str:
        """Which data the numbers come from; on every table and every plot."""
        return stamp([self.synthetic[d] for d in self.plan.domains if d in self.synthetic], self.budget.name)


def stamp(synthetic: Sequence[bool], budget: str) -> str:
    """Which data, and whether anything was learnt from it."""
    if not synthetic:
        return "NO DATA: counted from the networks"
    return words(synthetic) + ("; SMOKE BUDGET: nothing was learnt" if budget == "smoke" else "")


@dataclass(frozen=True)
class Progress:
    """What the run tells whoever watches."""

    done: float  # cells, with the share of the one under way
    cells: int
    label: str


def jobs(plan: Plan, seeds: Sequence[int]) -> list[tuple[Cell, int]]:
    """Every cell with every seed, seed by seed; a method that does not learn needs one only."""
    return [(cell, seed) for seed in seeds for cell in plan.cells if cell.model.learns or seed == seeds[0]]


def run(
    plan: Plan,
    budget: Budget,
    domains: Mapping[str, Domain],
    store: Store,
    seeds: Sequence[int],
    *,
    watch: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] | None = None,
    only_kept: bool = False,
) -> Outcome:
    """Work every cell out, or take it from the store; go on after a failure, stop when asked to.

    `only_kept` works nothing out: a cell is missing unless the store has it for at least one seed.
    """
    outcome = Outcome(
        plan,
        budget,
        tuple(seeds),
        places={name: domain.where for name, domain in domains.items()},
        synthetic={name: domain.synthetic for name, domain in domains.items()},
    )
    every = jobs(plan, seeds)
    for number, (cell, seed) in enumerate(every):
        place, label = (cell.row, cell.column), f"{cell.row} → {cell.column}, seed {seed}"

        def tell(share: float, number: int = number, label: str = label) -> None:
            if watch is not None:
                watch(Progress(number + share, len(every), label))

        tell(0.0)
        if absent := [name for name in cell.domains if name not in domains]:
            outcome.missing[place] = ", ".join(absent)
            continue
        try:
            if plan.view == "count":
                outcome.counts[cell.row] = count(cell.model.name, COUNT_FRAMES, COUNT_SIZE)
                continue
            work = Work(cell, seed, budget, domains, plan.worlds)
            if only_kept and store.get(work.key()) is None:
                if place not in outcome.results:
                    outcome.missing[place] = "not worked out yet"
                continue
            result = perform(work, store, tell)
            outcome.results.setdefault(place, []).append(result)
            outcome.missing.pop(place, None)  # of an earlier seed
        except Interrupted:
            raise
        except Exception as error:  # whatever it is, the other cells do not depend on it
            problem = str(error) if isinstance(error, PhaseError) else f"{type(error).__name__}: {error}"
            outcome.failed[place] = " ".join(problem.split())
            if say is not None:
                say(f"failed: {label}: {outcome.failed[place]}")
        tell(1.0)
    return outcome
