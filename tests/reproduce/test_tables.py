"""Tables, data stamps and files, compared with hand-computed results."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from phase_rppg.reproduce import comparison, figures, make_plan, names, report
from phase_rppg.reproduce.result_tables import condition_tables, main_table
from phase_rppg.reproduce.runner import Outcome, stamp
from phase_rppg.reproduce.training_settings import get_budget


def result(errors: list[float], seed: int | None = 0, lights: list[str] | None = None) -> dict[str, Any]:
    """Return a result whose recordings at 60, 70, 80 … bpm have these errors."""
    recordings = []
    for number, error in enumerate(errors):
        truth = 60.0 + 10 * number
        reading = {"bpm": truth + error, "truth_bpm": truth, "snr_db": 1.0, "macc": 0.5}
        both = {"ours": reading}
        light = {} if lights is None else {"light": lights[number]}
        recordings.append(
            {"name": f"r{number}", "subject": f"s{number}", "conditions": light, "whole": both,
             "windows": [{"start_s": 0.0, **both}]}
        )  # fmt: skip
    return {"key": "k", "seed": seed, "cpu_s": 1.0, "training": {}, "recordings": recordings}


def outcome(name: str, results: dict[tuple[str, str], list[dict[str, Any]]], **more: Any) -> Outcome:
    plan = make_plan(name)
    facts: dict[str, Any] = {"synthetic": dict.fromkeys(plan.domains, True), **more}
    return Outcome(plan, get_budget("paper"), (0, 1), results=results, **facts)


def row_of(grid: Any, label: str, ours: bool = True) -> tuple[str, ...]:
    return next(row.cells for row in grid.rows if row.label == label and row.ours == ours)


def test_mean_and_deviation_over_seeds_and_the_paper() -> None:
    # MAE of seed 0 is (1+3)/2 = 2, of seed 1 (3+5)/2 = 4: mean 3, sd √2. RMSE √5 and √17.
    done = outcome("table1", {("phasenet", "pure"): [result([1, -3]), result([3, -5], 1)]})
    grid = main_table(done, "whole")
    pure = slice(3, 6)  # the second data set
    assert row_of(grid, "PHASE-Net")[pure] == ("3.00 ± 1.41", "3.18 ± 1.33", "–")
    assert row_of(grid, "PHASE-Net", ours=False)[pure] == ("0.14", "0.35", "0.99")
    assert row_of(grid, "PHASE-Net")[0] == "–"
    assert row_of(grid, "LST-rPPG", ours=False)[:3] == ("0.16", "0.57", "0.99")


def test_the_average_needs_all_columns() -> None:
    cells = {("phasenet", c): [result([e])] for c, e in (("P+B", 1.0), ("P+U", 2.0), ("B+U", 6.0))}
    assert row_of(main_table(outcome("table3", cells), "whole"), "PHASE-Net")[9] == "3.00"
    del cells["phasenet", "B+U"]
    assert row_of(main_table(outcome("table3", cells), "whole"), "PHASE-Net")[9] == "–"


def test_the_csv_has_the_averages_of_the_table() -> None:
    errors = {"P+B": [1.0, 3.0], "P+U": [2.0, 2.0], "B+U": [6.0, 4.0]}  # MAE of two seeds
    cells = {("phasenet", c): [result([e], seed) for seed, e in enumerate(es)] for c, es in errors.items()}
    done = outcome("table3", cells)
    rows = list(csv.DictReader(report.table_csv(done).splitlines()))
    of_average = [row for row in rows if row["column"] == "average"]
    assert [(row["convention"], row["evaluation"]) for row in of_average] == [
        ("ours", "whole"),
        ("ours", "windows"),
    ]
    for row in of_average:
        grid = main_table(done, row["evaluation"])
        assert f"{float(row['mae']):.2f}" == row_of(grid, "PHASE-Net")[9]
        assert (row["row"], row["seed"], row["r"], row["mae_low"]) == ("phasenet", "all", "", "")
    ours = next(row for row in of_average if row["convention"] == "ours")
    assert float(ours["mae"]) == 3.0
    assert ours["paper_MAE"] == row_of(main_table(done, "whole"), "PHASE-Net", ours=False)[9]
    del done.results["phasenet", "B+U"]
    assert "average" not in {row["column"] for row in csv.DictReader(report.table_csv(done).splitlines())}
    table1 = outcome("table1", {("phasenet", "pure"): [result([1, -3, 2])]})
    assert "average" not in report.table_csv(table1)


def test_a_cell_notes_undefined_seeds() -> None:
    # Two recordings have no correlation, four on a line have one of 1.
    cells = {("phasenet", "pure"): [result([1, 1, 1, 1]), result([1, 1], 1)]}
    mae, _, r = row_of(main_table(outcome("table1", cells), "whole"), "PHASE-Net")[3:6]
    assert mae == "1.00 ± 0.00"
    assert r == "1.00 (1 of 2 seeds)"
    three = {("phasenet", c): [result([1, 1, 1, 1], seed) for seed in (0, 1)] for c in ("P+B", "P+U", "B+U")}
    assert row_of(main_table(outcome("table3", three), "whole"), "PHASE-Net")[11] == "1.00"
    three["phasenet", "P+U"][0] = result([1, 1])
    cells_now = row_of(main_table(outcome("table3", three), "whole"), "PHASE-Net")
    assert cells_now[9] == "1.00"
    assert cells_now[11] == "1.00 (1 of 2 seeds)"


def test_lights_have_separate_columns() -> None:
    lights = ["led-low", "led-low", "nature", "incandescent"]
    cells = {("phasenet", "mmpd"): [result([1, -3, 4, 0], lights=lights)]}
    done = outcome("fig-lighting", cells)
    assert row_of(main_table(done, "whole"), "PHASE-Net") == ("2.00", "–", "0.00", "4.00")
    assert row_of(main_table(done, "whole"), "PhysNet", ours=False)[3] == "21.62"
    titles = [grid.title for grid in report.result_tables(done)]
    assert len(set(titles)) == len(titles), "whole recordings and windows are told apart"
    (by_light,) = condition_tables(done)
    assert [group for group, _ in by_light.groups] == ["incandescent", "led-low", "nature"]


def test_failed_and_missing_cells_are_in_the_table() -> None:
    done = outcome(
        "table1", {}, failed={("phasenet", "pure"): "it broke"}, missing={("phasenet", "mmpd"): "mmpd"}
    )
    cells = row_of(main_table(done, "whole"), "PHASE-Net")
    assert cells[3] == "failed"
    assert cells[9] == "no data"
    text = report.markdown(done, report.result_tables(done), [])
    assert "Failed: phasenet → pure: it broke" in text
    assert "Missing: phasenet → mmpd: mmpd" in text


@pytest.mark.parametrize(
    ("synthetic", "budget", "words"),
    [
        ([True, True], "paper", "FAKE DATA: made by the generator"),
        ([True, False], "paper", "FAKE DATA mixed with real data"),
        ([False], "paper", "REAL DATA"),
        ([False], "smoke", "REAL DATA; SMOKE BUDGET: nothing was learnt"),
        ([], "paper", "NO DATA"),
    ],
)
def test_the_stamp_states_the_data(synthetic: list[bool], budget: str, words: str) -> None:
    assert stamp(synthetic, budget).startswith(words)
    assert ("REAL" in stamp(synthetic, budget)) == (bool(synthetic) and not any(synthetic))


def test_the_stamp_is_in_every_file(tmp_path: Path) -> None:
    done = outcome("table1", {("phasenet", "pure"): [result([1, -3, 2])]})
    files = report.write(done, tmp_path)
    assert {".md", ".tex", ".csv", ".json", ".png"} == {path.suffix for path in files}
    for path in files:
        if path.suffix != ".png":
            assert done.stamp.split(":")[0] in path.read_text(encoding="utf-8")
    tex = (tmp_path / "table1.tex").read_text(encoding="utf-8")
    assert tex.count(r"\caption{\textbf{FAKE DATA") == tex.count(r"\begin{tabular}") > 1
    rows = list(csv.DictReader((tmp_path / "table1.csv").read_text(encoding="utf-8").splitlines()))
    ours = next(r for r in rows if r["convention"] == "ours" and r["evaluation"] == "whole")
    assert float(ours["mae"]) == 2.0
    assert ours["paper_MAE"] == "0.14"
    assert float(ours["mae_low"]) <= 2.0 <= float(ours["mae_high"])
    assert all(row["stamp"].startswith("FAKE DATA") for row in rows)


def test_counts_have_their_own_columns() -> None:
    done = replace(outcome("table5", {}), counts={"physnet": (0.768577, 55.6165), "ts-can": (7.5, 96.0)})
    first, second = csv.DictReader(report.table_csv(done).splitlines())
    assert (first["row"], first["m_parameters"], first["g_macs"]) == ("physnet", "0.768577", "55.6165")
    assert (first["paper_M parameters"], first["paper_G MACs"]) == ("0.77", "56.1")
    assert second["paper_G MACs"] == ""
    assert "The 0.56 M of PhysMamba exclude its Mamba layers" in report.markdown(
        done, report.result_tables(done), []
    )


@pytest.mark.parametrize(
    ("name", "models", "command"),
    [
        ("table1", [], "table1 --budget paper --convention ours --seed 0 --seed 1"),
        (
            "table1",
            ["pos", "lgi"],
            "table1 --budget paper --convention ours --seed 0 --seed 1 --model pos --model lgi",
        ),
        (
            "study",
            ["phasenet-stream"],
            "study --budget paper --convention ours --seed 0 --seed 1 --model phasenet-stream",
        ),
        ("table5", [], "table5 --budget paper"),
    ],
)
def test_a_report_contains_its_command(name: str, models: list[str], command: str) -> None:
    done = Outcome(make_plan(name, models), get_budget("paper"), (0, 1))
    assert report.facts(done)[0] == f"Command: phase reproduce {command}"


def check_latex(text: str) -> int:
    """Parse LaTeX tables: braces, environments, columns of every row, and no letter that needs an escape."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    depth = 0
    for letter in re.sub(r"\\[{}]", "", body):
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    stack = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if kind == "begin":
            stack.append(name)
        else:
            assert stack.pop() == name
    assert not stack
    assert not re.search(r"(?<!\\)[#_~^]", body), "a special letter without its escape"
    assert re.sub(r"(?<!\\)\$[^$]*\$", "", body).isascii(), "a letter that pdflatex does not know"
    assert len(re.findall(r"(?<!\\)\$", body)) % 2 == 0
    tables = re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", body, re.DOTALL)
    for columns, content in tables:
        rows = [row for row in re.split(r"\\\\", content) if "&" in row]
        assert rows
        for row in rows:
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            assert len(re.findall(r"(?<!\\)&", row)) + 1 + sum(spans) == len(columns), row
    return len(tables)


