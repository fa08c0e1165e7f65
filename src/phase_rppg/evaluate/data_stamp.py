"""Which data the numbers come from, in words that no reader of a table or a picture can miss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..datasets.base import Found
from ..synth.writers import is_synthetic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WARNING = "#b03a2e"


def synthetic(found: Sequence[Found]) -> tuple[bool, ...]:
    """Of each recording, whether the generator made it."""
    return tuple(is_synthetic(one.video) for one in found)


def words(fake: Sequence[bool]) -> str:
    """The stamp of numbers from recordings or data sets of which some are fake."""
    if all(fake):
        return "FAKE DATA: made by the generator, not a reproduction of the paper"
    if any(fake):
        return "FAKE DATA mixed with real data, not a reproduction of the paper"
    return "REAL DATA"


def put(figure: Figure, stamp: str) -> None:
    """Write the stamp under the picture (above it, if a legend is there), and FAKE DATA across it."""
    fake = "FAKE" in stamp
    write = figure.suptitle if figure.legends else figure.supxlabel
    write(stamp.replace("; ", "\n"), fontsize=8, color=_WARNING if fake else "black", weight="bold")
    if fake:
        figure.text(
            0.5, 0.5, "FAKE DATA", fontsize=38, color=_WARNING, alpha=0.13, ha="center", va="center",
            rotation=25, weight="bold", zorder=10,
        )  # fmt: skip
