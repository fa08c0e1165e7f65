"""The guarded process: native parsers within limits of memory and time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phase_rppg import guarded, limits


def test_guarded_call_returns_arrays_and_texts() -> None:
    values = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(guarded.call(np.transpose, values), values.T)
    assert np.array_equal(guarded.call(np.array, ["a", "bcd"]), np.array(["a", "bcd"]))
    assert guarded.call(os.path.join, "a", "b") == os.path.join("a", "b")


def test_guarded_call_that_hangs_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.VARIABLE, "parse_s=1")
    started_s = time.perf_counter()
    with pytest.raises(guarded.GuardError, match="within 1 s"):
        guarded.call(time.sleep, 60)
    assert time.perf_counter() - started_s < 10
    assert guarded.call(os.path.basename, "a/b") == "b"  # the next call starts a new process


def test_guarded_call_that_needs_much_memory_is_refused() -> None:
    with pytest.raises(guarded.GuardError, match="memory_mb"):
        guarded.call(np.zeros, [2**34])


def test_guarded_call_that_crashes_is_reported() -> None:
    with pytest.raises(guarded.GuardError, match="crashed its parser"):
        guarded.call(os.abort)


def test_guarded_call_that_raises_names_the_exception() -> None:
    with pytest.raises(guarded.ParserError) as caught:
        guarded.call(np.zeros, [-1])
    assert caught.value.kind == "ValueError"


def test_guarded_calls_from_threads_do_not_mix() -> None:
    results: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda i=i: results.__setitem__(i, guarded.call(np.full, [3], i)))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {i: list(values) for i, values in results.items()} == {i: [i] * 3 for i in range(8)}


def test_guarded_process_ends_with_its_parent(tmp_path: Path) -> None:
    script = (
        "import os, time; from phase_rppg import guarded; print(guarded.call(os.getpid), flush=True);"
        "guarded.call(time.sleep, 50)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline_s = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()
