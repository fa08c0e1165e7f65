"""The exceptions of the package, and the exit code of a command for each of them.

    PhaseError                      1   base class
    ├── InternalError               1   a bug in phase-rppg; carries the traceback of the process that failed
    ├── UsageError                  2   the arguments are wrong
    │   ├── ArgumentError           2   a value out of range, a wrong shape or dtype (also a ValueError)
    │   ├── UnknownNameError        2   no such network, method, data set, world, key …; suggests the nearest
    │   ├── RecipeError             2   a recipe has a wrong key or value
    │   └── MissingPackageError     2   an optional package is not installed; names the extra to install
    ├── InputError                  4   an input file or folder cannot be used
    │   ├── VideoError              4   a video cannot be opened, decoded or measured
    │   ├── DatasetLayoutError      4   a folder does not have the layout of the data set
    │   ├── RecordingError          4   one recording is unusable (missing label, bad clock, missing field …)
    │   ├── WeightsError            4   a model file is damaged or does not match its manifest
    │   └── OutputError             4   a result cannot be written
    └── Interrupted                 130 the user stopped the command

A message states the problem, the place and the remedy in one line.
"""

from __future__ import annotations

import difflib
import errno
import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path

from .text import printable


class PhaseWarning(UserWarning):
    """An input is probably wrong, but the measurement continues."""


class PhaseError(Exception):
    """The base class of all exceptions that phase-rppg raises."""

    exit_code = 1

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle all attributes, so that errors of worker processes do not depend on their constructors."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[PhaseError], args: tuple[object, ...], attributes: dict[str, object]) -> PhaseError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


class InternalError(PhaseError):
    """The program failed because of a bug, not because of its input.

    `details` is the traceback of the process that failed, for the log.
    """

    def __init__(self, activity: str, problem: str, details: str = "") -> None:
        self.activity, self.problem, self.details = activity, problem, details
        super().__init__(f"internal error while {printable(activity)}: {problem}")


class UsageError(PhaseError):
    """The arguments of a call are wrong."""

    exit_code = 2


class ArgumentError(UsageError, ValueError):
    """The value of an argument is not accepted."""

    def __init__(self, name: str, given: object, accepted: str) -> None:
        self.name, self.given, self.accepted = name, given, accepted
        super().__init__(f"{name}: got {printable(given)}, accepted: {accepted}")


class UnknownNameError(UsageError, LookupError):
    """A name is not registered."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        near = difflib.get_close_matches(name, self.known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}choices: {', '.join(self.known) or 'none'}")


class RecipeError(UsageError):
    """A recipe has a key or a value that cannot be used."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")


# Optional packages, and the smallest extra of phase-rppg that installs each.
EXTRAS = {
    "matplotlib": "plot", "scipy": "research", "h5py": "mat73",
    "pandas": "pandas", "pyedflib": "interchange", "wfdb": "interchange",
    "torch": "train", "safetensors": "train", "onnx": "train",
    "pyarrow": "parquet", "fsspec": "objects", "ray": "ray", "starlette": "serve", "uvicorn": "serve",
    "cryptography": "lan", "segno": "lan",
}  # fmt: skip


class MissingPackageError(UsageError):
    """A package that is installed on demand is needed and absent."""

    def __init__(self, package: str) -> None:
        self.package, self.extra = package, EXTRAS[package]
        super().__init__(f'{package} is not installed; run: pip install "phase-rppg[{self.extra}]"')

    @classmethod
    def from_import(cls, error: ModuleNotFoundError) -> MissingPackageError | None:
        """Return the error for an import that failed, or None if no extra has that package."""
        package = (error.name or "").partition(".")[0]
        return cls(package) if package in EXTRAS else None


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not imported."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def require(*packages: str) -> None:
    """Raise a MissingPackageError for the first package that is absent, before any long work begins."""
    for package in packages:
        if not is_installed(package):
            raise MissingPackageError(package)


class InputError(PhaseError):
    """An input file or folder cannot be used."""

    exit_code = 4


class VideoError(InputError):
    """A video cannot be opened, decoded or measured."""

    def __init__(self, video: str | Path, problem: str, hint: str = "") -> None:
        self.video, self.problem, self.hint = str(video), problem, hint
        super().__init__(f"{printable(video)}: {problem}" + (f"; {hint}" if hint else ""))


class DatasetLayoutError(InputError):
    """A folder does not have the layout of the data set."""

    def __init__(self, root: str | Path, expected: str, found: Sequence[str]) -> None:
        self.root, self.expected, self.found = str(root), expected, tuple(found)
        listing = ", ".join(map(printable, found)) if found else "nothing"
        super().__init__(f"{printable(root)}: expected {expected}; found {listing}")


class RecordingError(InputError):
    """One recording of a data set cannot be used."""

    def __init__(self, recording: str, problem: str) -> None:
        self.recording, self.problem = recording, problem
        super().__init__(f"{printable(recording)}: {problem}")


class WeightsError(InputError):
    """A model file is damaged or does not match its manifest."""

    def __init__(self, path: str | Path, problem: str) -> None:
        self.path, self.problem = str(path), problem
        super().__init__(f"{printable(path)}: {problem}")


class OutputError(InputError):
    """A result cannot be written to the path that the user chose."""

    def __init__(self, path: str | Path, problem: str) -> None:
        self.path, self.problem = str(path), problem
        super().__init__(f"cannot write {printable(path)}: {problem}")

    @classmethod
    def from_os_error(cls, error: OSError) -> OutputError | None:
        """Return the error for a disk that is full, read-only or broken, or None for any other cause."""
        if error.errno not in _DISK_ERRORS:
            return None
        return cls(error.filename or "the output", error.strerror or str(error))


_DISK_ERRORS = {errno.ENOSPC, errno.EROFS, errno.EFBIG, errno.EIO, getattr(errno, "EDQUOT", errno.ENOSPC)}


class Interrupted(PhaseError):
    """The user stopped the command; finished results are kept."""

    exit_code = 130


def caused_by_interrupt(error: BaseException | None) -> bool:
    """Return whether Ctrl+C caused an error: the import of a compiled module turns it into an ImportError."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
