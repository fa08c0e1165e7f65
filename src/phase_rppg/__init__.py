"""phase-rppg: a face video in, a pulse waveform, a heart rate or an honest "no reading" out.

    from phase_rppg import measure

    result = measure("face.mp4")
    print(result.faces[0].summary)

What is named here is loaded when it is first used, so importing the package costs nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .measurement.measure import measure
    from .session.config import SessionConfig
    from .session.results import FaceResult, Result, WindowResult
    from .session.session import Session
    from .types import Estimate, Frame, NoReading, Reason

# onnxruntime 1.29 and later send usage data to their makers unless this is set before they are loaded.
# Nothing about a face leaves the computer; whoever wants to send it sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"
__all__ = [
    "Estimate",
    "FaceResult",
    "Frame",
    "NoReading",
    "Reason",
    "Result",
    "Session",
    "SessionConfig",
    "WindowResult",
    "__version__",
    "measure",
]

_HOMES = {
    "measure": "measurement.measure",
    "Session": "session.session",
    "SessionConfig": "session.config",
    "Result": "session.results",
    "FaceResult": "session.results",
    "WindowResult": "session.results",
    "Estimate": "types",
    "Frame": "types",
    "NoReading": "types",
    "Reason": "types",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
