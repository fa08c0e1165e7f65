"""A finished plan as Markdown, LaTeX, CSV and JSON; each says at its top which data it comes from."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluate.metrics import CONVENTIONS, bootstrap
from ..fileio import write_json, write_text
from . import printed_numbers
from .plan import LIGHTS, plan_of
from .result_tables import (
    AVERAGE,
    EVALUATIONS,
    METRICS,
    Grid,
    average,
    comparisons,
    condition_grids,
    main_grid,
    summaries,
)
from .runner import Outcome

_TEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
        "→": r"$\to$", "λ": r"$\lambda$", "×": r"$\times$", "–": "--", "−": "$-$"}  # fmt: skip


def grids(outcome: Outcome) -> list[Grid]:
    """Every table of a plan: whole recordings in both conventions, windows, conditions."""
    if outcome.plan.view == "count":
        return [main_grid(outcome, "ours", "whole")]
    found = [main_grid(outcome, "toolbox", "whole"), main_grid(outcome, "ours", "whole")]
    return [*found, main_grid(outcome, "ours", "windows"), *condition_grids(outcome)]


def write(outcome: Outcome, folder: Path) -> list[Path]:
    """Write the report of a plan; returns the files."""
    from . import figures

    name = outcome.plan.name
    tables = grids(outcome)
    pictured = figures.draw(outcome, folder)
    write_text(folder / f"{name}.md", markdown(outcome, tables, [path.name for path in pictured]))
    write_text(folder / f"{name}.tex", latex(outcome, tables))
    write_text(folder / f"{name}.csv", table_csv(outcome))
    write_json(folder / f"{name}.json", document(outcome))
    return [folder / f"{name}{suffix}" for suffix in (".md", ".tex", ".csv", ".json")] + pictured


def facts(outcome: Outcome) -> list[str]:
    """What a reader has to know besides the numbers."""
    plan, budget = outcome.plan, outcome.budget
    lines = [f"Command: {_command(outcome)}"]
    if plan.view != "count":
        lines.append(f"Seeds: {', '.join(map(str, outcome.seeds))}; ± is the standard deviation over seeds.")
        clips = {
            result["training"]["clips_seen"]
            for results in outcome.results.values()
            for result in results
            if result["training"]
        }
        if clips:
            seen = " or ".join(str(n) for n in sorted(clips))
            length = f" of {budget.frames} frames" if budget.frames else " of its own length"
            lines.append(f"Training: every network sees {seen} clips{length}; batch {budget.batch}.")
            rates = sorted(
                {r["training"]["lr"] for rs in outcome.results.values() for r in rs if r["training"]}
            )
            lines.append(f"Learning rate: {' or '.join(f'{rate:g}' for rate in rates)}, {budget.schedule}.")
    for domain, place in outcome.places.items():
        if domain in plan.domains:
            kind = "FAKE" if outcome.synthetic[domain] else "real"
            lines.append(f"{printed_numbers.label(domain)}: {kind}, {Path(place).name}")
    if printed_numbers.note(plan.name):
        lines.append(f"Paper: {printed_numbers.note(plan.name)}")
    for (row, column), results in outcome.results.items():
        silent = sum(r["whole"]["ours"] is None for result in results for r in result["recordings"])
        if silent:
            of = sum(len(result["recordings"]) for result in results)
            lines.append(f"No reference rate: {row} → {column}: {silent} of {of} recordings")
    lines += [f"Missing: {row} → {column}: {why}" for (row, column), why in outcome.missing.items()]
    lines += [f"Failed: {row} → {column}: {why}" for (row, column), why in outcome.failed.items()]
    return lines


def _command(outcome: Outcome) -> str:
    """What was asked for, without where data lie and results go."""
    plan = outcome.plan
    words = ["phase reproduce", plan.name, "--budget", outcome.budget.name]
    if plan.view != "count":
        words += ["--seeds", ",".join(map(str, outcome.seeds))]
    if plan.rows != plan_of(plan.name).rows:
        named = dict.fromkeys(cell.row for cell in plan.cells if cell.row == cell.model.name)
        words += ["--models", ",".join(named)]
    return " ".join(words)


def markdown(outcome: Outcome, tables: Sequence[Grid], pictures: Sequence[str]) -> str:
    lines = [f"# {outcome.plan.name}: {outcome.plan.title}", "", f"**{outcome.stamp}**", ""]
    lines += [f"- {line}" for line in facts(outcome)]
    for grid in tables:
        head = ["", "from"] + [" ".join(filter(None, (g, m))) for g, ms in grid.groups for m in ms]
        lines += ["", f"## {grid.title}", "", f"**{outcome.stamp}**", ""]
        lines += ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
        for row in grid.rows:
            cells = [row.label, "ours" if row.ours else "paper", *row.cells]
            lines.append("| " + " | ".join(cells) + " |")
    lines += [f"\n![{name}]({name})" for name in pictures]
    return "\n".join(lines) + "\n"


def latex(outcome: Outcome, tables: Sequence[Grid]) -> str:
    """Tables for booktabs; the stamp is in every caption."""
    lines = [f"% {outcome.stamp}", "% needs \\usepackage{booktabs}", *(f"% {f}" for f in facts(outcome))]
    for grid in tables:
        count = sum(len(ms) for _, ms in grid.groups)
        heads = [rf"\multicolumn{{{len(ms)}}}{{c}}{{{_tex(g)}}}" for g, ms in grid.groups]
        lines += [
            "", r"\begin{table}", r"\centering",
            rf"\caption{{\textbf{{{_tex(outcome.stamp)}.}} {_tex(grid.title)}}}",
            rf"\begin{{tabular}}{{ll{'r' * count}}}", r"\toprule",
            "& & " + " & ".join(heads) + r" \\",
            "& & " + " & ".join(_tex(m) for _, ms in grid.groups for m in ms) + r" \\", r"\midrule",
        ]  # fmt: skip
        for row in grid.rows:
            cells = [row.label, "ours" if row.ours else "paper", *row.cells]
            lines.append(" & ".join(map(_tex, cells)) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def table_csv(outcome: Outcome) -> str:
    """One line per cell, seed, convention and evaluation, with standard errors, intervals and the paper.

    Where the table has an average over its columns, it is a line of the column "average" and the seed "all".
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if outcome.plan.view == "count":
        writer.writerows(_count_records(outcome))
        return text.getvalue()
    names = [m.lower().replace(" ", "_") for m in METRICS]
    errors = [f"{name}_error" for name in names]
    head = ["stamp", "table", "row", "column", "seed", "convention", "evaluation", "count", *names, *errors]
    writer.writerow([*head, "mae_low", "mae_high", *(f"paper_{m}" for m in outcome.plan.metrics)])
    writer.writerows(records(outcome))
    writer.writerows(_average_records(outcome))
    return text.getvalue()


