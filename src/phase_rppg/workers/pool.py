"""The process pool of this machine.

Three guarantees hold for each user of the pool:

- If a worker dies, one job fails. The pool starts again, and the error names that job.
- Ctrl-C reaches the parent process only. The parent stops its workers.
- A worker ends when its parent process ends, even if the parent was killed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

from .jobs import Job, Outcome, WorkerDied, attempt, internal_error

_CHECK_S = 1.0  # interval of checks for workers that died, and time to end a process
# Small matrix products are slower on several threads. The processes already use all cores.
_ONE_BLAS_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_DECODER_THREADS = "PHASE_DECODER_THREADS"  # read by `video/decoder_process.py`


def thread_limits(workers: int) -> dict[str, str]:
    """Return the environment of a worker: one BLAS thread, and its share of the cores for decoding."""
    cores = os.cpu_count() or 1
    return {**_ONE_BLAS_THREAD, _DECODER_THREADS: str(max(1, cores // workers))}


class RestartingPool:
    """A process pool that starts again after a worker died, and identifies the job that caused it."""

    def __init__(self, work: Callable[..., Any], workers: int) -> None:
        self.running: dict[Future[Outcome], tuple[int, Job]] = {}
        self.workers = self.started = workers  # the number of processes, and of jobs that are started at once
        self._work = work
        self._pool = _Pool(workers)

    def __enter__(self) -> RestartingPool:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close(terminate=bool(self.running))

    def submit(self, position: int, job: Job) -> None:
        self.running[self._pool.submit(self._work, job)] = position, job

    def next_outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """Wait until at least one job has finished, and yield the positions and outcomes of all that have."""
        done = self._pool.wait(self.running)
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
            self._pool = _Pool(self.workers)


def _run_alone(work: Callable[..., Any], job: Job) -> Outcome:
    pool = _Pool(1)
    future = None
    try:
        future = pool.submit(work, job)
        pool.wait([future])
    finally:
        pool.close(terminate=future is None or not future.done())
    if isinstance(future.exception(), BrokenProcessPool):
        problem = f"the worker process died ({_exit_reason(pool.processes[0].exitcode)})"
        return Outcome(job, error=WorkerDied(job.name, problem))
    return _outcome_of(future, job)


def _outcome_of(future: Future[Outcome], job: Job) -> Outcome:
    error = future.exception()  # arguments or a result that cannot be pickled
    return future.result() if error is None else Outcome(job, error=internal_error(job, error))


def _exit_reason(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in signal.Signals._value2member_map_ else f"signal {-code}"
        return f"{name}, often a lack of memory" if name == "SIGKILL" else name
    return f"exit code {code}"


class _Pool:
    """A ProcessPoolExecutor that keeps its processes, to terminate them and to read their exit codes."""

    def __init__(self, workers: int) -> None:
        context = _RecordingContext()
        self.processes = context.processes
        self._limits = thread_limits(workers)
        self._executor = ProcessPoolExecutor(workers, context, initialize_worker)

    def submit(self, work: Callable[..., Any], job: Job) -> Future[Outcome]:
        """Start a job. If a worker has died, return a future with a BrokenProcessPool exception."""
        # The executor starts its processes inside `submit`; they inherit the environment and blocked signals.
        try:
            with _environment(self._limits), _interrupts_deferred():
                return self._executor.submit(attempt, work, job)
        except (BrokenProcessPool, OSError) as error:
            # If a worker dies while the next one starts, the executor has closed the pipes that it passes on.
            if not self._worker_died():
                raise
            future: Future[Outcome] = Future()
            future.set_exception(BrokenProcessPool(str(error)))
            return future

    def wait(self, futures: Iterable[Future[Outcome]]) -> set[Future[Outcome]]:
        """Wait until at least one future is done, and return all that are; a dead worker ends the wait."""
        futures, died = list(futures), False
        while not (done := wait(futures, _CHECK_S, FIRST_COMPLETED).done):
            if died:  # the executor did not notice it, because it waits for the rest of a result
                self._terminate()
            died = self._worker_died()
        return done

    def _worker_died(self) -> bool:
        return any(process.exitcode is not None for process in self.processes)

    def _terminate(self) -> None:
        """End the processes, and the wait of the executor for a result that will never be complete.

        A worker can die while it writes a result. The executor reads the rest of it until the pipe has no
        writer, but it keeps a writer itself, for the processes that it starts.
        """
        for process in self._started_processes():
            process.terminate()
        for process in self._started_processes():
            process.join(_CHECK_S)
            if process.exitcode is None:
                process.kill()
                process.join()
        results = getattr(self._executor, "_result_queue", None)
        writer = getattr(results, "_writer", None)
        if writer is not None and not writer.closed:
            writer.close()

    def close(self, *, terminate: bool) -> None:
        """End the processes: immediately with `terminate`, otherwise after their jobs."""
        if terminate:
            self._terminate()
        self._executor.shutdown(wait=True, cancel_futures=True)
        for process in self._started_processes():
            process.join()

    def _started_processes(self) -> list[SpawnProcess]:
        return [process for process in self.processes if process.pid is not None]


class _RecordingContext(SpawnContext):
    """The spawn context, with a list of the processes that were started."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[SpawnProcess] = []

    def Process(self, *args: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]
        process = SpawnProcess(*args, **options)
        self.processes.append(process)
        return process


def initialize_worker() -> None:
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
    resource_tracker.ensure_running()  # starting it later would unblock the signal
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