@pytest.mark.parametrize("name", names())
def test_the_latex_of_every_table_is_valid(name: str, tmp_path: Path) -> None:
    """A parser checks it; a TeX system compiles it where there is one."""
    plan = make_plan(name)
    cells = {(c.row, c.column): [result([1, -3, 2], s) for s in (0, 1)] for c in plan.cells}
    counts = dict.fromkeys(plan.rows, (0.29, 16.2)) if plan.view == "count" else {}
    done = replace(outcome(name, {} if counts else cells), counts=counts)
    text = report.latex(done, report.result_tables(done))
    assert check_latex(text) == len(report.result_tables(done))
    engine = next(filter(None, map(shutil.which, ("tectonic", "pdflatex", "xelatex", "lualatex"))), None)
    if engine is not None:
        page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}" + text + "\\end{document}"
        (tmp_path / "t.tex").write_text(page, encoding="utf-8")
        subprocess.run([engine, "t.tex"], cwd=tmp_path, check=True, capture_output=True, timeout=120)


@pytest.mark.parametrize(
    "broken", [r"\begin{tabular}{ll}a & b & c \\\end{tabular}", "a_b", "{", r"\begin{table}", "é", "$"]
)
def test_the_parser_finds_faults(broken: str) -> None:
    with pytest.raises(AssertionError):
        check_latex(broken)


