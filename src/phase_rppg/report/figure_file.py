"""Figure files: the suffix of the name selects the format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ArgumentError
from ..fileio import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")


def save_figure(figure: Figure, path: str | Path, *, dpi: float | None = None) -> None:
    """Write a figure as PNG, SVG or PDF, atomically; another suffix is an ArgumentError."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError("figure", path, f"a file name that ends in {', '.join(SUFFIXES)}")
    # Without a date and a version, equal figures give equal files.
    omitted = {".png": "Software", ".svg": "Date", ".pdf": "CreationDate"}[suffix]
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], dpi=dpi or figure.dpi, metadata={omitted: None})
