"""Split subjects into training, validation and test sets that do not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .. import registry
from ..errors import ArgumentError, UnknownNameError
from ..types import Recording
from .base import Found, natural_key

Range = tuple[float, float]
Ranges = tuple[Range, Range, Range]  # train, valid, test as fractions of the subjects in natural order

# The splits of a data set whose module does not define SPLITS.
DEFAULT: dict[str, Ranges] = {"intra": ((0, 0.7), (0.7, 0.8), (0.8, 1))}
# For a test on another data set, which is used as a whole.
CROSS: Ranges = ((0, 0.8), (0.8, 1), (0, 0))
WHOLE: Ranges = ((0, 0), (0, 0), (0, 1))


@dataclass(frozen=True, slots=True)
class Split:
    """The subjects for training, validation and test."""

    name: str
    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]

    def __post_init__(self) -> None:
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        seen: dict[str, str] = {}
        for part, subjects in parts.items():
            for subject in subjects:
                if subject in seen:
                    raise ArgumentError(
                        f"split {self.name}",
                        f"{subject} in {seen[subject]} and in {part}",
                        "each subject once",
                    )
                seen[subject] = part


def named(dataset: str, name: str, recordings: Sequence[Recording | Found]) -> Split:
    """Return a named split: intra (of the data set), cross (80 % train, 20 % valid) or whole (test only)."""
    known = {"cross": CROSS, "whole": WHOLE, **ratios(dataset)}
    if name not in known:
        raise UnknownNameError("split", name, known)
    return by_ratio(f"{dataset}/{name}", subjects_of(recordings), *known[name])


def ratios(dataset: str) -> dict[str, Ranges]:
    """Return the named splits that the module of a data set defines as SPLITS, or the default ones."""
    if dataset not in registry.names("datasets"):
        return DEFAULT
    found: dict[str, Ranges] = getattr(registry.load("datasets", dataset), "SPLITS", DEFAULT)
    return found


def by_ratio(name: str, subjects: Iterable[str], train: Range, valid: Range, test: Range) -> Split:
    """Split subjects in natural order at ⌊fraction · n⌋, as rPPG-Toolbox does."""
    ordered = sorted(set(subjects), key=natural_key)

    def part(begin: float, end: float) -> tuple[str, ...]:
        # The small term prevents that rounding turns 0.7 · 10 into 6.
        return tuple(ordered[int(begin * len(ordered) + 1e-9) : int(end * len(ordered) + 1e-9)])

    return Split(name, part(*train), part(*valid), part(*test))


def subjects_of(recordings: Iterable[Recording | Found]) -> list[str]:
    return sorted({r.subject for r in recordings}, key=natural_key)