def test_waveforms_of_the_papers_subjects_come_first() -> None:
    def drawn(*subjects: str) -> list[int]:
        return figures.drawn_recordings([{"subject": subject} for subject in subjects])

    assert drawn("subject1", "subject9", "subject22", "subject30") == [2, 1]
    assert drawn("01", "09", "10") == [1, 0]
    assert drawn("a", "b", "c") == [0, 1]
    assert drawn("a") == [0]


def test_the_ablation_of_zas_has_two_panels() -> None:
    plan = make_plan("ablation-zas")
    cells = {(row, "ubfc_rppg"): [result([n + 1.0, -n - 1.0])] for n, row in enumerate(plan.rows)}
    blocks, channels = figures.zas_panels(outcome("ablation-zas", cells)).axes
    assert [tick.get_text() for tick in blocks.get_xticklabels()] == ["1", "2", "4", "8"]
    assert [tick.get_text() for tick in channels.get_xticklabels()] == ["1", "2", "3", "4"]
    assert blocks.lines[0].get_ydata().tolist() == [1, 2, 3, 4]
    assert channels.lines[0].get_ydata().tolist() == [5, 6, 7, 8]
    for panel in (blocks, channels):
        assert panel.get_ylim()[0] == 0
        assert panel.get_ylim()[1] > 8 * 1.05  # the largest marker is not cut off


