"""Read evaluations in a convention, and compare their models over the common subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..fileio import read_json
from ..report.figure_file import save_figure
from . import conventions, plots, significance, synthetic_stamp
from .significance import PairedDifference, RankTest

FILE = "evaluation.json"
MAX_BPM = 1000.0  # a larger number is no rate


@dataclass(frozen=True)
class Evaluated:
    """One evaluation as it was written."""

    path: Path
    dataset: str
    model: str
    convention: str
    stamp: str
    errors: tuple[tuple[str, float], ...]  # subject, absolute error of a recording


@dataclass(frozen=True)
class ModelComparison:
    """Every two models, and the ranks of all."""

    dataset: str
    convention: str
    stamp: str
    subjects: int
    pairs: tuple[PairedDifference, ...]
    ranks: RankTest | None

    def as_json(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {
            "stamp": self.stamp,
            "dataset": self.dataset,
            "convention": self.convention,
            "subjects": self.subjects,
            "pairs": [
                {"first": one.first, "second": one.second, "difference_bpm": one.difference,
                 "low": one.interval.low, "high": one.interval.high, "p_value": one.p_value,
                 "better": one.better}
                for one in self.pairs
            ],
            "ranks": None if self.ranks is None else significance.ranks_json(self.ranks),
        }  # fmt: skip


def read(path: Path) -> Evaluated:
    """Read an evaluation; a session without a convention is refused, because the gate hides rates."""
    file = path / FILE if path.is_dir() else path
    content = read_json(file)
    try:
        name = content["convention"]["name"]
        errors = tuple(
            (str(recording["subject"]), _error(whole["bpm"], whole["truth_bpm"]))
            for recording in content["recordings"]
            if (whole := recording["whole"][name]) is not None
        )
        texts = (content["dataset"], content["model"], name, content["stamp"])
        if not all(isinstance(text, str) for text in texts):
            raise TypeError
        return Evaluated(file, content["dataset"], content["model"], name, content["stamp"], errors)
    except (KeyError, TypeError, ValueError, OverflowError):
        raise InputError(
            f"{file}: is not an evaluation in a convention; write one with "
            "phase evaluate --convention NAME --out DIR"
        ) from None


def _error(bpm: Any, truth_bpm: Any) -> float:
    """Return the absolute error of two rates; a ValueError refuses what is no rate."""
    for rate in (bpm, truth_bpm):
        if isinstance(rate, bool) or not 0 <= rate < MAX_BPM:
            raise ValueError
    return float(abs(bpm - truth_bpm))


def compare(evaluated: Sequence[Evaluated]) -> ModelComparison:
    """Compare models; mixed conventions or data sets and fewer than two common subjects are refused."""
    convention = conventions.single_convention([(str(one.path), one.convention) for one in evaluated])
    sets = {one.dataset: one.path for one in evaluated}
    if len(sets) > 1:
        listed = ", ".join(f"{path} ({name})" for name, path in sets.items())
        raise InputError(f"mixed data sets in one table: {listed}; compare results on one data set")
    readings: dict[str, list[list[tuple[str, float]]]] = {}
    for one in evaluated:
        if one.model in readings:
            raise InputError(f"{one.path}: the model {one.model} is compared twice; leave one out")
        readings[one.model] = [list(one.errors)]
    errors = significance.subject_errors(readings)
    count = next(iter(errors.values())).shape[1] if errors else 0
    if count < 2:
        raise InputError(f"the results share {count} subjects; a comparison needs at least two")
    return ModelComparison(
        evaluated[0].dataset,
        convention,
        max((one.stamp for one in evaluated), key=lambda stamp: "FAKE" in stamp),
        count,
        tuple(significance.all_pairs(errors)),
        significance.rank_test(errors),
    )


def write_plot(path: Path, compared: ModelComparison) -> None:
    """Write the critical-difference diagram; without ranks, remove that of an earlier comparison."""
    if compared.ranks is None:
        path.unlink(missing_ok=True)
        return
    title = f"Mean ranks on {compared.dataset}, convention {compared.convention}"
    figure = plots.critical_difference(compared.ranks, title=title)
    synthetic_stamp.draw_stamp(figure, compared.stamp)
    save_figure(figure, path)
