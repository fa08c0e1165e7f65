"""phase-rppg measures a pulse waveform and a heart rate, or a reason for no reading, from face video.

    from phase_rppg import measure

    result = measure("face.mp4")
    print(result.faces[0].summary)

The public names are imported on first use, so that importing the package is fast.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import PhaseError, PhaseWarning
    from .measurement.measure import measure
    from .measurement.public_session import Session
    from .measurement.trace import measure_trace
    from .session.config import SessionConfig
    from .session.results import FaceEvent, FacePosition, FaceResult, Result, WavePiece, WindowResult
    from .types import Estimate, Frame, NoReading, Reason, RgbTrace, SummaryEstimate

# onnxruntime 1.29 and later send usage data unless this variable is set before the import. A user who wants
# to send it sets the variable to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

logging.getLogger(__name__).addHandler(logging.NullHandler())  # the application configures the output

__version__ = "0.1.0"
__all__ = [
    "Estimate",
    "FaceEvent",
    "FacePosition",
    "FaceResult",
    "Frame",
    "NoReading",
    "PhaseError",
    "PhaseWarning",
    "Reason",
    "Result",
    "RgbTrace",
    "Session",
    "SessionConfig",
    "SummaryEstimate",
    "WavePiece",
    "WindowResult",
    "__version__",
    "measure",
    "measure_trace",
]

_MODULES = {
    "measure": "measurement.measure",
    "measure_trace": "measurement.trace",
    "Session": "measurement.public_session",
    "SessionConfig": "session.config",
    "Result": "session.results",
    "FaceResult": "session.results",
    "WindowResult": "session.results",
    "WavePiece": "session.results",
    "FaceEvent": "session.results",
    "FacePosition": "session.results",
    "PhaseError": "errors",
    "PhaseWarning": "errors",
    "Estimate": "types",
    "Frame": "types",
    "NoReading": "types",
    "Reason": "types",
    "RgbTrace": "types",
    "SummaryEstimate": "types",
    # For the methods of the results, which are in a package below `report`.
    "document": "report.document",
    "face_document": "report.document",
    "figure": "report.plots",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
