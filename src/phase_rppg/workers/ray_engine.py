"""The workers of a Ray cluster, with the interface of the local pool.

- A job whose worker or node died is repeated on another one, at most `MAX_RETRIES` times. Then that job
  fails, and the error names it. The result of a job arrives once, however often it was started.
- If this process ends, the cluster ends its jobs. A repeated command continues from what it had stored.
- Ray sends no usage data, and a cluster that is started here listens on the loopback interface only.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import InputError
from .jobs import Job, Outcome, WorkerDied, attempt, internal_error
from .pool import thread_limits

MAX_RETRIES = 3  # of a job whose worker died
_SPARE = 2  # jobs per CPU that are started, so that a CPU never waits for this process
_OBJECT_STORE_BYTES = 256 << 20  # of a local cluster: results are small


class RayPool:
    """Jobs on a Ray cluster; without an address, a cluster is started on this machine."""

    def __init__(self, work: Callable[..., Any], workers: int | None, address: str | None) -> None:
        ray = _import_ray()
        self._ray, self._owner = ray, not ray.is_initialized()
        if self._owner:
            _connect(ray, workers, address)
        cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self.workers = cpus if workers is None else min(workers, cpus)
        self.started = _SPARE * self.workers if workers is None or workers >= cpus else workers
        self.running: dict[Any, tuple[int, Job]] = {}
        self._work = ray.put(work)
        self._attempt = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(_run)

    def __enter__(self) -> RayPool:
        return self

    def __exit__(self, *_: object) -> None:
        for reference in self.running:
            with contextlib.suppress(Exception):  # it may have ended in the meantime
                self._ray.cancel(reference, force=True)
        if self._owner:
            self._ray.shutdown()

    def submit(self, position: int, job: Job) -> None:
        """Start a job."""
        self.running[self._attempt.remote(self._work, job)] = position, job

    def next_outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """Wait until at least one job has finished, and yield the positions and outcomes of all that have."""
        first, _ = self._ray.wait(list(self.running), num_returns=1)
        done, _ = self._ray.wait(list(self.running), num_returns=len(self.running), timeout=0)
        for reference in {*first, *done}:
            position, job = self.running.pop(reference)
            yield position, self._outcome(reference, job)

    def _outcome(self, reference: Any, job: Job) -> Outcome:
        errors = self._ray.exceptions
        died = (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.OutOfMemoryError,
            errors.ObjectLostError,
        )
        try:
            outcome: Outcome = self._ray.get(reference)
            return outcome
        except died as error:
            problem = f"its worker died {MAX_RETRIES + 1} times ({type(error).__name__})"
            return Outcome(job, error=WorkerDied(job.name, problem))
        except errors.RayError as error:  # for example, a node on which phase-rppg is not installed
            return Outcome(job, error=internal_error(job, error))


def _run(work: Callable[..., Any], job: Job) -> Outcome:
    os.environ.update(thread_limits(os.cpu_count() or 1))  # one core per job
    return attempt(work, job)


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read at import
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # silences a warning about GPUs
    import ray
    import ray.exceptions

    return ray


def _connect(ray: Any, workers: int | None, address: str | None) -> None:
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        settings |= {
            "address": "local", "num_cpus": workers or os.cpu_count() or 1, "include_dashboard": False,
            "object_store_memory": _OBJECT_STORE_BYTES, "_node_ip_address": "127.0.0.1",
        }  # fmt: skip
    else:
        settings["address"] = address
    try:
        ray.init(**settings)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        where = "on this machine" if address is None else f"at {address}"
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(f"no Ray cluster {where}: {first}; check `ray status`") from None
