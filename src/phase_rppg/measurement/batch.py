"""Many videos in parallel: each worker is a process of its own, and one bad file never stops the rest."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError, InternalError, PhaseError, VideoError
from ..session.results import Result
from .measure import MeasureOptions, run

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

VIDEO_SUFFIXES = frozenset(
    {".avi", ".mkv", ".mov", ".mp4", ".m4v", ".mpg", ".mpeg", ".ts", ".webm", ".wmv", ".3gp", ".flv", ".y4m"}
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A video that could not be measured, and why."""

    video: str
    problem: str  # one line
    internal: bool = False  # a fault of ours, not of the video


def find_videos(paths: Sequence[Path]) -> list[Path]:
    """Files as they are named, and the videos inside folders (not deeper), each once and in order."""
    found: list[Path] = []
    for path in paths:
        if os.path.isdir(path):
            try:
                names = sorted(path.iterdir())
            except OSError as error:
                raise InputError(
                    f"{path}: cannot be read ({error.strerror}); check its permissions"
                ) from None
            inside = [p for p in names if p.suffix.lower() in VIDEO_SUFFIXES and os.path.isfile(p)]
            if not inside:
                raise InputError(
                    f"{path}: a folder without videos; name a video file or a folder that holds some"
                )
            found += inside
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def measure_many(
    videos: Sequence[Path], order: MeasureOptions, jobs: int
) -> Iterator[tuple[int, Result | Failure]]:
    """Measure all videos on `jobs` processes; yields (position in the list, result) as each one is
    finished.
    """
    order.config()  # a wrong order is refused before any process starts
    waiting = deque(enumerate(videos))
    workers: list[_Worker] = []
    try:
        for _ in range(max(1, min(jobs, len(videos)))):
            workers.append(_Worker(order))
        for worker in workers:
            worker.take_next(waiting)
        while busy := {worker.pipe: worker for worker in workers if worker.job is not None}:
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                yield worker.answer()
                worker.take_next(waiting)
    finally:
        for worker in workers:
            worker.stop()


@dataclass
class _Worker:
    """One process and the video that it measures; a process that dies is replaced."""

    order: MeasureOptions
    job: tuple[int, Path] | None = None
    process: BaseProcess = field(init=False)
    pipe: Connection = field(init=False)

    def __post_init__(self) -> None:
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.order))
        try:
            with _deaf_to_interrupts():
                self.process.start()
        except BaseException:  # Ctrl+C meanwhile: this worker is not yet in anybody's list
            self.pipe.close()
            if self.process.pid is not None:
                self.process.join()
            raise
        finally:
            theirs.close()

    def take_next(self, waiting: deque[tuple[int, Path]]) -> None:
        self.job = waiting.popleft() if waiting else None
        if self.job is not None:
            self.pipe.send(str(self.job[1]))

    def answer(self) -> tuple[int, Result | Failure]:
        assert self.job is not None
        position, video = self.job
        try:
            return position, self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            problem = f"the measuring process died (code {self.process.exitcode}); the file may be damaged"
            self._start()
            return position, Failure(str(video), str(VideoError(video, problem)))

    def stop(self) -> None:
        """An idle worker ends by itself when its pipe closes; a busy one is told to."""
        self.pipe.close()
        if self.job is not None:
            self.process.terminate()
        self.process.join()


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """A process that is started in here never hears Ctrl+C, not even while it is still importing.

    It inherits that the signal is blocked. Here it is put off until the process has been told what to do,
    also where another thread takes it, and not lost.
    """
    blocks = hasattr(signal, "pthread_sigmask")  # not on Windows
    if not blocks or threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()  # when it starts it lets the signal through again
    heard: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
        if heard:
            signal.raise_signal(signal.SIGINT)


def _serve(pipe: Connection, order: MeasureOptions) -> None:
    """Measure what is sent until the pipe closes; the person's Ctrl+C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            video = pipe.recv()
        except (EOFError, OSError):
            return
        answer: Result | Failure
        try:
            answer = run(video, order)
        except PhaseError as error:
            answer = Failure(video, str(error), internal=isinstance(error, InternalError))
        except Exception as error:
            answer = Failure(
                video, f"{video}: internal error: {type(error).__name__}: {error}", internal=True
            )
        pipe.send(answer)
