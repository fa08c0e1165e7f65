"""Who is trained on and who is tested: named splits over sorted subjects, nobody in two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import ArgumentError, UnknownNameError
from ..types import Recording
from .base import natural_key

Range = tuple[float, float]

# As used in the literature (train, valid, test as fractions of the subjects in natural order).
RATIOS: dict[str, dict[str, tuple[Range, Range, Range]]] = {
    "ubfc_rppg": {"intra": ((0, 0.72), (0, 0), (0.72, 1))},
    "pure": {"intra": ((0, 0.6), (0, 0), (0.6, 1))},
    "mmpd": {"intra": ((0, 0.7), (0.7, 0.8), (0.8, 1))},
    "buaa_mihr": {"intra": ((0, 0.7), (0, 0), (0.7, 1))},
    "folder": {"intra": ((0, 0.7), (0.7, 0.8), (0.8, 1))},
}
# Trained here and tested on another data set; the other one is used whole.
CROSS: tuple[Range, Range, Range] = ((0, 0.8), (0.8, 1), (0, 0))
WHOLE: tuple[Range, Range, Range] = ((0, 0), (0, 0), (0, 1))


@dataclass(frozen=True, slots=True)
class Split:
    """Subjects to train on, to choose with, and to test on."""

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


def named(dataset: str, name: str, recordings: Sequence[Recording]) -> Split:
    """The split that the literature calls `name`: intra, cross (train .8, valid .2) or whole (test only)."""
    known = {"cross": CROSS, "whole": WHOLE, **RATIOS.get(dataset, {})}
    if name not in known:
        raise UnknownNameError("split", name, known)
    return by_ratio(f"{dataset}/{name}", subjects_of(recordings), *known[name])


def by_ratio(name: str, subjects: Iterable[str], train: Range, valid: Range, test: Range) -> Split:
    """Split subjects in natural order by fractions, cut at ⌊fraction · n⌋ as the toolbox does."""
    ordered = sorted(set(subjects), key=natural_key)

    def part(begin: float, end: float) -> tuple[str, ...]:
        # The small term keeps 0.7 · 10 from being cut to 6 by binary fractions.
        return tuple(ordered[int(begin * len(ordered) + 1e-9) : int(end * len(ordered) + 1e-9)])

    return Split(name, part(*train), part(*valid), part(*test))


def leave_one_out(names: Iterable[str]) -> Iterator[Split]:
    """Each name (a subject, or a data set as a domain) is tested once and trained on in all other splits."""
    ordered = sorted(set(names), key=natural_key)
    for left_out in ordered:
        rest = tuple(n for n in ordered if n != left_out)
        yield Split(f"without {left_out}", rest, (), (left_out,))


def subjects_of(recordings: Iterable[Recording]) -> list[str]:
    return sorted({r.subject for r in recordings}, key=natural_key)


def select(recordings: Iterable[Recording], subjects: Iterable[str]) -> list[Recording]:
    """The recordings of these subjects, in the order they came; an unknown subject is refused."""
    everyone = list(recordings)
    wanted = set(subjects)
    known = {r.subject for r in everyone}
    if missing := sorted(wanted - known, key=natural_key):
        raise UnknownNameError("subject", missing[0], known)
    return [r for r in everyone if r.subject in wanted]
