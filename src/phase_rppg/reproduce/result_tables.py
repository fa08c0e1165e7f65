"""From results to rows of text: ours and the paper's, in one shape that every form of output shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..datasets.base import natural_key
from ..evaluate.metrics import Comparison, Score, Summary, summarise_comparisons
from . import printed_numbers
from .plan import LIGHTS, Plan
from .runner import Outcome

EVALUATIONS = ("whole", "windows")
CONDITIONS = ("light", "motion", "skin type", "exercise", "lux")
METRICS: dict[str, Callable[[Summary], Score | None]] = {
    "MAE": lambda s: s.mae,
    "RMSE": lambda s: s.rmse,
    "MAPE": lambda s: s.mape,
    "R": lambda s: s.pearson,
    "within 5": lambda s: s.within,
    "SNR": lambda s: s.snr_db,
    "MACC": lambda s: s.macc,
}
AVERAGE = "average"


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    label: str
    ours: bool  # False: printed by the paper
    cells: tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table: groups of columns, each with its metrics."""

    title: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Row, ...]


def comparisons(
    result: Mapping[str, Any], convention: str, evaluation: str, keep: tuple[str, str] | None = None
) -> list[Comparison]:
    """All readings of a result (of recordings under the condition `keep`) that there are."""
    found = []
    for recording in result["recordings"]:
        if keep is not None and recording["conditions"].get(keep[0]) != keep[1]:
            continue
        parts = [recording["whole"]] if evaluation == "whole" else recording["windows"]
        found += [Comparison(**part[convention]) for part in parts if part[convention] is not None]
    return found


def summaries(
    results: Sequence[Mapping[str, Any]],
    convention: str,
    evaluation: str,
    keep: tuple[str, str] | None = None,
) -> list[Summary]:
    """One summary per seed; seeds without any reading are left out."""
    found = (comparisons(result, convention, evaluation, keep) for result in results)
    return [summarise_comparisons(readings) for readings in found if readings]


def values(every: Sequence[Summary], metric: str) -> list[float]:
    """A metric of every seed for which it is defined."""
    scores = (METRICS[metric](summary) for summary in every)
    return [score.value for score in scores if score is not None]


def spread(numbers: Sequence[float], seeds: int) -> str:
    """Mean, ± the standard deviation over seeds if there are several, and for how many of them it holds."""
    if not numbers:
        return "–"
    mean = _two_digits(float(np.mean(numbers)))
    if len(numbers) > 1:
        mean += f" ± {np.std(numbers, ddof=1):.2f}"
    return mean + _for_how_many(len(numbers), seeds)


