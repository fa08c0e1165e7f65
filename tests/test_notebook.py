"""The notebook runs from its first cell to its last, is stored without outputs, and is a page of the site."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOK: dict[str, Any] = json.loads((ROOT / "examples" / "first_pulse.ipynb").read_text(encoding="utf-8"))
CODE = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
# Runs after the cells, with their names.
CHECKS = """
assert abs(face.summary.bpm - true_bpm) < 2, (face.summary, true_bpm)
assert abs(np.nanmedian(face.ibi_s) - np.median(true_ibi_s)) < 0.02
assert abs(len(face.beats_s) - len(true_ibi_s) - 1) <= 2
assert list(windows.columns[:3]) == ["start_s", "end_s", "bpm"] and len(windows) >= 2
assert list(beats.columns) == ["t_s", "ibi_s"] and len(beats) == len(face.beats_s)
assert len(figure.axes) == 1 and len(overview.axes) == 3
assert still.summary.reason == "NO_PULSE", still.summary
"""


def test_the_notebook_is_stored_without_outputs_and_places() -> None:
    assert len(CODE) >= 5
    assert [cell for cell in CODE if cell["outputs"] or cell["execution_count"] is not None] == []
    assert "/home/" not in json.dumps(NOTEBOOK)
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)


@pytest.mark.slow
def test_the_cells_run_in_order(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    program = "\n".join("".join(cell["source"]) for cell in CODE) + CHECKS
    (tmp_path / "cells.py").write_text(program, encoding="utf-8")
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "cells.py"], cwd=tmp_path, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "no pulse that can be trusted" in done.stdout
