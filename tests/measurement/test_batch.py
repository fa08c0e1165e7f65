"""Laws of many videos at once."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import signal
import sys
from pathlib import Path

import pytest

from phase_rppg.measurement.batch import _Worker
from phase_rppg.measurement.measure import MeasureOptions


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_is_deaf_to_interrupts_from_its_first_moment() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    worker = _Worker(MeasureOptions(method="pos"))
    try:
        status = Path(f"/proc/{worker.process.pid}/status").read_text(encoding="utf-8")
    finally:
        worker.stop()
    ignored, blocked = (int(status.split(f"{kind}:")[1].split()[0], 16) for kind in ("SigIgn", "SigBlk"))
    assert (ignored | blocked) >> (signal.SIGINT - 1) & 1
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


@pytest.mark.skipif(sys.platform != "linux", reason="signals of POSIX")
def test_an_interrupt_while_a_worker_starts_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    start = multiprocessing.context.SpawnProcess.start

    def start_under_fire(process: multiprocessing.context.SpawnProcess) -> None:
        signal.raise_signal(signal.SIGINT)
        start(process)

    monkeypatch.setattr(multiprocessing.context.SpawnProcess, "start", start_under_fire)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _Worker(MeasureOptions(method="pos"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not multiprocessing.active_children()
