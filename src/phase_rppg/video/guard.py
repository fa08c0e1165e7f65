"""Decode in a child process, so that a crash or a hang of the decoder becomes an exception.

The child (`decoder_process.py`) writes pictures into a small ring buffer in shared memory; the parent
reads them and returns the slots. Pictures that arrived before a failure are delivered first. A crash, a
hang or a lack of memory in the native decoder raises a VideoError, because the file can cause it. An
exception in the code of the child raises an InternalError, because the file cannot cause it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from ..errors import InternalError, VideoError
from ..fileio import reserve
from ..picture import Picture
from ..text import printable
from . import decoder_process
from .slot_layout import PlaneLayout, SlotLayout

DECODER_SCRIPT = Path(decoder_process.__file__)
HANG_S = 30.0  # without an answer, after which the decoder is stopped
KEPT_STDERR_BYTES = 64 << 10  # of the end of stderr, enough for a traceback
_WINDOWS_CRASH = 0x80000000  # smallest exit code of an exception of the processor or the system
_RING_BYTES = 16 << 20  # approximate size of the ring buffer, which holds 1 to 8 pictures
# Memory of the result per frame of the video, measured at 15 frames per second. At 30 frames per second it is
# a third less.
_RESULT_BYTES_PER_FRAME = 96
# The decoder allocates a large picture for every frame. Without these settings glibc returns each one to the
# system, and clearing the pages of the next one takes a third of the decoding time. With one arena, all
# threads of the decoder share the kept pictures.
_KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(64 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(256 << 20),
    "MALLOC_ARENA_MAX": "1",
}

log = logging.getLogger("phase_rppg.video")
log.addHandler(logging.NullHandler())  # the application configures the output


class ChildTraceback(Exception):
    """The stderr output of a failed child process, as the cause of an error."""


class GuardedDecoder:
    """A child process that decodes one video or image sequence.

    `facts` waits for the facts of the header; `pictures` then yields (picture, time in s or NaN). Use it as a
    context manager, which ends the child.
    """

    def __init__(self, name: str | Path, job: dict[str, Any], *, hang_s: float | None = None) -> None:
        self.name = name
        self.damaged_packets = 0
        self._hang_s = HANG_S if hang_s is None else hang_s
        handles: dict[str, Any] = {}
        if os.name == "posix":
            self._fd = _anonymous_file()
            handles["pass_fds"] = (self._fd,)
        self._child = subprocess.Popen(
            [sys.executable, str(DECODER_SCRIPT), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_KEEP_MEMORY, **os.environ},
            **handles,
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._requests, self._answers = self._child.stdin, self._child.stdout
        self._stderr = _Tail(self._child.stderr)
        self._waiting_since: float | None = None
        self._hung = False
        self._closed = threading.Event()
        self._watched = False
        self._request(job)

    def __enter__(self) -> GuardedDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()  # the frames were never read

    def facts(self) -> dict[str, Any]:
        """Return the facts of the header and the first picture."""
        return self._next()[3]

    def pictures(self, layout: SlotLayout, count: int = 0) -> Iterator[tuple[Picture, float]]:
        """Yield every picture and its time; raise an error if the child fails.

        A picture is a view of shared memory, valid until the next picture is requested. `count` is the number
        of frames in the header, or 0 if the header has none.
        """
        slots = ring_slots(layout.slot_bytes, count)
        memory = self._share(slots * layout.slot_bytes, slots, planes=isinstance(layout, PlaneLayout))
        ring = np.frombuffer(memory, np.uint8).reshape(slots, layout.slot_bytes)
        ring.flags.writeable = False
        views = [layout.view(slot) for slot in ring]
        done = 0  # slots that can be returned
        while True:
            kind, slot, t_s, content = self._next()
            if kind == decoder_process.DONE:
                self.damaged_packets = content["damaged_packets"]
                return
            yield views[slot], t_s
            done += 1
            if done >= slots // 2:  # several at once, because each message costs a context switch
                with contextlib.suppress(BrokenPipeError, OSError):  # the next read notices it
                    self._requests.write(b"\0" * done)
                    self._requests.flush()
                done = 0

    def close(self) -> None:
        """End the child process."""
        self._closed.set()
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        for pipe in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                pipe.close()
        if os.name == "posix" and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _share(self, size: int, slots: int, *, planes: bool) -> mmap.mmap:
        ring = {"bytes": size, "slots": slots, "planes": planes}
        if os.name == "posix":
            reserve(self._fd, size)
            self._request({"fd": self._fd, **ring})
            return mmap.mmap(self._fd, size)
        tag = f"phase-{uuid.uuid4().hex}"
        memory = mmap.mmap(-1, size, tagname=tag)  # type: ignore[call-arg]
        self._request({"tag": tag, **ring})
        return memory

    def _request(self, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        with contextlib.suppress(BrokenPipeError):  # the next read notices that the child has ended
            self._requests.write(len(text).to_bytes(4, "little") + text)
            self._requests.flush()

    def _next(self) -> tuple[bytes, int, float, dict[str, Any]]:
        """Return the next message (kind, slot, time in s, content); ERROR or a timeout raise a VideoError."""
        if not self._watched:  # not earlier: the thread would keep an unused decoder alive
            self._watched = True
            threading.Thread(target=self._watch, daemon=True).start()
        self._waiting_since = time.monotonic()
        try:
            kind, slot, t_s, length = decoder_process.MESSAGE.unpack(self._read(decoder_process.MESSAGE.size))
            content = json.loads(self._read(length)) if length else {}
        finally:
            self._waiting_since = None
        if kind == decoder_process.ERROR:
            raise VideoError(self.name, content["problem"], content["hint"])
        return kind, slot, t_s, content

    def _read(self, count: int) -> bytes:
        data = self._answers.read(count)
        if len(data) < count:
            self._raise_failure()
        return data

    def _raise_failure(self) -> NoReturn:
        """Raise the error for the exit code and stderr output of the child."""
        code = self._child.wait()
        hint = "the file may be damaged; convert it and try again"
        if self._hung:
            problem = f"the decoder did not answer for {self._hang_s:g} s and was stopped"
            raise VideoError(self.name, problem, hint)
        if code < 0 or code >= _WINDOWS_CRASH:
            raise VideoError(self.name, f"the decoder crashed on this file ({_exit_reason(code)})", hint)
        if code == decoder_process.OUT_OF_MEMORY:
            problem = f"needs more than {decoder_process.MAX_MEMORY_BYTES >> 30} GiB of memory to decode"
            raise VideoError(self.name, problem, "reduce its resolution first")
        written = self._stderr.text()
        log.error("the decoder process failed on %s (exit code %d)\n%s", printable(self.name), code, written)
        last_line = written.rpartition("\n")[2] or f"the decoder process ended with exit code {code}"
        raise InternalError(f"decoding {self.name}", last_line, written) from ChildTraceback(f"\n{written}")

    def _watch(self) -> None:
        while not self._closed.wait(min(0.5, self._hang_s / 4)):
            since = self._waiting_since
            if since is not None and time.monotonic() - since > self._hang_s:
                self._hung = True
                self._child.kill()
                return


class _Tail:
    """Read a pipe to its end in a thread, so that the writer never blocks, and keep the last bytes."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._kept = bytearray()
        # The thread must not refer to the decoder, because it would keep an unused decoder alive.
        self._thread = threading.Thread(target=_drain, args=(pipe, self._kept), daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return the last output; call it after the writer has ended."""
        self._thread.join(timeout=5)
        return self._kept.decode("utf-8", "replace").strip()


def _drain(pipe: IO[bytes], kept: bytearray) -> None:
    with pipe:
        while data := os.read(pipe.fileno(), KEPT_STDERR_BYTES):
            kept += data
            del kept[:-KEPT_STDERR_BYTES]


def _exit_reason(code: int) -> str:
    """Return the name of the signal, or the exit code if it is no signal."""
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}" if code < 0 else f"code {code:#x}"


def ring_slots(picture_bytes: int, count: int = 0) -> int:
    """Return the number of pictures in the ring buffer, smaller for long videos, whose results need memory.

    Each picture of the ring counts twice, once in each process. The child decodes the next picture while the
    parent reads one, so that one slot is enough for pictures that take long to decode.
    """
    slots = max(1, min(8, _RING_BYTES // picture_bytes))
    saved = round(count * _RESULT_BYTES_PER_FRAME / (2 * picture_bytes))
    return max(min(2, slots), slots - saved)


def _anonymous_file() -> int:
    """Return the descriptor of an unnamed file that the child inherits, in memory if the system allows it."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("phase-frames")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
