"""Plug in by file: a module of a package that defines NAME = "…" is registered under that name.

Names are read from the source text, so listing networks does not import torch.
"""

from __future__ import annotations

import functools
import importlib
import re
from pathlib import Path
from types import ModuleType

from .errors import UnknownNameError

DEFAULT_METHOD = "phasenet-stream"  # the default of `measure`

_NAME_LINE = re.compile(r"""^NAME(?:\s*:\s*[\w.\[\]]+)?\s*=\s*["']([^"']+)["']""", re.MULTILINE)
_SINGULAR = {"methods": "method", "datasets": "data set", "nn": "network"}


@functools.cache
def entries(package: str) -> dict[str, str]:
    """Registered names of a package and the modules that define them, sorted by name."""
    root = Path(__file__).parent
    found: dict[str, str] = {}
    for file in sorted((root / package).rglob("*.py")):
        if match := _NAME_LINE.search(file.read_text(encoding="utf-8")):
            name = match.group(1)
            if name in found:
                raise RuntimeError(f"{file}: the name {name!r} is taken by {found[name]}")
            found[name] = ".".join((__package__, *file.relative_to(root).with_suffix("").parts))
    return dict(sorted(found.items()))


def names(package: str) -> list[str]:
    """Registered names of a package."""
    return list(entries(package))


def load(package: str, name: str) -> ModuleType:
    """Import the module that registers `name`; for an unknown name, the error suggests the nearest one."""
    found = entries(package)
    if name not in found:
        raise UnknownNameError(_SINGULAR.get(package, package), name, found)
    return importlib.import_module(found[name])
