"""Run the jobs of a command: in this process, in a pool of processes, or on a Ray cluster.

All commands with `--workers` use `run_jobs` with the same job type: batch, prepare, audit, evaluate, synth.
The guarantees of the local pool are in `pool.py`, those of Ray in `ray_engine.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from ..errors import ArgumentError, UnknownNameError, UsageError, require
from .jobs import Job, Outcome, WorkerDied, attempt

__all__ = ["ENGINES", "LOCAL", "Engine", "Job", "Outcome", "WorkerDied", "map_in_order", "run_jobs"]

ENGINES = ("local", "ray")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Engine:
    """Where jobs run: "local", the processes of this machine, or "ray", a cluster.

    `address` is that of a running cluster. Without it, Ray starts one on this machine.
    """

    name: str = "local"
    address: str | None = None

    def __post_init__(self) -> None:
        if self.name not in ENGINES:
            raise UnknownNameError("engine", self.name, ENGINES)
        if self.name == "local" and self.address is not None:
            raise UsageError("--address needs a cluster: --engine ray")
        if self.name == "ray":
            require("ray")


LOCAL = Engine()


def run_jobs(
    work: Callable[..., Any],
    jobs: Iterable[Job],
    workers: int | None,
    *,
    ordered: bool = False,
    engine: Engine = LOCAL,
) -> Generator[Outcome, None, None]:
    """Run `work(*job.arguments)` for each job and yield the outcomes as they finish.

    Close the generator when you leave it early: that ends the workers.

    Parameters
    ----------
    work
        A function that can be pickled: it is defined at the top level of a module.
    jobs
        The jobs. They are read as workers become free.
    workers
        The number of processes. With 0, the jobs run one after the other in this process. None uses all
        CPUs of a cluster; the local pool needs a number.
    ordered
        Yield the outcomes in the order of the jobs. At most `2 * workers` jobs are started or kept.
    engine
        Where the jobs run.
    """
    if workers is None and engine.name == "local":
        raise ArgumentError("workers", workers, "a number of processes")
    if workers is not None and workers < 0:
        raise ArgumentError("workers", workers, "0 (in this process) or more")
    if workers == 0:
        for job in jobs:
            yield attempt(work, job)
        return
    waiting = iter(enumerate(jobs))
    finished: dict[int, Outcome] = {}
    next_position = 0
    with _open_pool(work, workers, engine) as pool:
        # After a worker died, all started jobs are repeated, so few are started. Ordered results need more.
        limit = 2 * pool.workers if ordered else pool.started
        while True:
            for position, job in islice(waiting, limit - len(pool.running) - len(finished)):
                pool.submit(position, job)
            if not pool.running:
                return
            for position, outcome in pool.next_outcomes():
                if not ordered:
                    yield outcome
                    continue
                finished[position] = outcome
                while next_position in finished:
                    yield finished.pop(next_position)
                    next_position += 1


def _open_pool(work: Callable[..., Any], workers: int | None, engine: Engine) -> Any:
    """Return the pool of an engine: `submit`, `next_outcomes`, and the numbers `workers` and `started`."""
    if engine.name == "local":
        assert workers is not None
        from .pool import RestartingPool  # not above: multiprocessing is slow to import

        return RestartingPool(work, workers)
    from .ray_engine import RayPool

    return RayPool(work, workers, engine.address)


def map_in_order(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    workers: int | None,
    *,
    name: Callable[[_Item], str] = str,
    engine: Engine = LOCAL,
) -> Generator[_Result, None, None]:
    """Yield `function(item)` for each item, in the order of the items; raise the error of the first failure.

    `name` gives the name of an item for messages. With 0 workers, the function runs in this process.
    """
    if workers == 0:
        yield from map(function, items)
        return
    jobs = (Job(name(item), (item,)) for item in items)
    with contextlib.closing(run_jobs(function, jobs, workers, ordered=True, engine=engine)) as running:
        for outcome in running:
            if outcome.error is not None:
                raise outcome.error
            yield outcome.result
