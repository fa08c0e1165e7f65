"""Many samples on several processes, in order, in bounded memory."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from ..errors import PhaseError

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")
# Small matrix products gain nothing from threads that wait for each other; several processes do.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def in_order(run: Callable[[_Job], _Result], jobs: Iterable[_Job], workers: int) -> Iterator[_Result]:
    """Yield run(job) for every job, in the order of the jobs, computed by `workers` processes.

    With 0 workers the work is done here: for a few small jobs that is sooner ready.
    """
    if workers < 1:
        yield from map(run, jobs)
        return
    context = multiprocessing.get_context("spawn")
    with _environment(_ONE_THREAD), ProcessPoolExecutor(workers, context, _stay_with, (os.getpid(),)) as pool:
        waiting: deque[Future[_Result]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(run, job))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise PhaseError(
                "a worker process died (out of memory?); run the same command again with fewer --workers, "
                "what is finished is kept"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _stay_with(parent: int) -> None:
    """A worker leaves Ctrl-C to its parent, and does not outlive it when it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Environment variables that child processes shall see."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