def _two_digits(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00")


def _for_how_many(defined: int, seeds: int) -> str:
    return f" ({defined} of {seeds} seeds)" if defined < seeds else ""


def label(name: str) -> str:
    return printed_numbers.label(name)


def main_grid(outcome: Outcome, convention: str, evaluation: str) -> Grid:
    """The table itself: ours, and under each row what the paper prints."""
    plan = outcome.plan
    if plan.view == "count":
        return _count_grid(outcome)
    if plan.view == "condition":
        return _light_grid(outcome, convention, evaluation)
    columns = [*plan.columns, AVERAGE] if plan.average else plan.columns
    rows: list[Row] = []
    for row in _all_rows(plan):
        if row in plan.rows:
            cells = [c for column in columns for c in _cells(outcome, row, column, convention, evaluation)]
            rows.append(Row(label(row), True, tuple(cells)))
        printed = [_printed(plan.name, row, column, m) for column in columns for m in plan.metrics]
        if any(p != "–" for p in printed):
            rows.append(Row(label(row), False, tuple(printed)))
    groups = tuple((_heading(plan, column), plan.metrics) for column in columns)
    return Grid(_title(outcome, convention, evaluation), groups, tuple(rows))


def _title(outcome: Outcome, convention: str, evaluation: str) -> str:
    words = {"whole": "whole recordings", "windows": f"windows of {outcome.budget.window_s:g} s"}
    return f"{outcome.plan.title} ({words[evaluation]}, convention: {convention})"


def _heading(plan: Plan, column: str) -> str:
    if plan.name in ("table2", "study"):
        return f"others → {label(column)}"
    return label(column)


def _all_rows(plan: Plan) -> list[str]:
    """Our rows, and before the last one those that only the paper has."""
    only = [row for row in printed_numbers.rows(plan.name) if row not in plan.rows]
    return [*plan.rows[:-1], *only, *plan.rows[-1:]]


def _cells(outcome: Outcome, row: str, column: str, convention: str, evaluation: str) -> list[str]:
    plan = outcome.plan
    if column == AVERAGE:
        return [_average(outcome, row, metric, convention, evaluation) for metric in plan.metrics]
    if plan.cell(row, column) is None:
        return [""] * len(plan.metrics)
    if (row, column) in outcome.missing:
        return ["no data"] * len(plan.metrics)
    results = outcome.results.get((row, column), [])
    every = summaries(results, convention, evaluation)
    if not every:
        return ["failed" if (row, column) in outcome.failed else "–"] * len(plan.metrics)
    return [spread(values(every, metric), len(results)) for metric in plan.metrics]


def average(
    outcome: Outcome, row: str, metric: str, convention: str, evaluation: str
) -> tuple[float, str] | None:
    """The mean over the columns, if none is missing, and for how many seeds its poorest column holds."""
    means, notes = [], []
    for column in outcome.plan.columns:
        results = outcome.results.get((row, column), [])
        numbers = values(summaries(results, convention, evaluation), metric)
        if not numbers:
            return None
        means.append(float(np.mean(numbers)))
        notes.append((len(numbers), _for_how_many(len(numbers), len(results))))
    return float(np.mean(means)), min(notes)[1]


def _average(outcome: Outcome, row: str, metric: str, convention: str, evaluation: str) -> str:
    found = average(outcome, row, metric, convention, evaluation)
    return "–" if found is None else _two_digits(found[0]) + found[1]


def _printed(table: str, row: str, column: str, metric: str) -> str:
    value = printed_numbers.value(table, row, column, metric)
    return "–" if value is None else f"{value:.2f}"


def _count_grid(outcome: Outcome) -> Grid:
    rows = []
    for row in outcome.plan.rows:
        if row in outcome.counts:
            parameters, macs = outcome.counts[row]
            rows.append(Row(label(row), True, (f"{parameters:.2f}", f"{macs:.1f}")))
        else:
            rows.append(Row(label(row), True, ("failed", "failed")))
        printed = [printed_numbers.value("table5", row, "clip", m) for m in outcome.plan.metrics]
        if printed[0] is not None:
            rows.append(Row(label(row), False, (f"{printed[0]:.2f}", f"{printed[1]:.1f}")))
    return Grid(outcome.plan.title, (("", outcome.plan.metrics),), tuple(rows))


def _light_grid(outcome: Outcome, convention: str, evaluation: str) -> Grid:
    rows = []
    for row in outcome.plan.rows:
        results = outcome.results.get((row, "mmpd"), [])
        fallback = _cells(outcome, row, "mmpd", convention, evaluation)[0]
        cells = [
            spread(values(summaries(results, convention, evaluation, ("light", light)), "MAE"), len(results))
            if results
            else fallback
            for light in LIGHTS
        ]
        rows.append(Row(label(row), True, tuple(cells)))
        printed = tuple(_printed(outcome.plan.name, row, light, "MAE") for light in LIGHTS)
        if any(p != "–" for p in printed):
            rows.append(Row(label(row), False, printed))
    groups = tuple((light, ("MAE",)) for light in LIGHTS)
    return Grid(_title(outcome, convention, evaluation), groups, tuple(rows))


def condition_grids(outcome: Outcome, convention: str = "ours") -> list[Grid]:
    """Mean absolute error by light, motion, skin type, exercise …, for every target that has such labels."""
    if outcome.plan.worlds:
        return []
    grids = []
    for column in outcome.plan.columns:
        results = {
            row: outcome.results[row, column] for row in outcome.plan.rows if (row, column) in outcome.results
        }
        for kind in CONDITIONS:
            named = {
                recording["conditions"][kind]
                for every in results.values()
                for result in every
                for recording in result["recordings"]
                if kind in recording["conditions"]
            }
            if len(named) < 2 and not (named and outcome.plan.view == "condition"):
                continue
            shown = sorted(named, key=natural_key)
            rows = tuple(
                Row(
                    label(row),
                    True,
                    tuple(
                        spread(values(summaries(every, convention, "whole", (kind, v)), "MAE"), len(every))
                        for v in shown
                    ),
                )
                for row, every in results.items()
            )
            title = f"{label(column)} by {kind}, MAE in bpm (whole recordings, convention: {convention})"
            grids.append(Grid(title, tuple((v, ("MAE",)) for v in shown), rows))
    return grids
