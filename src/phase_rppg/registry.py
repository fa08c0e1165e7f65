"""Plug in by file: whatever sits in a room's folder and says NAME = "…" is registered.

Names are read from the source text, so listing networks does not import torch.
"""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path
from types import ModuleType

from .errors import UnknownNameError

DEFAULT_METHOD = "phasenet-stream"  # what measures when nothing else is asked for

_NAME_LINE = re.compile(r"""^NAME(?:\s*:\s*[\w.\[\]]+)?\s*=\s*["']([^"']+)["']""", re.MULTILINE)
_SINGULAR = {"methods": "method", "datasets": "data set", "nn": "network"}


@functools.cache
def entries(room: str) -> dict[str, str]:
    """Registered names of a room and the modules that hold them, sorted by name."""
    folder = Path(__file__).parent / room
    found: dict[str, str] = {}
    for file in sorted(folder.glob("*.py")):
        if match := _NAME_LINE.search(file.read_text(encoding="utf-8")):
            name = match.group(1)
            if name in found:
                raise RuntimeError(f"{file}: the name {name!r} is taken by {found[name]}")
            found[name] = f"{__package__}.{room}.{file.stem}"
    return dict(sorted(found.items()))


def names(room: str) -> list[str]:
    return list(entries(room))


def load(room: str, name: str) -> ModuleType:
    """The module that registers `name`; an unknown name is answered with the nearest one."""
    found = entries(room)
    if name not in found:
        raise UnknownNameError(_SINGULAR.get(room, room), name, found)
    return importlib.import_module(found[name])
