"""The command line of the running command, for reports that state how to repeat them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any


def given() -> str:
    """Return the command with the arguments and options that were given on the command line."""
    context = _context()
    if context is None:
        return "phase"
    words = ["phase", context.info_name or ""]
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params.get(name)
        if parameter.param_type_name == "argument":
            arguments += _texts(value)
        elif isinstance(value, bool):
            words.append(parameter.opts[0])
        else:
            words += [word for text in _texts(value) for word in (parameter.opts[0], text)]
    return shlex.join([*words[:2], *arguments, *words[2:]])


def _context() -> Any:
    """Return the context of the running command; some versions of typer bundle click."""
    import importlib

    import typer

    package = typer.Context.__mro__[1].__module__.rpartition(".")[0]  # "click" or "typer._click"
    return importlib.import_module(f"{package}.globals").get_current_context(silent=True)


def _texts(value: Any) -> list[str]:
    several = isinstance(value, Sequence) and not isinstance(value, str)
    return [str(one) for one in value] if several else [str(value)]
