"""The job type that all engines share: a call with a name, and its outcome."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import (
    InputError,
    InternalError,
    MissingPackageError,
    OutputError,
    PhaseError,
    caused_by_interrupt,
)
from ..text import printable


class WorkerDied(InputError):
    """A worker process ended before its job was finished."""

    def __init__(self, job: str, problem: str) -> None:
        self.job, self.problem = job, problem
        super().__init__(f"{printable(job)}: {problem}")


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


def attempt(work: Callable[..., Any], job: Job) -> Outcome:
    """Call `work` and return its result, or its error as one that can be pickled."""
    try:
        return Outcome(job, work(*job.arguments))
    except PhaseError as error:
        return Outcome(job, error=error)
    except OSError as error:
        return Outcome(job, error=OutputError.from_os_error(error) or internal_error(job, error))
    except ModuleNotFoundError as error:
        return Outcome(job, error=MissingPackageError.from_import(error) or internal_error(job, error))
    except Exception as error:
        if caused_by_interrupt(error):
            raise KeyboardInterrupt from error
        # Not every exception can be pickled, and one that cannot be unpickled would break the pool.
        return Outcome(job, error=internal_error(job, error))


def internal_error(job: Job, error: BaseException) -> InternalError:
    """Return an exception that only a bug can cause as an InternalError with its traceback."""
    details = "".join(traceback.format_exception(error))
    return InternalError(f"working on {job.name}", f"{type(error).__name__}: {error}", details)
