"""Reproduction of the paper's tables and figures, as plans of cells that can be interrupted and resumed.

    plan.py             which network is trained and tested on which data sets
    printed_numbers.py  the numbers that the paper prints (printed_numbers.toml)
    training_settings.py  training settings: the paper's, or a short test
    domains.py          data sets and synthetic worlds, prepared for training and testing
    cells.py            one cell: train, predict the test recordings, compare with the reference
    store.py            finished results, stored by the hash of their inputs
    runner.py           all cells of a plan; a failed cell does not stop the others
    result_tables.py    results as tables
    report.py           tables as Markdown, LaTeX, CSV and JSON
    figures.py          plots

The command is `phase reproduce table1 --data ROOT --out DIR`.
"""

from .plan import Cell, Model, Plan, make_plan, names
from .runner import Outcome, run

__all__ = ["Cell", "Model", "Outcome", "Plan", "make_plan", "names", "run"]
