"""The data stamp: a text on every table and plot that marks synthetic data as fake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..datasets.base import Found
from ..synth.writers import is_synthetic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WARNING = "#b03a2e"


def synthetic_flags(found: Sequence[Found]) -> tuple[bool, ...]:
    """Return for each recording whether it is synthetic."""
    return tuple(is_synthetic(one.video) for one in found)


def stamp_text(synthetic: Sequence[bool]) -> str:
    """Return the stamp for recordings or data sets; `synthetic` marks the synthetic ones."""
    if all(synthetic):
        return "FAKE DATA: made by the generator, not a reproduction of the paper"
    if any(synthetic):
        return "FAKE DATA mixed with real data, not a reproduction of the paper"
    return "REAL DATA"


def draw_stamp(figure: Figure, stamp: str) -> None:
    """Write the stamp below a figure, or above it if a legend is below; write FAKE DATA across it."""
    fake = "FAKE" in stamp
    write = figure.suptitle if figure.legends else figure.supxlabel
    write(stamp.replace("; ", "\n"), fontsize=8, color=_WARNING if fake else "black", weight="bold")
    if fake:
        figure.text(
            0.5, 0.5, "FAKE DATA", fontsize=38, color=_WARNING, alpha=0.13, ha="center", va="center",
            rotation=25, weight="bold", zorder=10,
        )  # fmt: skip
