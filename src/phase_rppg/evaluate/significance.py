"""Whether one model is better than another: paired bootstrap, Friedman test and critical difference.

All methods here compare models on the same subjects. A subject has one number per model and seed: its mean
absolute error.

    B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", 1993
    J. Demšar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 2006
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..types import FloatArray
from .metrics import Interval

DRAWS = 2000
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """The error of `first` minus that of `second`, over the same subjects."""

    first: str
    second: str
    difference: float  # bpm; negative: `first` has the smaller error
    interval: Interval
    p_value: float  # two-sided
    subjects: int

    @property
    def better(self) -> str | None:
        """The model with the smaller error; None if the interval contains zero or p is too large."""
        if self.interval.low <= 0 <= self.interval.high or self.p_value > 1 - LEVEL:
            return None
        return self.first if self.difference < 0 else self.second


@dataclass(frozen=True, slots=True)
class RankTest:
    """The Friedman test over subjects with the critical difference of Nemenyi."""

    names: tuple[str, ...]  # best mean rank first
    ranks: tuple[float, ...]
    subjects: int
    chi_squared: float
    p_value: float
    critical_difference: float  # mean ranks that differ by less are not told apart
    groups: tuple[tuple[str, ...], ...]  # largest sets of models that are not told apart


def paired_difference(
    first: tuple[str, FloatArray], second: tuple[str, FloatArray], *, draws: int = DRAWS, seed: int = 0
) -> PairedDifference:
    """Compare two models by a bootstrap over their common subjects; errors are (seeds, subjects).

    Every draw takes subjects with replacement, the same for both models, and seeds of each model. With few
    subjects all draws are alike. The p-value is therefore at least that of the sign test over n subjects that
    agree, 2^(1−n).
    """
    a, b = (np.atleast_2d(np.asarray(errors, float)) for _, errors in (first, second))
    if a.shape[1] != b.shape[1] or a.shape[1] < 2:
        raise ArgumentError("errors", (a.shape, b.shape), "(seeds, subjects) with the same subjects, ≥ 2")
    count = a.shape[1]
    rng = np.random.default_rng(seed)
    found = np.empty(draws)
    for draw in range(draws):
        people = rng.integers(0, count, count)
        of_a, of_b = (rng.integers(0, len(x), len(x)) for x in (a, b))
        found[draw] = a[np.ix_(of_a, people)].mean() - b[np.ix_(of_b, people)].mean()
    low, high = np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    below = (np.count_nonzero(found <= 0) + 1) / (draws + 1)
    above = (np.count_nonzero(found >= 0) + 1) / (draws + 1)
    return PairedDifference(
        first[0], second[0], float(a.mean() - b.mean()), Interval(float(low), float(high), LEVEL),
        min(1.0, max(2 * min(below, above), 2.0 ** (1 - count))), count,
    )  # fmt: skip


def all_pairs(errors: Mapping[str, FloatArray]) -> list[PairedDifference]:
    """Compare every two models; errors are (seeds, subjects) by model."""
    return [paired_difference(one, other) for one, other in itertools.combinations(errors.items(), 2)]


def rank_test(errors: Mapping[str, FloatArray]) -> RankTest | None:
    """Rank the models on every subject; None for fewer than three models or subjects.

    Errors are (seeds, subjects) by model. Equal errors share their mean rank.
    """
    from scipy.stats import chi2, rankdata, studentized_range

    table = np.stack([np.atleast_2d(np.asarray(e, float)).mean(0) for e in errors.values()], 1)  # (n,k)
    count, models = table.shape
    if count < 3 or models < 3:
        return None
    per_subject = rankdata(table, axis=1)  # (n,k)
    ranks = per_subject.mean(0)
    # Friedman's statistic with the correction for ties.
    spread = float(((per_subject - (models + 1) / 2) ** 2).sum())
    statistic = 0.0
    if spread > 0:
        statistic = (models - 1) * count**2 * float(((ranks - (models + 1) / 2) ** 2).sum()) / spread
    q = float(studentized_range.ppf(LEVEL, models, np.inf)) / math.sqrt(2)
    limit = q * math.sqrt(models * (models + 1) / (6 * count))
    order = np.argsort(ranks, kind="stable")
    names = list(errors)
    sorted_names = tuple(names[i] for i in order)
    sorted_ranks = tuple(float(ranks[i]) for i in order)
    return RankTest(
        sorted_names, sorted_ranks, count, statistic, float(chi2.sf(statistic, models - 1)), limit,
        _groups(sorted_names, sorted_ranks, limit),
    )  # fmt: skip


def _groups(names: Sequence[str], ranks: Sequence[float], limit: float) -> tuple[tuple[str, ...], ...]:
    """Return the largest runs of models whose ranks differ by less than the limit, without single models."""
    runs: list[tuple[int, int]] = []
    for first in range(len(names)):
        last = max(i for i in range(first, len(names)) if ranks[i] - ranks[first] < limit)
        if last > first and not any(a <= first and last <= b for a, b in runs):
            runs.append((first, last))
    return tuple(tuple(names[first : last + 1]) for first, last in runs)


def subject_errors(
    readings: Mapping[str, Sequence[Sequence[tuple[str, float]]]],
) -> dict[str, FloatArray]:
    """Return errors (seeds, subjects) by model, on the subjects that all models have.

    `readings` are, by model and seed, (subject, absolute error) of every recording or window.
    """
    per_model: dict[str, list[dict[str, float]]] = {}
    for model, seeds in readings.items():
        for one in seeds:
            grouped: dict[str, list[float]] = {}
            for subject, error in one:
                grouped.setdefault(subject, []).append(error)
            per_model.setdefault(model, []).append({s: float(np.mean(e)) for s, e in grouped.items()})
    everyone = [set(means) for seeds in per_model.values() for means in seeds]
    shared = sorted(set.intersection(*everyone)) if everyone else []
    return {
        model: np.array([[means[subject] for subject in shared] for means in seeds])
        for model, seeds in per_model.items()
    }


def ranks_json(test: RankTest) -> dict[str, Any]:
    """Return a rank test as JSON values."""
    return {
        "ranks": dict(zip(test.names, test.ranks, strict=True)),
        "chi_squared": test.chi_squared,
        "p_value": test.p_value,
        "critical_difference": test.critical_difference,
        "not_told_apart": [list(group) for group in test.groups],
    }
