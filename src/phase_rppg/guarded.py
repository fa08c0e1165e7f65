"""Call a parser of untrusted files in a guarded child process, with limits of memory and time.

Native parsers (HDF5, MATLAB, ONNX, torch) can crash, hang or allocate without bound on a crafted file. In the
child this costs one call: it raises an error that names the problem, and the next call starts a new child.
The child serves many calls, so that a call takes about a millisecond after the first one.

    values = guarded.call(_read_fields, str(path), ["GT_ppg"])

The function must be at the top level of a module of phase_rppg. Arguments and results are JSON values and
NumPy arrays of numbers. Nothing is pickled, so that a child that a file has taken over cannot run code in the
parent.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from . import limits
from .errors import InternalError, MissingPackageError

_MB = 2**20
_ARRAY = "__array__"
_KINDS = "biufSU"  # types of array elements that are sent: numbers and text
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_PARENT_CHECK_S = 1.0
# The first entry of sys.path would be the working folder, whose files must not be imported.
_START = (
    "import sys; sys.path[0] = sys.argv[1]; from phase_rppg import guarded; guarded.serve(int(sys.argv[2]))"
)


class GuardError(Exception):
    """The call did not end normally; the message says why in words that fit "the file …"."""


class ParserError(Exception):
    """The parser raised an exception; the message is its type and text, which may quote the file."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text
        super().__init__(f"{kind}: {text}")


def call(function: Callable[..., Any], *arguments: Any, memory_mb: float | None = None) -> Any:
    """Call a function in the guarded process and return its result.

    GuardError: the call needed too much memory or time, or crashed. ParserError: the function raised an
    exception. An InternalError means a bug in this module.
    """
    bounds = limits.current()
    most_mb = max(bounds.memory_mb, memory_mb or 0)
    with _lock:
        child = _get_child(most_mb)
        request = {"module": function.__module__, "name": function.__qualname__, "seconds": bounds.parse_s}
        try:
            return child.call({**request, "arguments": arguments}, bounds.parse_s)
        except GuardError:
            close()
            raise


class _Child:
    """The parent side of one child process."""

    def __init__(self, memory_mb: float) -> None:
        self.memory_mb, self.owner = memory_mb, os.getpid()
        self._hung = False
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(Path(__file__).parent.parent), str(int(memory_mb))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_ONE_THREAD},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def call(self, request: dict[str, Any], seconds: float) -> Any:
        timer = threading.Timer(seconds, self._stop)
        timer.daemon = True
        timer.start()
        try:
            write_message(self._requests, request)
            answer = read_message(self._answers)
        except (OSError, EOFError, ValueError):
            raise GuardError(self._end_reason(seconds)) from None
        finally:
            timer.cancel()
        if "result" in answer:
            return answer["result"]
        kind, text = str(answer["kind"]), str(answer["text"])
        if kind == "MemoryError":
            raise GuardError(f"needs more than {self.memory_mb / 1024:.3g} GB; {limits.hint('memory_mb')}")
        if kind == "MissingPackageError":
            raise MissingPackageError(text)
        if kind == "Bug":
            raise InternalError("reading a file in the guarded process", text)
        raise ParserError(kind, text)

    def close(self) -> None:
        """End the process."""
        if self.owner != os.getpid():
            return  # a forked copy does not own the child
        self._process.kill()
        self._process.wait()
        for pipe in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                pipe.close()

    def _stop(self) -> None:
        self._hung = True
        self._process.kill()

    def _end_reason(self, seconds: float) -> str:
        if self._process.poll() is None:  # an invalid answer
            self._process.kill()
        code = self._process.wait()
        if self._hung or code == -getattr(signal, "SIGXCPU", 0):
            return f"was not read within {seconds:g} s; {limits.hint('parse_s')}"
        with contextlib.suppress(ValueError):
            return f"crashed its parser ({signal.Signals(-code).name})"
        return f"crashed its parser (exit code {code})"


_lock = threading.Lock()
_current: list[_Child] = []


def _get_child(memory_mb: float) -> _Child:
    if _current and (_current[0].memory_mb < memory_mb or _current[0].owner != os.getpid()):
        close()
    if not _current:
        _current.append(_Child(memory_mb))
    return _current[0]


