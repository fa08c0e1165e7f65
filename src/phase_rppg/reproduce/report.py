"""The report of a plan as Markdown, LaTeX, CSV and JSON, each with the origin of its data."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..evaluate import run_report
from ..evaluate.metrics import bootstrap
from ..evaluate.run_report import RunRecord
from ..fileio import write_json, write_text
from . import comparison, printed_numbers
from .comparison import RowComparison
from .plan import LIGHTS, make_plan
from .result_tables import (
    AVERAGE,
    EVALUATIONS,
    METRICS,
    ResultTable,
    average,
    comparisons,
    condition_tables,
    main_table,
    summaries,
)
from .runner import Outcome

_TEX = {"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#", "$": r"\$", "{": r"\{", "}": r"\}",
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$",
        "→": r"$\to$", "λ": r"$\lambda$", "×": r"$\times$", "–": "--", "−": "$-$"}  # fmt: skip


def result_tables(outcome: Outcome) -> list[ResultTable]:
    """Return every table of a plan: whole recordings, windows and conditions, all in one convention."""
    if outcome.plan.view == "count":
        return [main_table(outcome, "whole")]
    return [main_table(outcome, "whole"), main_table(outcome, "windows"), *condition_tables(outcome)]


def write(outcome: Outcome, folder: Path, command: str = "") -> list[Path]:
    """Write the report of a plan and return its files; `command` is the command line of the run."""
    from . import figures

    name = outcome.plan.name
    tables = result_tables(outcome)
    found = None if outcome.plan.view == "count" else comparison.compare_rows(outcome)
    images = figures.draw(outcome, folder, None if found is None else found.ranks)
    text = markdown(outcome, tables, [path.name for path in images])
    if found is not None:
        text += "\n" + "\n".join(["## Differences between rows", "", *comparison.markdown(found)]) + "\n"
    write_text(folder / f"{name}.md", text)
    write_text(folder / "REPORT.md", run_report.markdown(record(outcome, tables, found, command)))
    write_text(folder / f"{name}.tex", latex(outcome, tables))
    write_text(folder / f"{name}.csv", table_csv(outcome))
    write_json(folder / f"{name}.json", document(outcome) | {"comparison": comparison.as_json(found)})
    files = [folder / f"{name}{suffix}" for suffix in (".md", ".tex", ".csv", ".json")]
    return [*files, folder / "REPORT.md", *images]


def record(
    outcome: Outcome, tables: Sequence[ResultTable], found: RowComparison | None, command: str = ""
) -> RunRecord:
    """Return everything that is needed to repeat the run, for REPORT.md."""
    results = [line for table in tables[:1] for line in _markdown_table(table)]
    results += [] if found is None else ["", *comparison.markdown(found)]
    results += [] if outcome.plan.view != "count" else ["", "The numbers are counted, not measured."]
    models = {
        f"{row} → {column}, seed {result['seed']}": f"training {result['training']['key']}"
        for (row, column), per_seed in outcome.results.items()
        for result in per_seed
        if result["training"].get("key")
    }
    return RunRecord(
        f"{outcome.plan.name}: {outcome.plan.title}",
        outcome.stamp,
        command or _command(outcome),
        outcome.convention.describe(),
        results,
        models=models,
        splits=outcome.splits,
        recordings=outcome.recordings,
        notes=[line for line in facts(outcome) if not line.startswith(("Command", "Convention"))],
    )


def facts(outcome: Outcome) -> list[str]:
    """Return the command, the training settings, the data, and the missing or failed cells."""
    plan, budget = outcome.plan, outcome.budget
    lines = [f"Command: {_command(outcome)}"]
    if plan.view != "count":
        lines.append(f"Convention {outcome.convention.describe()}.")
        lines.append(f"Seeds: {', '.join(map(str, outcome.seeds))}; ± is the standard deviation over seeds.")
        clips = {
            result["training"]["clips_seen"]
            for results in outcome.results.values()
            for result in results
            if result["training"]
        }
        if clips:
            number = " or ".join(str(n) for n in sorted(clips))
            length = f" of {budget.frames} frames" if budget.frames else " of its own length"
            lines.append(f"Training: {number} clips{length} for every network; batch size {budget.batch}.")
            rates = sorted(
                {r["training"]["lr"] for rs in outcome.results.values() for r in rs if r["training"]}
            )
            lines.append(f"Learning rate: {' or '.join(f'{rate:g}' for rate in rates)}, {budget.schedule}.")
    if any(len(cell.sources) > 1 and cell.model.trainable for cell in plan.cells):
        shares = {"source": "equal shares", "clip": "shares by length"}
        lines.append(f"Several training sources: {shares[outcome.balance]} (--balance {outcome.balance}).")
    for domain, location in outcome.locations.items():
        if domain in plan.domains:
            kind = "FAKE" if outcome.synthetic[domain] else "real"
            lines.append(f"{printed_numbers.label(domain)}: {kind}, {Path(location).name}")
    if printed_numbers.note(plan.name):
        lines.append(f"Paper: {printed_numbers.note(plan.name)}")
    for (row, column), results in outcome.results.items():
        without = sum(
            r["whole"][outcome.convention.name] is None for result in results for r in result["recordings"]
        )
        if without:
            total = sum(len(result["recordings"]) for result in results)
            lines.append(f"No reference rate: {row} → {column}: {without} of {total} recordings")
    lines += [f"Missing: {row} → {column}: {data}" for (row, column), data in outcome.missing.items()]
    lines += [f"Failed: {row} → {column}: {problem}" for (row, column), problem in outcome.failed.items()]
    return lines


def _command(outcome: Outcome) -> str:
    """Return the command line without the folders of data and results."""
    plan = outcome.plan
    words = ["phase reproduce", plan.name, "--budget", outcome.budget.name]
    if plan.view != "count":
        words += ["--convention", outcome.convention.name]
        words += [word for seed in outcome.seeds for word in ("--seed", str(seed))]
    if outcome.balance != "source":
        words += ["--balance", outcome.balance]
    if plan.rows != make_plan(plan.name).rows:
        named = dict.fromkeys(cell.row for cell in plan.cells if cell.row == cell.model.name)
        words += [word for name in named for word in ("--model", name)]
    return " ".join(words)


def markdown(outcome: Outcome, tables: Sequence[ResultTable], images: Sequence[str]) -> str:
    """Return the report as Markdown; `images` are the file names of the figures."""
    lines = [f"# {outcome.plan.name}: {outcome.plan.title}", "", f"**{outcome.stamp}**", ""]
    lines += [f"- {line}" for line in facts(outcome)]
    for table in tables:
        lines += ["", f"## {table.title}", "", f"**{outcome.stamp}**", "", *_markdown_table(table)]
    lines += [f"\n![{name}]({name})" for name in images]
    return "\n".join(lines) + "\n"


def _markdown_table(table: ResultTable) -> list[str]:
    head = ["", "source"] + [" ".join(filter(None, (g, m))) for g, ms in table.groups for m in ms]
    lines = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(head) - 2)]
    for row in table.rows:
        cells = [row.label, "ours" if row.ours else "paper", *row.cells]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def latex(outcome: Outcome, tables: Sequence[ResultTable]) -> str:
    """Return the tables as LaTeX for booktabs; every caption contains the origin of the data."""
    lines = [f"% {outcome.stamp}", "% needs \\usepackage{booktabs}", *(f"% {f}" for f in facts(outcome))]
    for table in tables:
        count = sum(len(ms) for _, ms in table.groups)
        heads = [rf"\multicolumn{{{len(ms)}}}{{c}}{{{_tex(g)}}}" for g, ms in table.groups]
        lines += [
            "", r"\begin{table}", r"\centering",
            rf"\caption{{\textbf{{{_tex(outcome.stamp)}.}} {_tex(table.title)}}}",
            rf"\begin{{tabular}}{{ll{'r' * count}}}", r"\toprule",
            "& & " + " & ".join(heads) + r" \\",
            "& & " + " & ".join(_tex(m) for _, ms in table.groups for m in ms) + r" \\", r"\midrule",
        ]  # fmt: skip
        for row in table.rows:
            cells = [row.label, "ours" if row.ours else "paper", *row.cells]
            lines.append(" & ".join(map(_tex, cells)) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


def table_csv(outcome: Outcome) -> str:
    """Return CSV text with one line per cell, seed, convention and evaluation.

    A line has standard errors, intervals and the numbers of the paper. Averages over the columns have the
    column "average" and the seed "all".
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
    """Return the CSV lines of all cells."""
    plan, convention = outcome.plan, outcome.convention.name
    rows: list[list[Any]] = []
    lights = LIGHTS if plan.view == "condition" else ()
    for (row, column), results in outcome.results.items():
        for result in results:
            for condition in (None, *(("light", light) for light in lights)):
                name = column if condition is None else condition[1]
                printed = [printed_numbers.value(plan.name, row, name, m) for m in plan.metrics]
                for evaluation in EVALUATIONS:
                    found = summaries([result], convention, evaluation, condition)
                    if not found:
                        continue
                    scores = [get(found[0]) for get in METRICS.values()]
                    numbers = [f"{s.value:.4f}" if s else "" for s in scores]
                    numbers += [f"{s.error:.4f}" if s else "" for s in scores]
                    low_high = _interval(result, convention, evaluation, condition)
                    rows.append(
                        [outcome.stamp, plan.name, row, name, _blank(result["seed"]), convention,
                         evaluation, found[0].count, *numbers, *low_high, *map(_blank, printed)]
                    )  # fmt: skip
    return rows


