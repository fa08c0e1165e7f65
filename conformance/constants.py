"""The constants of the Python session by module, for ports that must use the same numbers."""

from __future__ import annotations

import ast
import importlib
from dataclasses import fields
from pathlib import Path
from typing import Any

from phase_rppg.signal.rate_tracking import RateModel

# Modules with a port; the names are those below `phase_rppg`.
MODULES = (
    "face.crop", "face.detection_scheduler", "face.detector", "face.face_change", "face.registration",
    "face.skin_mask", "face.tracker", "measurement.summary", "methods.chrom", "methods.pos",
    "session.colour_continuity", "session.config", "session.gate", "session.network_feeder",
    "session.session", "session.skin_sampler", "session.window_analyzer", "session.window_quality",
    "signal.beat_jitter", "signal.beat_timing", "signal.hrv", "signal.motion_removal", "signal.quality",
    "signal.rate", "signal.rate_tracking", "signal.rhythm",
)  # fmt: skip


def constants() -> dict[str, dict[str, Any]]:
    """Return the numbers that each module defines, alone or in tuples and dictionaries.

    Names have no leading underscore. `rate_model` holds the parameters of the rate tracker.
    """
    found = {}
    for name in MODULES:
        module = importlib.import_module(f"phase_rppg.{name}")
        values = {key.lstrip("_"): getattr(module, key) for key in _assigned(Path(str(module.__file__)))}
        found[name.split(".")[1]] = {key: value for key, value in values.items() if _is_numeric(value)}
    found["rate_model"] = {field.name: field.default for field in fields(RateModel)}
    return found


def _assigned(source: Path) -> list[str]:
    """Return the names in capitals that a module assigns, in their order."""
    names = []
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(part, ast.Name) and part.id.isupper():
                    names.append(part.id)
    return names


def _is_numeric(value: Any) -> bool:
    if isinstance(value, tuple | dict):
        return all(map(_is_numeric, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int | float) and not isinstance(value, bool)
