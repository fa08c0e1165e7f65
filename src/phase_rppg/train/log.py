"""The CSV log of a run. A resumed run removes the rows after its checkpoint and writes them again."""

from __future__ import annotations

import csv
from pathlib import Path

from ..errors import OutputError
from ..fileio import write_text

COLUMNS = (
    "step", "epoch", "clips", "lr", "loss", "pearson", "auxiliary", "grad_norm", "clips_per_s",
    "valid_pearson", "valid_mae_bpm", "valid_within_5",
)  # fmt: skip


class CsvLog:
    """A CSV file to which rows are appended."""

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = [",".join(COLUMNS)]
        if step and path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()[1:]
            kept += [
                line for line in lines if line.split(",")[0].isdigit() and int(line.split(",")[0]) <= step
            ]
        write_text(path, "\n".join(kept) + "\n")

    def write(self, **values: float) -> None:
        row = [f"{values[name]:.6g}" if name in values else "" for name in COLUMNS]
        row[0] = str(int(values["step"]))
        try:
            with open(self.path, "a", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerow(row)
        except OSError as error:
            raise OutputError(self.path, error.strerror or str(error)) from error