def test_rows_are_compared_over_the_subjects_of_all_columns() -> None:
    cells = {
        (row, column): [result([error, -error, error])]
        for row, error in (("green", 9.0), ("pos", 4.0), ("phasenet", 1.0))
        for column in ("pure", "mmpd")
    }
    cells["chrom", "pure"] = [result([1.0, 1.0, 1.0])]
    found = comparison.compare_rows(outcome("table1", cells))
    assert found is not None
    assert found.best == "PHASE-Net"
    assert {one.first: one.difference for one in found.against_best} == pytest.approx(
        {"Green": 8.0, "POS": 3.0}
    )
    assert {one.subjects for one in found.against_best} == {6}
    assert found.left_out == ("CHROM",)
    assert found.ranks is not None
    assert found.ranks.names == ("PHASE-Net", "POS", "Green")
    text = report.run_report.markdown(report.record(outcome("table1", cells), [], found, "phase reproduce x"))
    assert "    phase reproduce x" in text
    assert "| Green | 8.00 | 8.00 to 8.00 |" in text


def test_latex_equals_markdown() -> None:
    assert report._tex("p_c & 50 % #1 $") == r"p\_c \& 50 \% \#1 \$"
    assert report._tex("1 ± 2 → λ") == r"1 $\pm$ 2 $\to$ $\lambda$"
    assert report._tex(r"{~^\}") == r"\{\textasciitilde{}\textasciicircum{}\textbackslash{}\}"


def test_the_bars_use_the_convention_in_the_title() -> None:
    done = outcome("table1", {("phasenet", "pure"): [result([1, -3])]})
    (axes,) = figures.bars(done, ["phasenet"], ["pure"]).axes
    assert axes.get_title().endswith("convention: ours)")
    assert [bar.get_height() for bar in axes.patches] == [2.0]
