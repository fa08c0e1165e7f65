"""Which rows of a table differ by more than chance: paired bootstrap and ranks over the test subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..evaluate import significance
from ..evaluate.significance import PairedDifference, RankTest
from .result_tables import comparisons, label
from .runner import Outcome


@dataclass(frozen=True)
class RowComparison:
    """The comparison of all rows that were tested on the same subjects."""

    best: str  # row with the smallest error
    against_best: tuple[PairedDifference, ...]  # every other row minus the best one
    ranks: RankTest | None
    left_out: tuple[str, ...]  # rows that miss a column of the others


def compare_rows(outcome: Outcome) -> RowComparison | None:
    """Compare the rows over the subjects of all columns; None for fewer than two rows or subjects."""
    readings, left_out = _readings(outcome)
    errors = significance.subject_errors(readings)
    if len(errors) < 2 or next(iter(errors.values())).shape[1] < 2:
        return None
    best = min(errors, key=lambda row: float(errors[row].mean()))
    against = tuple(
        significance.paired_difference((label(row), values), (label(best), errors[best]))
        for row, values in errors.items()
        if row != best
    )
    ranks = significance.rank_test({label(row): values for row, values in errors.items()})
    return RowComparison(label(best), against, ranks, left_out)


def _readings(outcome: Outcome) -> tuple[dict[str, list[list[tuple[str, float]]]], tuple[str, ...]]:
    """Return (subject, |error|) of whole recordings by row and seed, and the rows that miss a column."""
    columns = [
        c for c in outcome.plan.columns if any((row, c) in outcome.results for row in outcome.plan.rows)
    ]
    found: dict[str, list[list[tuple[str, float]]]] = {}
    left_out = []
    for row in outcome.plan.rows:
        per_column = [outcome.results.get((row, column), []) for column in columns]
        if not all(per_column):
            left_out += [label(row)] if any(per_column) else []
            continue
        seeds = min(len(results) for results in per_column)
        found[row] = [
            [
                reading
                for column, results in zip(columns, per_column, strict=True)
                for reading in _errors(results[seed], column, outcome.convention.name)
            ]
            for seed in range(seeds)
        ]
    return found, tuple(left_out)


def _errors(result: Mapping[str, Any], column: str, convention: str) -> list[tuple[str, float]]:
    return [
        (f"{column}/{recording['subject']}", float(np.abs(one.bpm - one.truth_bpm)))
        for recording in result["recordings"]
        for one in comparisons({"recordings": [recording]}, convention, "whole")
    ]


def markdown(found: RowComparison) -> list[str]:
    """Return the comparison as lines of Markdown."""
    lines = [
        f"Smallest error: {found.best}. Differences are paired over subjects; the 95 % interval is from a "
        "bootstrap over subjects and seeds.",
        "",
        f"| row minus {found.best} | bpm | 95 % interval | p | subjects |",
        "|---|---:|---|---:|---:|",
    ]
    for one in found.against_best:
        interval = f"{one.interval.low:.2f} to {one.interval.high:.2f}"
        p = f"{one.p_value:.3f}"
        lines.append(f"| {one.first} | {one.difference:.2f} | {interval} | {p} | {one.subjects} |")
    if found.ranks is not None:
        lines += ["", *rank_lines(found.ranks)]
    if found.left_out:
        lines += ["", f"Left out, because a column is missing: {', '.join(found.left_out)}."]
    return lines


def rank_lines(test: RankTest) -> list[str]:
    """Return the Friedman test in sentences."""
    groups = "; ".join(", ".join(group) for group in test.groups) or "none"
    ranks = ", ".join(f"{n} {r:.2f}" for n, r in zip(test.names, test.ranks, strict=True))
    return [
        f"Friedman test over {test.subjects} subjects: χ² = {test.chi_squared:.2f}, p = {test.p_value:.3g}.",
        f"Mean ranks: {ranks}. Critical difference (Nemenyi, 95 %): {test.critical_difference:.2f}.",
        f"Not told apart: {groups}.",
    ]


def as_json(found: RowComparison | None) -> dict[str, Any] | None:
    """Return the comparison as JSON values."""
    if found is None:
        return None
    return {
        "best": found.best,
        "against_best": [
            {"row": one.first, "difference_bpm": one.difference, "low": one.interval.low,
             "high": one.interval.high, "p_value": one.p_value, "subjects": one.subjects}
            for one in found.against_best
        ],
        "ranks": None if found.ranks is None else significance.ranks_json(found.ranks),
        "left_out": list(found.left_out),
    }  # fmt: skip
