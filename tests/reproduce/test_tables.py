"""Tables, stamps and files against hand-worked results."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phase_rppg.reproduce import figures, plan_of, report
from phase_rppg.reproduce.budget import budget_of
from phase_rppg.reproduce.cells import compare
from phase_rppg.reproduce.result_tables import condition_grids, main_grid
from phase_rppg.reproduce.runner import Outcome, stamp
from phase_rppg.types import Waveform


def result(errors: list[float], seed: int | None = 0, lights: list[str] | None = None) -> dict[str, Any]:
    """A result whose recordings at 60, 70, 80 … bpm were read with these errors."""
    recordings = []
    for number, error in enumerate(errors):
        truth = 60.0 + 10 * number
        reading = {"bpm": truth + error, "truth_bpm": truth, "snr_db": 1.0, "macc": 0.5}
        both = {"ours": reading, "toolbox": {**reading, "bpm": truth + 2 * error}}
        light = {} if lights is None else {"light": lights[number]}
        recordings.append(
            {"name": f"r{number}", "subject": f"s{number}", "conditions": light, "whole": both,
             "windows": [{"start_s": 0.0, **both}]}
        )  # fmt: skip
    return {"key": "k", "seed": seed, "cpu_s": 1.0, "training": {}, "recordings": recordings}


def outcome(name: str, results: dict[tuple[str, str], list[dict[str, Any]]], **more: Any) -> Outcome:
    plan = plan_of(name)
    facts: dict[str, Any] = {"synthetic": dict.fromkeys(plan.domains, True), **more}
    return Outcome(plan, budget_of("paper"), (0, 1), results=results, **facts)


def row_of(grid: Any, label: str, ours: bool = True) -> tuple[str, ...]:
    return next(row.cells for row in grid.rows if row.label == label and row.ours == ours)


def test_mean_and_deviation_over_seeds_beside_the_paper() -> None:
    # MAE of seed 0 is (1+3)/2 = 2, of seed 1 (3+5)/2 = 4: mean 3, sd √2. RMSE √5 and √17.
    done = outcome("table1", {("phasenet", "pure"): [result([1, -3]), result([3, -5], 1)]})
    grid = main_grid(done, "ours", "whole")
    pure = slice(3, 6)  # the second data set
    assert row_of(grid, "PHASE-Net")[pure] == ("3.00 ± 1.41", "3.18 ± 1.33", "–")
    assert row_of(grid, "PHASE-Net", ours=False)[pure] == ("0.14", "0.35", "0.99")
    assert row_of(main_grid(done, "toolbox", "whole"), "PHASE-Net")[3] == "6.00 ± 2.83"
    assert row_of(grid, "PHASE-Net")[0] == "–"
    assert row_of(grid, "LST-rPPG", ours=False)[:3] == ("0.16", "0.57", "0.99")


def test_the_average_is_of_all_columns_or_not_given() -> None:
    cells = {("phasenet", c): [result([e])] for c, e in (("P+B", 1.0), ("P+U", 2.0), ("B+U", 6.0))}
    assert row_of(main_grid(outcome("table3", cells), "ours", "whole"), "PHASE-Net")[9] == "3.00"
    del cells["phasenet", "B+U"]
    assert row_of(main_grid(outcome("table3", cells), "ours", "whole"), "PHASE-Net")[9] == "–"


def test_the_average_is_in_the_csv_as_it_is_in_the_table() -> None:
    errors = {"P+B": [1.0, 3.0], "P+U": [2.0, 2.0], "B+U": [6.0, 4.0]}  # MAE of two seeds
    cells = {("phasenet", c): [result([e], seed) for seed, e in enumerate(es)] for c, es in errors.items()}
    done = outcome("table3", cells)
    rows = list(csv.DictReader(report.table_csv(done).splitlines()))
    of_average = [row for row in rows if row["column"] == "average"]
    assert {(row["convention"], row["evaluation"]) for row in of_average} == {
        (convention, evaluation) for convention in ("ours", "toolbox") for evaluation in ("whole", "windows")
    }
    for row in of_average:
        grid = main_grid(done, row["convention"], row["evaluation"])
        assert f"{float(row['mae']):.2f}" == row_of(grid, "PHASE-Net")[9]
        assert (row["row"], row["seed"], row["r"], row["mae_low"]) == ("phasenet", "all", "", "")
    ours = next(row for row in of_average if row["convention"] == "ours")
    assert float(ours["mae"]) == 3.0
    assert ours["paper_MAE"] == row_of(main_grid(done, "ours", "whole"), "PHASE-Net", ours=False)[9]
    del done.results["phasenet", "B+U"]
    assert "average" not in {row["column"] for row in csv.DictReader(report.table_csv(done).splitlines())}
    table1 = outcome("table1", {("phasenet", "pure"): [result([1, -3, 2])]})
    assert "average" not in report.table_csv(table1)


def test_a_cell_says_for_how_many_seeds_it_is_defined() -> None:
    # Two recordings have no correlation, four on a line have one of 1.
    cells = {("phasenet", "pure"): [result([1, 1, 1, 1]), result([1, 1], 1)]}
    mae, _, r = row_of(main_grid(outcome("table1", cells), "ours", "whole"), "PHASE-Net")[3:6]
    assert mae == "1.00 ± 0.00"
    assert r == "1.00 (1 of 2 seeds)"
    three = {("phasenet", c): [result([1, 1, 1, 1], seed) for seed in (0, 1)] for c in ("P+B", "P+U", "B+U")}
    assert row_of(main_grid(outcome("table3", three), "ours", "whole"), "PHASE-Net")[11] == "1.00"
    three["phasenet", "P+U"][0] = result([1, 1])
    cells_now = row_of(main_grid(outcome("table3", three), "ours", "whole"), "PHASE-Net")
    assert cells_now[9] == "1.00"
    assert cells_now[11] == "1.00 (1 of 2 seeds)"


def test_lights_are_told_apart() -> None:
    lights = ["led-low", "led-low", "nature", "incandescent"]
    cells = {("phasenet", "mmpd"): [result([1, -3, 4, 0], lights=lights)]}
    done = outcome("fig-lighting", cells)
    assert row_of(main_grid(done, "ours", "whole"), "PHASE-Net") == ("2.00", "–", "0.00", "4.00")
    assert row_of(main_grid(done, "ours", "whole"), "PhysNet", ours=False)[3] == "21.62"
    titles = [grid.title for grid in report.grids(done)]
    assert len(set(titles)) == len(titles), "whole recordings and windows are told apart"
    (by_light,) = condition_grids(done)
    assert [group for group, _ in by_light.groups] == ["incandescent", "led-low", "nature"]


def test_failed_and_missing_cells_are_seen_in_the_table() -> None:
    done = outcome(
        "table1", {}, failed={("phasenet", "pure"): "it broke"}, missing={("phasenet", "mmpd"): "mmpd"}
    )
    cells = row_of(main_grid(done, "ours", "whole"), "PHASE-Net")
    assert cells[3] == "failed"
    assert cells[9] == "no data"
    text = report.markdown(done, report.grids(done), [])
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
def test_the_stamp_says_which_data(synthetic: list[bool], budget: str, words: str) -> None:
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


def test_counts_have_columns_of_their_own() -> None:
    done = replace(outcome("table5", {}), counts={"physnet": (0.768577, 55.6165), "ts-can": (7.5, 96.0)})
    first, second = csv.DictReader(report.table_csv(done).splitlines())
    assert (first["row"], first["m_parameters"], first["g_macs"]) == ("physnet", "0.768577", "55.6165")
    assert (first["paper_M parameters"], first["paper_G MACs"]) == ("0.77", "56.1")
    assert second["paper_G MACs"] == ""
    assert "PhysMamba leaves its Mamba layers out" in report.markdown(done, report.grids(done), [])


@pytest.mark.parametrize(
    ("name", "models", "command"),
    [
        ("table1", [], "table1 --budget paper --seeds 0,1"),
        ("table1", ["pos", "lgi"], "table1 --budget paper --seeds 0,1 --models pos,lgi"),
        ("study", ["phasenet-stream"], "study --budget paper --seeds 0,1 --models phasenet-stream"),
        ("table5", [], "table5 --budget paper"),
    ],
)
def test_a_report_tells_the_command_that_makes_it_again(name: str, models: list[str], command: str) -> None:
    done = Outcome(plan_of(name, models), budget_of("paper"), (0, 1))
    assert report.facts(done)[0] == f"Command: phase reproduce {command}"


def test_latex_says_what_markdown_says() -> None:
    assert report._tex("p_c & 50 % #1 $") == r"p\_c \& 50 \% \#1 \$"
    assert report._tex("1 ± 2 → λ") == r"1 $\pm$ 2 $\to$ $\lambda$"
    assert report._tex(r"{~^\}") == r"\{\textasciitilde{}\textasciicircum{}\textbackslash{}\}"


def test_the_bars_are_of_the_convention_that_they_name() -> None:
    done = outcome("table1", {("phasenet", "pure"): [result([1, -3])]})
    (axes,) = figures.bars(done, ["phasenet"], ["pure"]).axes
    assert axes.get_title().endswith("convention: toolbox)")
    assert [bar.get_height() for bar in axes.patches] == [4.0]  # twice ours, as `result` has it


def test_a_wave_is_compared_whole_and_in_windows() -> None:
    t = np.arange(600) / 30
    valid = np.ones(600, bool)
    true = Waveform(np.sin(2 * np.pi * 1.2 * t), 30.0, 0.0, valid)  # 72 bpm
    read = Waveform(np.sin(2 * np.pi * 1.25 * t + 1), 30.0, 0.0, valid)  # 75 bpm
    found = compare(read, true, 10.0)
    assert found["whole"]["ours"]["bpm"] - found["whole"]["ours"]["truth_bpm"] == pytest.approx(3, abs=0.1)
    assert [window["start_s"] for window in found["windows"]] == [0.0, 10.0]


def test_who_says_nothing_is_not_spared() -> None:
    t = np.arange(300) / 30
    valid = np.ones(300, bool)
    true = Waveform(np.sin(2 * np.pi * 1.2 * t), 30.0, 0.0, valid)
    found = compare(Waveform(np.zeros(300), 30.0, 0.0, valid), true, 10.0)
    for convention in ("ours", "toolbox"):
        assert abs(found["whole"][convention]["bpm"] - found["whole"][convention]["truth_bpm"]) > 10