def _average_records(outcome: Outcome) -> list[list[Any]]:
    """Return the CSV lines of the averages over the columns; standard errors and intervals are empty."""
    plan = outcome.plan
    rows: list[list[Any]] = []
    for row in plan.rows if plan.average else ():
        printed = [_blank(printed_numbers.value(plan.name, row, AVERAGE, m)) for m in plan.metrics]
        for evaluation in EVALUATIONS:
            found = [average(outcome, row, m, evaluation) for m in METRICS]
            if all(value is None for value in found):
                continue
            numbers = ["" if value is None else f"{value[0]:.4f}" for value in found]
            empty = [""] * (len(METRICS) + 2)
            rows.append(
                [outcome.stamp, plan.name, row, AVERAGE, "all", outcome.convention.name, evaluation, "",
                 *numbers, *empty, *printed]
            )  # fmt: skip
    return rows


def _count_records(outcome: Outcome) -> list[list[Any]]:
    """Return the header and one CSV line per network."""
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
    result: dict[str, Any], convention: str, evaluation: str, condition: tuple[str, str] | None
) -> list[str]:
    """Return the 95 % bootstrap interval of the mean absolute error over subjects."""
    errors: list[float] = []
    subjects: list[str] = []
    for recording in result["recordings"]:
        one = comparisons({"recordings": [recording]}, convention, evaluation, condition)
        errors += [abs(c.bpm - c.truth_bpm) for c in one]
        subjects += [recording["subject"]] * len(one)
    found = bootstrap(lambda e: float(np.mean(e)), subjects, errors, draws=200)
    return ["", ""] if found is None else [f"{found.low:.4f}", f"{found.high:.4f}"]


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON document: the tables as text, and every result with its key."""
    return {
        "name": outcome.plan.name,
        "title": outcome.plan.title,
        "stamp": outcome.stamp,
        "budget": outcome.budget.name,
        "convention": outcome.convention.facts(),
        "seeds": list(outcome.seeds),
        "facts": facts(outcome),
        "tables": [
            {
                "title": table.title,
                "columns": [" ".join(filter(None, (g, m))) for g, ms in table.groups for m in ms],
                "rows": [{"row": r.label, "ours": r.ours, "cells": list(r.cells)} for r in table.rows],
            }
            for table in result_tables(outcome)
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
