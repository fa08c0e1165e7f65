"""Decode in a child process, so that a crash or a hang in the decoder becomes an error and not our end.

The child (`decoder.py`) writes pictures into a small ring of shared memory; we copy them out and hand the
slot back. All that arrived before a failure is delivered first, then an error says what happened: a
VideoError for a crash, a hang or a lack of memory in the native decoder, which the file can cause; an
InternalError for an exception in the child's own code, which it cannot.
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
from ..types import ByteArray
from . import decoder

DECODER_SCRIPT = Path(decoder.__file__)
HANG_S = 30.0  # a decoder that is silent for so long will not speak again
KEPT_STDERR_BYTES = 64 << 10  # the end of what the child wrote: holds any traceback
_WINDOWS_CRASH = 0x80000000  # exit codes from here on are exceptions of the processor or the system
_RING_BYTES = 16 << 20  # the ring holds at least 2 and at most 8 pictures, and about this much
# What a stated frame leaves in memory: its place in the reader's list, its share of the answer. Measured at
# 15 frames per second; at 30 it is a third less.
_LISTED_BYTES = 96
# The decoder makes a large picture for every frame. Without this the C library gives each back to the system,
# and clearing the pages of the next one is a third of the decoder's work. Only glibc reads it.
_KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(64 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}

log = logging.getLogger("phase_rppg.video")
log.addHandler(logging.NullHandler())  # the application decides whether and where it is shown


class ChildTraceback(Exception):
    """What a failed child process wrote to stderr, as the cause of our error."""


class GuardedDecoder:
    """A child process that decodes one video or image sequence.

    `facts` waits for what the child found in the header; `pictures` then yields ((H,W,3) u8, time in s or
    NaN). Use it as a context manager: leaving it ends the child.
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
            [sys.executable, str(DECODER_SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_KEEP_MEMORY, **os.environ},
            **handles,
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._orders, self._answers = self._child.stdin, self._child.stdout
        self._stderr = _Tail(self._child.stderr)
        self._waiting_since: float | None = None
        self._hung = False
        self._closed = threading.Event()
        self._watched = False
        self._order(job)

    def __enter__(self) -> GuardedDecoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_closed"):
            self.close()  # frames were asked for and never read

    def facts(self) -> dict[str, Any]:
        """What the header and the first picture say."""
        return self._next()[3]

    def pictures(self, width: int, height: int, count: int = 0) -> Iterator[tuple[ByteArray, float]]:
        """Every picture and its time; ends with an error when the child did not finish well.

        A picture is a view of shared memory: it is valid until the next one is asked for. `count` is how many
        the file says that it holds, 0 if it does not say.
        """
        size = width * height * 3
        slots = ring_slots(size, count)
        memory = self._share(slots * size, slots)
        ring = np.frombuffer(memory, np.uint8).reshape(slots, height, width, 3)
        ring.flags.writeable = False
        done = 0  # slots that can be handed back
        while True:
            kind, slot, t_s, content = self._next()
            if kind == decoder.DONE:
                self.damaged_packets = content["damaged_packets"]
                return
            yield ring[slot], t_s
            done += 1
            if done >= slots // 2:  # several at once: each message costs a change of process
                with contextlib.suppress(BrokenPipeError, OSError):  # noticed by the next read
                    self._orders.write(b"\0" * done)
                    self._orders.flush()
                done = 0

    def close(self) -> None:
        """End the child, whatever it is doing."""
        self._closed.set()
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        for pipe in (self._orders, self._answers):
            with contextlib.suppress(OSError):
                pipe.close()
        if os.name == "posix" and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _share(self, size: int, slots: int) -> mmap.mmap:
        if os.name == "posix":
            os.ftruncate(self._fd, size)
            self._order({"fd": self._fd, "bytes": size, "slots": slots})
            return mmap.mmap(self._fd, size)
        tag = f"phase-{uuid.uuid4().hex}"
        memory = mmap.mmap(-1, size, tagname=tag)  # type: ignore[call-arg]
        self._order({"tag": tag, "bytes": size, "slots": slots})
        return memory

    def _order(self, content: dict[str, Any]) -> None:
        text = json.dumps(content).encode()
        with contextlib.suppress(BrokenPipeError):  # a dead child is noticed by the next read
            self._orders.write(len(text).to_bytes(4, "little") + text)
            self._orders.flush()

    def _next(self) -> tuple[bytes, int, float, dict[str, Any]]:
        """The next message: (kind, slot, time in s, content); ERROR and silence become a VideoError."""
        if not self._watched:  # only now: a thread would keep a decoder alive that nobody reads
            self._watched = True
            threading.Thread(target=self._watch, daemon=True).start()
        self._waiting_since = time.monotonic()
        try:
            kind, slot, t_s, length = decoder.MESSAGE.unpack(self._read(decoder.MESSAGE.size))
            content = json.loads(self._read(length)) if length else {}
        finally:
            self._waiting_since = None
        if kind == decoder.ERROR:
            raise VideoError(self.name, content["problem"], content["hint"])
        return kind, slot, t_s, content

    def _read(self, count: int) -> bytes:
        data = self._answers.read(count)
        if len(data) < count:
            self._raise_failure()
        return data

    def _raise_failure(self) -> NoReturn:
        """Say why the child ended early, by its exit code and what it wrote to stderr."""
        code = self._child.wait()
        hint = "the file may be damaged; convert it and try again"
        if self._hung:
            problem = f"the decoder gave no answer for {self._hang_s:g} s and was stopped"
            raise VideoError(self.name, problem, hint)
        if code < 0 or code >= _WINDOWS_CRASH:
            raise VideoError(self.name, f"the decoder crashed on this file ({_ending(code)})", hint)
        if code == decoder.OUT_OF_MEMORY:
            problem = f"needs more than {decoder.MAX_MEMORY_BYTES >> 30} GiB of memory to decode"
            raise VideoError(self.name, problem, "scale it down first")
        written = self._stderr.text()
        log.error("the decoder process failed on %s (exit code %d)\n%s", self.name, code, written)
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
    """Reads a pipe to its end in a thread, so that the writer never waits, and keeps the last bytes."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._kept = bytearray()
        # The thread must not refer to the decoder: it would keep one alive that nobody reads.
        self._thread = threading.Thread(target=_drain, args=(pipe, self._kept), daemon=True)
        self._thread.start()

    def text(self) -> str:
        """What was written last; call it when the writer has ended."""
        self._thread.join(timeout=5)
        return self._kept.decode("utf-8", "replace").strip()


def _drain(pipe: IO[bytes], kept: bytearray) -> None:
    with pipe:
        while data := os.read(pipe.fileno(), KEPT_STDERR_BYTES):
            kept += data
            del kept[:-KEPT_STDERR_BYTES]


def _ending(code: int) -> str:
    """The name of the signal, or the code where there is no such name."""
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}" if code < 0 else f"code {code:#x}"


def ring_slots(picture_bytes: int, count: int = 0) -> int:
    """How many pictures the ring holds: what a long video leaves in memory is saved here.

    Each picture of the ring counts twice, once in either process.
    """
    slots = min(8, _RING_BYTES // picture_bytes) - round(count * _LISTED_BYTES / (2 * picture_bytes))
    return max(2, slots)


def _anonymous_file() -> int:
    """A file without a name whose handle the child inherits: in memory where the system offers that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("phase-frames")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
