"""The process pool of every command that works on many items.

Three guarantees hold for each user of the pool:

- A worker that dies costs one job. The pool starts again, and the error names that job.
- Ctrl-C reaches the parent process only. The parent stops its workers.
- A worker ends as soon as its parent process has ended, also when the parent was killed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, TypeVar

from .errors import ArgumentError, InputError, InternalError, PhaseError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
# Small matrix products are slower on several threads. The processes already use all cores.
_ONE_BLAS_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class WorkerDied(InputError):
    """A worker process ended before its job was finished."""

    def __init__(self, job: str, problem: str) -> None:
        self.job, self.problem = job, problem
        super().__init__(f"{job}: {problem}")


@dataclass(frozen=True, slots=True)
class Job:
    """One call of the work function: a name for messages, and the arguments."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a job, or the error that ended it."""

    job: Job
    result: Any = None
    error: PhaseError | None = None


def run_jobs(
    work: Callable[..., Any], jobs: Iterable[Job], workers: int, *, ordered: bool = False
) -> Iterator[Outcome]:
    """Run `work(*job.arguments)` for each job and yield the outcomes as they finish.

    Parameters
    ----------
    work
        A function that can be pickled: it is defined at the top level of a module.
    jobs
        The jobs. They are read as workers become free.
    workers
        The number of processes. With 0, the jobs run one after the other in this process.
    ordered
        Yield the outcomes in the order of the jobs. At most `2 * workers` jobs are started or kept.
    """
    if workers < 0:
        raise ArgumentError("workers", workers, "0 (in this process) or more")
    if workers == 0:
        for job in jobs:
            yield _attempt(work, job)
        return
    # Few started jobs mean few jobs to repeat after a worker died. Ordered results need some in reserve.
    limit = 2 * workers if ordered else workers
    waiting = iter(enumerate(jobs))
    finished: dict[int, Outcome] = {}
    next_position = 0
    with _RestartingPool(work, workers) as pool:
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


def map_in_order(
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    workers: int,
    *,
    name: Callable[[_Item], str] = str,
) -> Iterator[_Result]:
    """Yield `function(item)` for each item, in the order of the items; raise the error of the first failure.

    `name` gives the name of an item for messages. With 0 workers, the function runs in this process.
    """
    if workers == 0:
        yield from map(function, items)
        return
    jobs = (Job(name(item), (item,)) for item in items)
    for outcome in run_jobs(function, jobs, workers, ordered=True):
        if outcome.error is not None:
            raise outcome.error
        yield outcome.result


class _RestartingPool:
    """A process pool that starts again after a worker died, and finds out which job was the cause."""

    def __init__(self, work: Callable[..., Any], workers: int) -> None:
        self.running: dict[Future[Outcome], tuple[int, Job]] = {}
        self._work, self._workers = work, workers
        self._pool = _Pool(workers)

    def __enter__(self) -> _RestartingPool:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close(terminate=bool(self.running))

    def submit(self, position: int, job: Job) -> None:
        try:
            future = self._pool.submit(self._work, job)
        except BrokenProcessPool as error:  # a worker died since the last result
            future = Future()
            future.set_exception(error)
        self.running[future] = position, job

    def next_outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """Wait until at least one job has finished, and yield the positions and outcomes of all that have."""
        done, _ = wait(self.running, return_when=FIRST_COMPLETED)
        broken = any(isinstance(future.exception(), BrokenProcessPool) for future in done)
        if broken:
            done, _ = wait(self.running)  # the executor ends the remaining futures as well
        suspects = []
        for future in sorted(done, key=self.running.__getitem__):
            position, job = self.running.pop(future)
            if isinstance(future.exception(), BrokenProcessPool):
                suspects.append((position, job))
            else:
                yield position, _outcome_of(future, job)
        if broken:
            self._pool.close(terminate=True)
            # The executor does not say which worker died. A job that ends its process when it runs alone
            # is the cause; the other jobs get their results.
            for position, job in suspects:
                yield position, _run_alone(self._work, job)
            self._pool = _Pool(self._workers)


def _run_alone(work: Callable[..., Any], job: Job) -> Outcome:
    pool = _Pool(1)
    future = None
    try:
        future = pool.submit(work, job)
        wait([future])
    finally:
        pool.close(terminate=future is None or not future.done())
    if isinstance(future.exception(), BrokenProcessPool):
        problem = f"the process that worked on it died ({_ending(pool.processes[0].exitcode)})"
        return Outcome(job, error=WorkerDied(job.name, problem))
    return _outcome_of(future, job)


def _outcome_of(future: Future[Outcome], job: Job) -> Outcome:
    error = future.exception()  # arguments or a result that cannot be pickled
    return future.result() if error is None else Outcome(job, error=_internal_error(job, error))


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in signal.Signals._value2member_map_ else f"signal {-code}"
        return f"{name}, often a lack of memory" if name == "SIGKILL" else name
    return f"exit code {code}"


def _attempt(work: Callable[..., Any], job: Job) -> Outcome:
    try:
        return Outcome(job, work(*job.arguments))
    except PhaseError as error:
        return Outcome(job, error=error)
    except Exception as error:
        # Not every exception can be pickled, and one that cannot be unpickled would break the pool.
        return Outcome(job, error=_internal_error(job, error))


def _internal_error(job: Job, error: BaseException) -> InternalError:
    details = "".join(traceback.format_exception(error))
    return InternalError(f"working on {job.name}", f"{type(error).__name__}: {error}", details)


class _Pool:
    """A ProcessPoolExecutor that keeps its processes, to end them and to read their exit codes."""

    def __init__(self, workers: int) -> None:
        context = _RecordingContext()
        self.processes = context.processes
        self._executor = ProcessPoolExecutor(workers, context, _initialize_worker)

    def submit(self, work: Callable[..., Any], job: Job) -> Future[Outcome]:
        # The executor starts its processes inside `submit`; they inherit the environment and blocked signals.
        with _environment(_ONE_BLAS_THREAD), _interrupts_deferred():
            return self._executor.submit(_attempt, work, job)

    def close(self, *, terminate: bool) -> None:
        """End the processes: at once with `terminate`, otherwise after their jobs."""
        if terminate:
            for process in self.processes:
                process.terminate()
        self._executor.shutdown(wait=True, cancel_futures=True)
        for process in self.processes:
            process.join()


class _RecordingContext(SpawnContext):
    """The spawn context, with a list of the processes that were started."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[SpawnProcess] = []

    def Process(self, *args: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]
        process = SpawnProcess(*args, **options)
        self.processes.append(process)
        return process


def _initialize_worker() -> None:
    """Leave Ctrl-C to the parent process, and end when the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def exit_with_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=exit_with_parent, daemon=True).start()


@contextlib.contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Block SIGINT for processes that are started in this block, and deliver it here after the block.

    A new process inherits the blocked signal, so that Ctrl-C cannot end it while it still imports modules.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield  # Windows has no signal masks; other threads do not receive signals in Python
        return
    resource_tracker.ensure_running()  # its start would unblock the signal
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
        if received:
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set environment variables for the processes that are started in this block."""
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
