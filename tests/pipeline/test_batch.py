"""Laws of many videos at once."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from phase_rppg.pipeline.api import Order
from phase_rppg.pipeline.batch import _Worker


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_is_deaf_to_interrupts_from_its_first_moment() -> None:
    before = signal.getsignal(signal.SIGINT)
    worker = _Worker(Order(method="pos"))
    try:
        status = Path(f"/proc/{worker.process.pid}/status").read_text(encoding="utf-8")
    finally:
        worker.stop()
    ignored = int(status.split("SigIgn:")[1].split()[0], 16)
    assert ignored >> (signal.SIGINT - 1) & 1
    assert signal.getsignal(signal.SIGINT) is before
