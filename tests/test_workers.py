"""Tests of the process pool: dying workers, Ctrl-C, order, and the end of the parent process."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from phase_rppg.errors import ArgumentError, InternalError, RecordingError
from phase_rppg.video import decoder_process
from phase_rppg.workers import Job, WorkerDied, map_in_order, run_jobs
from phase_rppg.workers import pool as local_pool

FULL_HD = 1920 * 1080

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def slow_first(number: int) -> int:
    time.sleep(0.5 if number == 0 else 0.0)
    return number


def die_at(number: int, deadly: int) -> int:
    if number == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def half_a_result(number: int, then: str) -> bytes:
    """Return a large result, of which the process writes one half before it dies or sleeps."""
    from multiprocessing import connection

    if number == 0:
        return b"whole"

    def send(self: connection.Connection, data: bytes) -> None:
        os.write(self.fileno(), struct.pack("!i", len(data)) + bytes(data[: len(data) // 2]))
        if then == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)

    time.sleep(0.5)
    connection.Connection._send_bytes = send  # type: ignore[attr-defined]
    return bytes(20_000)


def refuse(name: str) -> None:
    raise RecordingError(name, "the clock runs backwards")


class UnpicklableError(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def raise_unpicklable(name: str) -> None:
    raise UnpicklableError(1, 2)


def blas_threads(_: int) -> str:
    return os.environ["OMP_NUM_THREADS"]


def numbered(count: int) -> list[Job]:
    return [Job(str(number), (number,)) for number in range(count)]


@pytest.mark.parametrize("count", [0, 2])
def test_ordered_results_have_the_order_of_the_jobs(count: int) -> None:
    assert list(map_in_order(slow_first, range(7), count)) == list(range(7))
    outcomes = run_jobs(slow_first, numbered(7), count, ordered=True)
    assert [outcome.result for outcome in outcomes] == list(range(7))


def test_unordered_results_come_as_they_finish() -> None:
    results = [outcome.result for outcome in run_jobs(slow_first, numbered(12), 2)]
    assert sorted(results) == list(range(12))
    assert results != list(range(12))


def test_ordered_jobs_are_read_only_as_far_as_needed() -> None:
    read: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            read.append(number)
            yield number

    results = map_in_order(abs, items(), 1)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]
    assert len(read) <= 3


@posix
def test_a_dead_worker_is_named_and_the_others_finish(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import os, signal\n"
        "from phase_rppg.workers import Job, run_jobs\n"
        "def work(name):\n"
        "    if name == 'bert': os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return name.upper()\n"
        "if __name__ == '__main__':\n"
        "    jobs = [Job(n, (n,)) for n in ('anna', 'bert', 'carl')]\n"
        "    for done in run_jobs(work, jobs, 2):\n"
        "        print(done.job.name, type(done.error).__name__, done.error or done.result)\n"
    )
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=True
    )
    lines = sorted(done.stdout.splitlines())
    assert lines[0] == "anna NoneType ANNA"
    assert "bert WorkerDied bert: the worker process died (SIGKILL" in lines[1]
    assert lines[2] == "carl NoneType CARL"


@posix
def test_a_dead_worker_keeps_the_order_and_costs_one_job() -> None:
    jobs = [Job(str(number), (number, 3)) for number in range(8)]
    outcomes = list(run_jobs(die_at, jobs, 2, ordered=True))
    assert [outcome.job.name for outcome in outcomes] == [job.name for job in jobs]
    assert [outcome.result for outcome in outcomes] == [0, 1, 4, None, 16, 25, 36, 49]
    assert isinstance(outcomes[3].error, WorkerDied)
    assert not multiprocessing.active_children()


@posix
def test_a_worker_may_die_while_the_next_one_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[multiprocessing.context.SpawnProcess] = []
    start = multiprocessing.context.SpawnProcess.start

    def start_late(process: multiprocessing.context.SpawnProcess) -> None:
        if len(started) == 1:  # the first worker dies, and the executor closes its pipes
            started[0].join()
            time.sleep(0.5)
        started.append(process)
        start(process)

    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", start_late)
    jobs = [Job(str(number), (number, 0)) for number in range(3)]
    outcomes = {each.job.name: each for each in run_jobs(die_at, jobs, 2)}
    assert isinstance(outcomes["0"].error, WorkerDied)
    assert [outcomes[name].result for name in ("1", "2")] == [1, 4]


@posix
def test_a_worker_that_dies_while_it_writes_its_result_is_named() -> None:
    started_s = time.monotonic()
    jobs = [Job(str(number), (number, "die")) for number in range(2)]
    outcomes = {each.job.name: each for each in run_jobs(half_a_result, jobs, 2)}
    assert outcomes["0"].result == b"whole"
    assert isinstance(outcomes["1"].error, WorkerDied)
    assert time.monotonic() - started_s < 30


@posix
def test_closing_the_results_ends_a_worker_that_writes_its_result() -> None:
    jobs = [Job(str(number), (number, "sleep")) for number in range(2)]
    running = run_jobs(half_a_result, jobs, 2)
    assert next(running).result == b"whole"
    time.sleep(3)  # the other worker has written one half
    started_s = time.monotonic()
    running.close()
    assert time.monotonic() - started_s < 10


@pytest.mark.parametrize("count", [0, 1])
def test_our_errors_pass_unchanged_and_others_are_named(count: int) -> None:
    (refused,) = run_jobs(refuse, [Job("a", ("anna",))], count)
    assert isinstance(refused.error, RecordingError)
    assert (refused.error.recording, refused.error.problem) == ("anna", "the clock runs backwards")
    (failed,) = run_jobs(raise_unpicklable, [Job("a", ("anna",))], count)
    assert isinstance(failed.error, InternalError)
    assert str(failed.error) == "internal error while working on a: UnpicklableError: 1 and 2"
    assert "raise_unpicklable" in failed.error.details


def test_an_import_that_an_interrupt_broke_stops_the_jobs() -> None:
    """A compiled module turns Ctrl-C during its import into an ImportError; it says nothing about the job."""

    def broken_import(number: int) -> None:
        raise ImportError("initialization failed") from KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        list(run_jobs(broken_import, numbered(2), 0))


def test_one_failed_job_does_not_stop_the_others() -> None:
    outcomes = {o.job.name: o for o in run_jobs(int, [Job("a", ("x",)), Job("b", ("1",))], 0)}
    assert outcomes["b"].result == 1
    assert isinstance(outcomes["a"].error, InternalError)


def test_a_map_raises_the_error_of_its_item() -> None:
    with pytest.raises(RecordingError, match="anna"):
        list(map_in_order(refuse, ["anna"], 1))


def test_a_negative_number_of_workers_is_refused() -> None:
    with pytest.raises(ArgumentError):
        list(run_jobs(abs, numbered(1), -1))


def test_a_worker_has_one_blas_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert list(map_in_order(blas_threads, [0], 1)) == ["1"]
    assert os.environ["OMP_NUM_THREADS"] == "7"


@pytest.mark.parametrize(("workers", "threads"), [(1, 4), (2, 2), (4, 1), (9, 1)])
def test_the_decoders_of_all_workers_share_the_cores(
    workers: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    for name, value in local_pool.thread_limits(workers).items():
        monkeypatch.setenv(name, value)
    assert decoder_process.thread_count(FULL_HD) == threads


def test_a_decoder_takes_four_cores_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(decoder_process.THREADS_VARIABLE, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert decoder_process.thread_count(FULL_HD) == decoder_process.MAX_THREADS == 4


def test_large_pictures_are_decoded_by_fewer_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(decoder_process.THREADS_VARIABLE, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert decoder_process.thread_count(640 * 480) == 1
    assert decoder_process.thread_count(3840 * 2160) == 2
    assert decoder_process.thread_count(7680 * 4320) == 1


def test_closing_the_results_early_ends_the_workers() -> None:
    results = run_jobs(time.sleep, [Job("short", (0,)), Job("long", (60,)), Job("longer", (60,))], 2)
    next(results)
    started_s = time.monotonic()
    results.close()  # type: ignore[attr-defined]
    assert time.monotonic() - started_s < 10
    assert not multiprocessing.active_children()


@linux
def test_a_worker_is_deaf_to_interrupts_from_its_first_moment() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    pool = local_pool._Pool(1)
    try:
        pool.submit(time.sleep, Job("sleep", (0.0,)))
        status = Path(f"/proc/{pool.processes[0].pid}/status").read_text(encoding="utf-8")
    finally:
        pool.close(terminate=True)
    ignored, blocked = (int(status.split(f"{kind}:")[1].split()[0], 16) for kind in ("SigIgn", "SigBlk"))
    assert (ignored | blocked) >> (signal.SIGINT - 1) & 1
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


@linux
def test_an_interrupt_while_a_worker_starts_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    start = multiprocessing.context.SpawnProcess.start

    def start_and_interrupt(process: multiprocessing.context.SpawnProcess) -> None:
        signal.raise_signal(signal.SIGINT)
        start(process)

    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", start_and_interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(run_jobs(slow_first, numbered(2), 1))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not multiprocessing.active_children()


@linux
def test_workers_end_within_two_seconds_of_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import os, time\n"
        "from phase_rppg.workers import Job, run_jobs\n"
        "def work(seconds):\n"
        "    time.sleep(seconds)\n"
        "    return os.getpid()\n"
        "if __name__ == '__main__':\n"
        "    for done in run_jobs(work, [Job('a', (0,)), Job('b', (60,))], 1):\n"
        "        print(done.result, flush=True)\n"
    )
    command = [sys.executable, str(tmp_path / "script.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = Path(f"/proc/{int(parent.stdout.readline())}")
        assert worker.exists()
        time.sleep(0.2)  # the worker has started the second job
        parent.kill()
    deadline_s = time.monotonic() + 2
    while alive(worker) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not alive(worker)


def alive(process: Path) -> bool:
    try:
        return process.joinpath("stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