def records(outcome: Outcome) -> list[list[Any]]:
    plan = outcome.plan
    rows: list[list[Any]] = []
    lights = LIGHTS if plan.view == "condition" else ()
    for (row, column), results in outcome.results.items():
        for result in results:
            for keep in (None, *(("light", light) for light in lights)):
                place = column if keep is None else keep[1]
                printed = [printed_numbers.value(plan.name, row, place, m) for m in plan.metrics]
                for convention in CONVENTIONS:
                    for evaluation in EVALUATIONS:
                        found = summaries([result], convention, evaluation, keep)
                        if not found:
                            continue
                        scores = [get(found[0]) for get in METRICS.values()]
                        numbers = [f"{s.value:.4f}" if s else "" for s in scores]
                        numbers += [f"{s.error:.4f}" if s else "" for s in scores]
                        low_high = _interval(result, convention, evaluation, keep)
                        rows.append(
                            [outcome.stamp, plan.name, row, place, _blank(result["seed"]), convention,
                             evaluation, found[0].count, *numbers, *low_high, *map(_blank, printed)]
                        )  # fmt: skip
    return rows


def _average_records(outcome: Outcome) -> list[list[Any]]:
    """The averages over the columns as the table shows them; standard errors and intervals are left empty."""
    plan = outcome.plan
    rows: list[list[Any]] = []
    for row in plan.rows if plan.average else ():
        printed = [_blank(printed_numbers.value(plan.name, row, AVERAGE, m)) for m in plan.metrics]
        for convention in CONVENTIONS:
            for evaluation in EVALUATIONS:
                found = [average(outcome, row, m, convention, evaluation) for m in METRICS]
                if all(value is None for value in found):
                    continue
                numbers = ["" if value is None else f"{value[0]:.4f}" for value in found]
                empty = [""] * (len(METRICS) + 2)
                rows.append(
                    [outcome.stamp, plan.name, row, AVERAGE, "all", convention, evaluation, "",
                     *numbers, *empty, *printed]
                )  # fmt: skip
    return rows


def _count_records(outcome: Outcome) -> list[list[Any]]:
    """A head and one line per network."""
    plan = outcome.plan
    rows: list[list[Any]] = [
        ["stamp", "table", "row", "m_parameters", "g_macs", *(f"paper_{m}" for m in plan.metrics)]
    ]
    for row, (parameters, macs) in outcome.counts.items():
        printed = [_blank(printed_numbers.value(plan.name, row, "clip", m)) for m in plan.metrics]
        rows.append([outcome.stamp, plan.name, row, f"{parameters:.6f}", f"{macs:.4f}", *printed])
    return rows


def _blank(value: Any) -> Any:
    return "" if value is None else value


def _interval(
    result: dict[str, Any], convention: str, evaluation: str, keep: tuple[str, str] | None
) -> list[str]:
    """95 % of the mean absolute error when subjects are drawn anew."""
    errors: list[float] = []
    subjects: list[str] = []
    for recording in result["recordings"]:
        one = comparisons({"recordings": [recording]}, convention, evaluation, keep)
        errors += [abs(c.bpm - c.truth_bpm) for c in one]
        subjects += [recording["subject"]] * len(one)
    found = bootstrap(lambda e: float(np.mean(e)), subjects, errors, draws=200)
    return ["", ""] if found is None else [f"{found.low:.4f}", f"{found.high:.4f}"]


def document(outcome: Outcome) -> dict[str, Any]:
    """Everything as JSON: the tables as shown, and every result with its key."""
    return {
        "name": outcome.plan.name,
        "title": outcome.plan.title,
        "stamp": outcome.stamp,
        "budget": outcome.budget.name,
        "seeds": list(outcome.seeds),
        "facts": facts(outcome),
        "tables": [
            {
                "title": grid.title,
                "columns": [" ".join(filter(None, (g, m))) for g, ms in grid.groups for m in ms],
                "rows": [{"row": r.label, "ours": r.ours, "cells": list(r.cells)} for r in grid.rows],
            }
            for grid in grids(outcome)
        ],
        "cells": [
            {"row": row, "column": column, "key": result["key"], "seed": result["seed"],
             "cpu_s": result["cpu_s"], "training": result["training"],
             "recordings": [
                 {k: r[k] for k in ("name", "subject", "whole")} for r in result["recordings"]
             ]}
            for (row, column), results in outcome.results.items() for result in results
        ],
        "failed": [{"row": r, "column": c, "problem": why} for (r, c), why in outcome.failed.items()],
        "missing": [{"row": r, "column": c, "data": why} for (r, c), why in outcome.missing.items()],
    }  # fmt: skip
