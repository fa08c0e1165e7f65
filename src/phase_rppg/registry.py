"""Discovery of plug-ins: methods, networks, data sets, worlds and commands.

A module that defines `NAME = "…"` is registered under that name; a world is a `.toml` file and has the name
of the file. Plug-ins come from three places:

1. the package itself: `methods/`, `nn/`, `datasets/`, `cli/` and `recipes/worlds/`;
2. installed distributions, through the entry-point groups `phase_rppg.methods`, `phase_rppg.nn`, … ; the
   value names a module (for a world, the package that holds `<name>.toml`);
3. the folder that the environment variable `PHASE_PLUGINS` names, with the sub-folders `methods/`, `nn/`,
   `datasets/`, `worlds/` and `cli/`.

Names are read from the source text and from metadata, so that listing networks does not import torch.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import sys
from importlib import metadata, resources
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import UnknownNameError, UsageError

DEFAULT_METHOD = "phasenet-stream"  # the default of `measure`
PLUGIN_VARIABLE = "PHASE_PLUGINS"

_NAME_LINE = re.compile(r"""^NAME(?:\s*:\s*[\w.\[\]]+)?\s*=\s*["']([^"']+)["']""", re.MULTILINE)
_SINGULAR = {"methods": "method", "datasets": "data set", "nn": "network", "worlds": "world"}
_ROOT = Path(__file__).parent


def entries(package: str) -> dict[str, str | Path]:
    """Return the registered names of a group, sorted, each with its module name or its file."""
    return _entries(package, os.environ.get(PLUGIN_VARIABLE, ""))


def names(package: str) -> list[str]:
    """Return the registered names of a group."""
    return list(entries(package))


def listed(package: str) -> str:
    """Return the registered names of a group as one text, for help pages."""
    return ", ".join(names(package))


def load(package: str, name: str) -> ModuleType:
    """Import the module that registers `name`; for an unknown name, the error suggests the nearest one."""
    where = _find(package, name)
    if isinstance(where, str):
        return importlib.import_module(where)
    return _load_file(package, where)


def world_text(name: str) -> str:
    """Return the text of the recipe of a registered world."""
    where = _find("worlds", name)
    file = where if isinstance(where, Path) else resources.files(where) / f"{name}.toml"
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"the world {name} cannot be read from {where}: {error}") from error


def _find(package: str, name: str) -> str | Path:
    found = entries(package)
    if name not in found:
        raise UnknownNameError(_SINGULAR.get(package, package), name, found)
    return found[name]


@functools.cache  # the folder is a parameter, so that a change of the environment has an effect
def _entries(package: str, plugin_folder: str) -> dict[str, str | Path]:
    found: dict[str, str | Path] = {}

    def add(name: str, where: str | Path) -> None:
        if name in found:
            raise UsageError(f"{where}: the name {name!r} is taken by {found[name]}; choose another NAME")
        found[name] = where

    for name, file in _files(_ROOT / ("recipes/worlds" if package == "worlds" else package)):
        if file.suffix == ".toml":
            add(name, file)
        else:
            add(name, ".".join((__package__, *file.relative_to(_ROOT).with_suffix("").parts)))
    for point in _entry_points(tuple(sys.path)).select(group=f"{__package__}.{package}"):
        add(point.name, point.value)
    if plugin_folder:
        folder = Path(plugin_folder).expanduser()
        if not folder.is_dir():
            raise UsageError(f"{PLUGIN_VARIABLE} names {plugin_folder}, which is not a folder")
        for name, file in _files(folder / package):
            add(name, file)
    return dict(sorted(found.items()))


@functools.lru_cache(maxsize=1)  # the search path is a parameter, so that a change of it has an effect
def _entry_points(_search_path: tuple[str, ...]) -> Any:
    """Return the entry points of all distributions; reading them opens a file of each one."""
    return metadata.entry_points()


def _files(folder: Path) -> list[tuple[str, Path]]:
    """Return the plug-in files of a folder with the names that they register."""
    if folder.name == "worlds":
        return [(file.stem, file) for file in sorted(folder.glob("*.toml"))]
    texts = [(file, file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.py"))]
    return [(match.group(1), file) for file, text in texts if (match := _NAME_LINE.search(text))]


def _load_file(package: str, file: Path) -> ModuleType:
    """Import a file of the plug-in folder, once for each path."""
    dotted = f"phase_rppg_plugins.{package}.{file.stem}"
    known = sys.modules.get(dotted)
    if known is not None and known.__file__ == str(file):
        return known
    spec = importlib.util.spec_from_file_location(dotted, file)
    if spec is None or spec.loader is None:
        raise UsageError(f"the plug-in {file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[dotted] = module  # dataclasses need their module in `sys.modules` during the import
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError:
        del sys.modules[dotted]
        raise  # callers explain a missing torch
    except Exception as error:
        del sys.modules[dotted]
        raise UsageError(f"the plug-in {file} cannot be imported: {type(error).__name__}: {error}") from error
    return module
