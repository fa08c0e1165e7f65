"""Run all cells of a plan; a failed cell is reported and does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import Interrupted, PhaseError
from ..evaluate import conventions
from ..evaluate.conventions import Convention
from ..evaluate.synthetic_stamp import stamp_text
from .cells import CellJob, count_network, run_cell
from .domains import Domain
from .plan import Cell, Plan
from .store import Store
from .training_settings import CPU, Budget, Machine

COUNT_FRAMES, COUNT_SIZE = 128, 128  # input of the networks in the paper's efficiency table


@dataclass(frozen=True)
class Outcome:
    """The results of a plan by cell and seed, and the cells without a result."""

    plan: Plan
    budget: Budget
    seeds: tuple[int, ...]
    results: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[str, tuple[float, float]] = field(default_factory=dict)  # row → M parameters, G MACs
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    missing: dict[tuple[str, str], str] = field(default_factory=dict)  # cell → why it has no result
    locations: dict[str, str] = field(default_factory=dict)  # domain → its folder
    synthetic: dict[str, bool] = field(default_factory=dict)
    balance: str = "source"  # of several training sources
    convention: Convention = conventions.OURS
    splits: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # protocol → use → subjects
    fingerprints: dict[str, str] = field(default_factory=dict)  # domain → hash of recordings and preparation
    recordings: dict[str, str] = field(default_factory=dict)  # recording → key of its prepared clip

    def add(self, place: tuple[str, str], result: dict[str, Any]) -> None:
        """Add the result of a cell; one of another convention is refused."""
        name = f"{place[0]} → {place[1]}"
        conventions.single_convention([("this table", self.convention.name), (name, result["convention"])])
        self.results.setdefault(place, []).append(result)

    @property
    def stamp(self) -> str:
        """The origin of the data, which every table and plot shows."""
        return stamp([self.synthetic[d] for d in self.plan.domains if d in self.synthetic], self.budget.name)


def stamp(synthetic: Sequence[bool], budget: str) -> str:
    """Return the origin of the data, with a warning if the training was too short to learn anything."""
    if not synthetic:
        return "NO DATA: counted from the networks"
    return stamp_text(synthetic) + ("; SMOKE BUDGET: nothing was learnt" if budget == "smoke" else "")


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    done: float  # finished cells, including the finished share of the current cell
    cells: int
    label: str


def jobs(plan: Plan, seeds: Sequence[int]) -> list[tuple[Cell, int]]:
    """Return every cell with every seed, ordered by seed; a classical method gets one seed only."""
    return [(cell, seed) for seed in seeds for cell in plan.cells if cell.model.trainable or seed == seeds[0]]


def run(
    plan: Plan,
    budget: Budget,
    domains: Mapping[str, Domain],
    store: Store,
    seeds: Sequence[int],
    *,
    on_progress: Callable[[Progress], None] | None = None,
    log: Callable[[str], None] | None = None,
    only_stored: bool = False,
    machine: Machine = CPU,
    balance: str = "source",
    convention: Convention = conventions.OURS,
) -> Outcome:
    """Compute every cell, or read it from the store; continue after a failure.

    With `only_stored` nothing is computed. A cell is missing if the store has it for no seed.
    """
    outcome = _empty_outcome(plan, budget, domains, seeds, balance, convention)
    all_jobs = jobs(plan, seeds)
    for number, (cell, seed) in enumerate(all_jobs):
        place, label = (cell.row, cell.column), f"{cell.row} → {cell.column}, seed {seed}"

        def update(share: float, number: int = number, label: str = label) -> None:
            if on_progress is not None:
                on_progress(Progress(number + share, len(all_jobs), label))

        update(0.0)
        if absent := [name for name in cell.domains if name not in domains]:
            outcome.missing[place] = ", ".join(absent)
            continue
        try:
            if plan.view == "count":
                outcome.counts[cell.row] = count_network(cell.model.name, COUNT_FRAMES, COUNT_SIZE)
                continue
            job = CellJob(cell, seed, budget, domains, plan.worlds, machine, balance, convention)
            if only_stored and store.get(job.key()) is None:
                if place not in outcome.results:
                    outcome.missing[place] = "not computed yet"
                continue
            result = run_cell(job, store, update)
            outcome.add(place, result)
            outcome.splits.update(job.split())
            outcome.missing.pop(place, None)  # set by an earlier seed
        except Interrupted:
            raise
        except Exception as error:  # the other cells do not depend on this one
            outcome.failed[place] = _problem(error)
            if log is not None:
                log(f"failed: {label}: {outcome.failed[place]}")
        update(1.0)
    return outcome


def _empty_outcome(
    plan: Plan,
    budget: Budget,
    domains: Mapping[str, Domain],
    seeds: Sequence[int],
    balance: str,
    convention: Convention,
) -> Outcome:
    """Return the outcome of a plan before its first cell, with the origin of the data."""
    return Outcome(
        plan,
        budget,
        tuple(seeds),
        locations={name: domain.where for name, domain in domains.items()},
        synthetic={name: domain.synthetic for name, domain in domains.items()},
        balance=balance,
        convention=convention,
        fingerprints={name: domain.fingerprint for name, domain in domains.items()},
        recordings={
            f"{name}/{item.name}": item.key for name, domain in domains.items() for item in domain.items
        },
    )


def _problem(error: Exception) -> str:
    """Return the text of an error in one line; an error of ours has a readable message."""
    text = str(error) if isinstance(error, PhaseError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())