@atexit.register
def close() -> None:
    """End the guarded process; the next call starts a new one."""
    while _current:
        _current.pop().close()


def write_message(pipe: IO[bytes], value: Any) -> None:
    """Write one message: the length of the JSON text, the text, and the bytes of its arrays."""
    arrays: list[np.ndarray] = []
    text = json.dumps(_without_arrays(value, arrays)).encode()
    pipe.write(len(text).to_bytes(8, "little") + text)
    for array in arrays:
        pipe.write(array.data.cast("B") if array.size else b"")
    pipe.flush()


def read_message(pipe: IO[bytes]) -> Any:
    """Read one message; an end of the pipe raises an EOFError."""
    length = int.from_bytes(_read(pipe, 8), "little")
    return _with_arrays(json.loads(_read(pipe, length)), pipe)


def _without_arrays(value: Any, arrays: list[np.ndarray]) -> Any:
    """Return a value as JSON values, and append its arrays to a list."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"an array of {array.dtype} is not numeric")
        shape = list(np.shape(value))
        if array.dtype.kind == "U":
            array = array.view(np.uint32) if array.size else array
            arrays.append(array.reshape(-1))
            return {_ARRAY: [value.dtype.str, shape]}
        arrays.append(array.reshape(-1).view(np.uint8) if array.size else array)
        return {_ARRAY: [array.dtype.str, shape]}
    if isinstance(value, dict):
        return {str(key): _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_arrays(item, arrays) for item in value]
    return value


def _with_arrays(value: Any, pipe: IO[bytes]) -> Any:
    if isinstance(value, dict):
        if set(value) == {_ARRAY}:
            kind, shape = value[_ARRAY]
            dtype = np.dtype(str(kind))
            if dtype.kind not in _KINDS:
                raise ValueError("not a numeric array")
            count = int(np.prod(shape, dtype=object)) if shape else 1
            data = _read(pipe, count * dtype.itemsize)
            return np.frombuffer(data, dtype, count).reshape(shape) if data else np.zeros(shape, dtype)
        return {key: _with_arrays(item, pipe) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_arrays(item, pipe) for item in value]
    return value


def _read(pipe: IO[bytes], count: int) -> bytearray:
    """Read exactly `count` bytes; the parent's memory grows only with bytes that arrived."""
    data = bytearray()
    while len(data) < count:
        part = pipe.read(min(count - len(data), 16 * _MB))
        if not part:
            raise EOFError
        data += part
    return data


def serve(memory_mb: int) -> None:
    """Run the child: answer requests until the parent closes the pipe."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # A library that prints must not write into the pipe of the answers.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    _end_with_parent()
    _limit_memory(memory_mb)
    while True:
        try:
            request = read_message(requests)
        except EOFError:
            return
        _limit_cpu_time(request["seconds"])
        write_message(answers, _answer(request))


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    try:
        module = importlib.import_module(request["module"])
        function = getattr(module, request["name"])
    except MemoryError:
        return {"kind": "MemoryError", "text": ""}
    except ModuleNotFoundError as error:
        return {"kind": "MissingPackageError", "text": str(error.name)}
    except Exception:
        return {"kind": "Bug", "text": traceback.format_exc().strip().splitlines()[-1]}
    try:
        result = {"result": function(*request["arguments"])}
        json.dumps(_without_arrays(result, []))
        return result
    except MissingPackageError as error:
        return {"kind": "MissingPackageError", "text": error.package}
    except RecursionError:
        return {"kind": "RecursionError", "text": "nested too deeply"}
    except Exception as error:
        kind = "MemoryError" if isinstance(error, MemoryError) else type(error).__name__
        return {"kind": kind, "text": str(error)[:2000]}


def _limit_memory(memory_mb: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # this system has no such limit
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_mb * _MB, memory_mb * _MB))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_cpu_time(seconds: float) -> None:
    """Limit the CPU time from now on; the limit of the system counts from the start of the process."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime + seconds) + 2
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _end_with_parent() -> None:
    """End this process soon after its parent has ended, also while a parser runs."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
