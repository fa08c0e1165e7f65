"""Work on many recordings at once, each in a process of its own: a crash costs one recording and is named."""

from __future__ import annotations

import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from ..errors import PhaseError, RecordingError


class WorkerDied(RecordingError):
    """The process that worked on a recording ended without an answer."""


@dataclass(frozen=True, slots=True)
class Job:
    """A recording's name and what the worker function gets."""

    name: str
    arguments: tuple[Any, ...]


def run(
    work: Callable[..., Any], jobs: Sequence[Job], workers: int
) -> Iterator[tuple[Job, Any | RecordingError]]:
    """Yield each job with its result or its problem, as they finish. `work` is a function of a module.

    `workers` 0 works in this process, one after the other.
    """
    if workers == 0:
        for job in jobs:
            done, result = _attempt(work, job)
            yield job, result if done else RecordingError(job.name, result)
        return
    context = multiprocessing.get_context("spawn")
    waiting = list(reversed(jobs))
    running: dict[Connection, tuple[Job, BaseProcess]] = {}
    process: BaseProcess
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop()
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_serve, args=(theirs, work, job), name=f"phase {job.name}")
                process.start()
                theirs.close()
                running[ours] = job, process
            for ready in wait(list(running)):
                assert isinstance(ready, Connection)
                job, process = running.pop(ready)
                yield job, _answer(ready, job, process)
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def _answer(pipe: Connection, job: Job, process: BaseProcess) -> Any | RecordingError:
    with pipe:
        try:
            done, result = pipe.recv()
        except (EOFError, OSError):
            process.join()
            return WorkerDied(job.name, f"the process that worked on it died ({_ending(process.exitcode)})")
    process.join()
    return result if done else RecordingError(job.name, result)


def _ending(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in signal.Signals._value2member_map_ else f"signal {-code}"
        return f"{name}, often a lack of memory" if name == "SIGKILL" else name
    return f"exit code {code}"


def _serve(pipe: Connection, work: Callable[..., Any], job: Job) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interruption means
    result = _attempt(work, job)
    with pipe, contextlib.suppress(BrokenPipeError):  # nobody waits for it any more
        pipe.send(result)


def _attempt(work: Callable[..., Any], job: Job) -> tuple[bool, Any]:
    """(True, result) or (False, what went wrong)."""
    try:
        return True, work(*job.arguments)
    except RecordingError as error:
        return False, error.problem
    except PhaseError as error:
        return False, str(error)
    except Exception as error:  # one odd recording must not take the others with it
        return False, f"could not be worked on ({type(error).__name__}: {error})"
