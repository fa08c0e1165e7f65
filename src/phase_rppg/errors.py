"""Every error a user can meet, and the exit code that each one ends the command with.

    PhaseError                      1   our bug, unless a branch below says otherwise
    ├── InternalError               1   a process of ours failed; carries its traceback
    ├── UsageError                  2   the call itself is off
    │   ├── ArgumentError           2   a value out of range, a wrong shape or dtype (also a ValueError)
    │   ├── UnknownNameError        2   no such network, method, data set, world, key …; names the nearest
    │   └── RecipeError             2   a recipe that cannot be used as written
    ├── InputError                  4   the call is fine, what it points at is not
    │   ├── VideoError              4   cannot be opened, decoded or measured
    │   ├── DatasetLayoutError      4   the folder does not look like the data set
    │   ├── RecordingError          4   one recording is unusable (missing label, bad clock, missing field …)
    │   ├── WeightsError            4   a model file is damaged, foreign or does not match its manifest
    │   └── OutputError             4   the result cannot be written there
    └── Interrupted                 130 the user asked us to stop

An error says what, where, and what to do next, in one line.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path


class PhaseError(Exception):
    """Anything that phase-rppg raises on purpose."""

    exit_code = 1

    def __reduce__(self) -> tuple[object, ...]:
        """Errors of a worker process arrive whole, whatever their constructors ask for."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[PhaseError], args: tuple[object, ...], facts: dict[str, object]) -> PhaseError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class InternalError(PhaseError):
    """A part of phase-rppg failed in a way that is not the user's doing.

    `details` is the traceback of the process that failed, for the log.
    """

    def __init__(self, activity: str, problem: str, details: str = "") -> None:
        self.activity, self.problem, self.details = activity, problem, details
        super().__init__(f"internal error while {activity}: {problem}")


class UsageError(PhaseError):
    """The call cannot be carried out as it was written."""

    exit_code = 2


class ArgumentError(UsageError, ValueError):
    """A value was given that the function does not accept."""

    def __init__(self, name: str, given: object, accepted: str) -> None:
        self.name, self.given, self.accepted = name, given, accepted
        super().__init__(f"{name}: got {given}, accepted: {accepted}")


class UnknownNameError(UsageError, LookupError):
    """A name was asked for that nothing here has."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(sorted(known))
        near = difflib.get_close_matches(name, self.known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        super().__init__(f"unknown {kind} {name!r}: {hint}choices: {', '.join(self.known) or 'none'}")


class RecipeError(UsageError):
    """A recipe has a key or a value that cannot be used."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")


class InputError(PhaseError):
    """What the call points at cannot be used."""

    exit_code = 4


class VideoError(InputError):
    """A video cannot be opened, decoded or measured."""

    def __init__(self, video: str | Path, problem: str, hint: str = "") -> None:
        self.video, self.problem, self.hint = str(video), problem, hint
        super().__init__(f"{video}: {problem}" + (f"; {hint}" if hint else ""))


class DatasetLayoutError(InputError):
    """A folder does not have the layout of the data set."""

    def __init__(self, root: str | Path, expected: str, found: Sequence[str]) -> None:
        self.root, self.expected, self.found = str(root), expected, tuple(found)
        listing = ", ".join(found) if found else "nothing"
        super().__init__(f"{root}: expected {expected}; found {listing}")


class RecordingError(InputError):
    """One recording of a data set cannot be used."""

    def __init__(self, recording: str, problem: str) -> None:
        self.recording, self.problem = recording, problem
        super().__init__(f"{recording}: {problem}")


class WeightsError(InputError):
    """A model file is damaged, foreign, or not what its manifest says."""

    def __init__(self, path: str | Path, problem: str) -> None:
        self.path, self.problem = str(path), problem
        super().__init__(f"{path}: {problem}")


class OutputError(InputError):
    """A result cannot be written to the place that was asked for."""

    def __init__(self, path: str | Path, problem: str) -> None:
        self.path, self.problem = str(path), problem
        super().__init__(f"cannot write {path}: {problem}")


class Interrupted(PhaseError):
    """The user asked us to stop; what was finished is kept."""

    exit_code = 130
