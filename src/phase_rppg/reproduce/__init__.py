"""The research bench: every table and figure of the paper as a plan of cells that can be stopped and resumed.

    plan.py      what is trained on what and tested on what: pure data
    paper.py     the numbers that the paper prints (paper.toml)
    budget.py    how much is trained, and at which sizes
    domains.py   data sets that were found and prepared, or worlds of the generator
    work.py      one cell: train, read the test recordings, compare
    store.py     results by the hash of what made them
    runner.py    all cells of a plan, failures named, the rest finished
    grid.py, report.py, pictures.py   tables and plots, each with the stamp of its data

`phase reproduce table1 --data ROOT --out DIR` is the way in.
"""

from .plan import Cell, Model, Plan, names, plan_of
from .runner import Outcome, run

__all__ = ["Cell", "Model", "Outcome", "Plan", "names", "plan_of", "run"]
