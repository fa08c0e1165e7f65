"""Checks of output files, which run before the work begins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path


def check_output(
    path: Path,
    *,
    force: bool,
    suffixes: Sequence[str] = (),
    option: str = "--out",
    inputs: Iterable[Path] = (),
) -> None:
    """Refuse a file of another format, an existing file without `--force`, and a file that cannot be written.

    Parameters
    ----------
    path
        The file that the command will write.
    force
        Whether an existing file may be replaced. A file of `inputs` is never replaced.
    suffixes
        The accepted suffixes; empty accepts every name.
    option
        The option that names the file, for messages.
    inputs
        The files that the command reads.
    """
    from ..errors import OutputError, UsageError
    from ..fileio import check_target

    if suffixes:
        check_suffix(path, suffixes, option)
    check_target(path)
    if os.path.realpath(path) in {os.path.realpath(each) for each in inputs}:
        raise UsageError(f"{path}: would overwrite an input; choose another name")
    if path.exists() and not force:
        raise OutputError(path, "exists; overwrite it with --force")
    check_folder(path.absolute().parent, path)


def check_figure(path: Path | None, *, force: bool, option: str = "--plot") -> None:
    """Check a figure like another output; `None` means that no figure is wanted."""
    from ..errors import require
    from ..report.figure_file import SUFFIXES

    if path is not None:
        check_output(path, force=force, suffixes=SUFFIXES, option=option)
        require("matplotlib")


def check_folder(folder: Path, output: Path | None = None) -> None:
    """Refuse a folder in which no file can be made; missing folders are made later."""
    from ..errors import OutputError

    parent = folder.absolute()
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise OutputError(output or folder, f"{parent} is not a writable folder")


def check_suffix(path: Path, suffixes: Sequence[str], option: str) -> None:
    """Refuse a file whose suffix names another format."""
    from ..errors import ArgumentError

    if path.suffix.lower() not in suffixes:
        *first, last = suffixes
        listed = f"{', '.join(first)} or {last}" if first else last
        raise ArgumentError(option, path, f"a name ending in {listed}")
