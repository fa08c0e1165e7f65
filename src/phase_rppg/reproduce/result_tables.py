"""Tables of results, with the numbers of the paper below ours; all output formats use them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..datasets.base import natural_key
from ..evaluate.metrics import Comparison, Score, Summary, summarise_comparisons
from . import printed_numbers
from .plan import LIGHTS, PUBLISHED_ROW, Plan
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
    """One row of a table."""

    label: str
    ours: bool  # False: printed by the paper
    cells: tuple[str, ...]


@dataclass(frozen=True)
class ResultTable:
    """A table whose columns are grouped; each group has one column per metric."""

    title: str
    groups: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[Row, ...]


def comparisons(
    result: Mapping[str, Any], convention: str, evaluation: str, condition: tuple[str, str] | None = None
) -> list[Comparison]:
    """Return the comparisons of a result, optionally of recordings under one condition (kind, value)."""
    found = []
    for recording in result["recordings"]:
        if condition is not None and recording["conditions"].get(condition[0]) != condition[1]:
            continue
        parts = [recording["whole"]] if evaluation == "whole" else recording["windows"]
        found += [Comparison(**part[convention]) for part in parts if part[convention] is not None]
    return found


def summaries(
    results: Sequence[Mapping[str, Any]],
    convention: str,
    evaluation: str,
    condition: tuple[str, str] | None = None,
) -> list[Summary]:
    """Return one summary per seed, without seeds that have no comparison."""
    found = (comparisons(result, convention, evaluation, condition) for result in results)
    return [summarise_comparisons(readings) for readings in found if readings]


def values(per_seed: Sequence[Summary], metric: str) -> list[float]:
    """Return a metric for every seed for which it is defined."""
    scores = (METRICS[metric](summary) for summary in per_seed)
    return [score.value for score in scores if score is not None]


def format_mean(numbers: Sequence[float], seeds: int) -> str:
    """Return the mean and the standard deviation over seeds as text; undefined seeds are mentioned."""
    if not numbers:
        return "–"
    mean = _two_digits(float(np.mean(numbers)))
    if len(numbers) > 1:
        mean += f" ± {np.std(numbers, ddof=1):.2f}"
    return mean + _seed_note(len(numbers), seeds)


def _two_digits(value: float) -> str:
    return f"{value:.2f}".replace("-0.00", "0.00")


def _seed_note(defined: int, seeds: int) -> str:
    return f" ({defined} of {seeds} seeds)" if defined < seeds else ""


def label(name: str) -> str:
    """Return the printed name of a row or column."""
    plain = name.removesuffix(PUBLISHED_ROW)
    return printed_numbers.label(plain) + name[len(plain) :]


def main_table(outcome: Outcome, evaluation: str) -> ResultTable:
    """Return the main table: our rows, each followed by the row of the paper."""
    plan = outcome.plan
    if plan.view == "count":
        return _count_table(outcome)
    if plan.view == "condition":
        return _light_table(outcome, evaluation)
    columns = [*plan.columns, AVERAGE] if plan.average else plan.columns
    rows: list[Row] = []
    for row in _all_rows(plan):
        if row in plan.rows:
            cells = [c for column in columns for c in _cells(outcome, row, column, evaluation)]
            rows.append(Row(label(row), True, tuple(cells)))
        printed = [_printed(plan.name, row, column, m) for column in columns for m in plan.metrics]
        if any(p != "–" for p in printed):
            rows.append(Row(label(row), False, tuple(printed)))
    groups = tuple((_heading(plan, column), plan.metrics) for column in columns)
    return ResultTable(_title(outcome, evaluation), groups, tuple(rows))


def _title(outcome: Outcome, evaluation: str) -> str:
    unit = {"whole": "whole recordings", "windows": f"windows of {outcome.budget.window_s:g} s"}
    return f"{outcome.plan.title} ({unit[evaluation]}, convention: {outcome.convention.name})"


def _heading(plan: Plan, column: str) -> str:
    if plan.name in ("table2", "study"):
        return f"others → {label(column)}"
    return label(column)


def _all_rows(plan: Plan) -> list[str]:
    """Return our rows, with the rows that only the paper has before the last one."""
    paper_only = [row for row in printed_numbers.rows(plan.name) if row not in plan.rows]
    return [*plan.rows[:-1], *paper_only, *plan.rows[-1:]]


def _cells(outcome: Outcome, row: str, column: str, evaluation: str) -> list[str]:
    plan = outcome.plan
    if column == AVERAGE:
        return [_average(outcome, row, metric, evaluation) for metric in plan.metrics]
    if plan.cell(row, column) is None:
        return [""] * len(plan.metrics)
    if (row, column) in outcome.missing:
        return ["no data"] * len(plan.metrics)
    results = outcome.results.get((row, column), [])
    per_seed = summaries(results, outcome.convention.name, evaluation)
    if not per_seed:
        return ["failed" if (row, column) in outcome.failed else "–"] * len(plan.metrics)
    return [format_mean(values(per_seed, metric), len(results)) for metric in plan.metrics]


def average(outcome: Outcome, row: str, metric: str, evaluation: str) -> tuple[float, str] | None:
    """Return the mean over the columns and a note on undefined seeds; None if a column is missing."""
    means, notes = [], []
    for column in outcome.plan.columns:
        results = outcome.results.get((row, column), [])
        numbers = values(summaries(results, outcome.convention.name, evaluation), metric)
        if not numbers:
            return None
        means.append(float(np.mean(numbers)))
        notes.append((len(numbers), _seed_note(len(numbers), len(results))))
    return float(np.mean(means)), min(notes)[1]


def _average(outcome: Outcome, row: str, metric: str, evaluation: str) -> str:
    found = average(outcome, row, metric, evaluation)
    return "–" if found is None else _two_digits(found[0]) + found[1]


def _printed(table: str, row: str, column: str, metric: str) -> str:
    value = printed_numbers.value(table, row, column, metric)
    return "–" if value is None else f"{value:.2f}"


def _count_table(outcome: Outcome) -> ResultTable:
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
    return ResultTable(outcome.plan.title, (("", outcome.plan.metrics),), tuple(rows))


def _light_table(outcome: Outcome, evaluation: str) -> ResultTable:
    rows, convention = [], outcome.convention.name
    for row in outcome.plan.rows:
        results = outcome.results.get((row, "mmpd"), [])
        fallback = _cells(outcome, row, "mmpd", evaluation)[0]
        cells = [
            format_mean(
                values(summaries(results, convention, evaluation, ("light", light)), "MAE"), len(results)
            )
            if results
            else fallback
            for light in LIGHTS
        ]
        rows.append(Row(label(row), True, tuple(cells)))
        printed = tuple(_printed(outcome.plan.name, row, light, "MAE") for light in LIGHTS)
        if any(p != "–" for p in printed):
            rows.append(Row(label(row), False, printed))
    groups = tuple((light, ("MAE",)) for light in LIGHTS)
    return ResultTable(_title(outcome, evaluation), groups, tuple(rows))


def condition_tables(outcome: Outcome) -> list[ResultTable]:
    """Return the mean absolute error by recording condition, for every target with such labels."""
    convention = outcome.convention.name
    if outcome.plan.worlds:
        return []
    tables = []
    for column in outcome.plan.columns:
        results = {
            row: outcome.results[row, column] for row in outcome.plan.rows if (row, column) in outcome.results
        }
        for kind in CONDITIONS:
            present = {
                recording["conditions"][kind]
                for per_seed in results.values()
                for result in per_seed
                for recording in result["recordings"]
                if kind in recording["conditions"]
            }
            if len(present) < 2 and not (present and outcome.plan.view == "condition"):
                continue
            shown = sorted(present, key=natural_key)
            rows = tuple(
                Row(
                    label(row),
                    True,
                    tuple(
                        format_mean(
                            values(summaries(per_seed, convention, "whole", (kind, v)), "MAE"), len(per_seed)
                        )
                        for v in shown
                    ),
                )
                for row, per_seed in results.items()
            )
            title = f"{label(column)} by {kind}, MAE in bpm (whole recordings, convention: {convention})"
            tables.append(ResultTable(title, tuple((v, ("MAE",)) for v in shown), rows))
    return tables
