"""The style of all figures of the package: colours, fonts and frames."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

INK, PULSE, QUIET, BEAT = "#1b1f24", "#c0392b", "#9aa4af", "#2c3e50"
BLUE, GREEN, ORANGE, PURPLE, RED = "#2c7fb8", "#3a9d5d", "#d98324", "#7d5ba6", PULSE
SERIES = (BLUE, PULSE, GREEN, ORANGE, PURPLE, QUIET)  # of several curves in one plot, in this order

P = ParamSpec("P")
R = TypeVar("R")


def parameters() -> dict[Any, Any]:
    """Return the settings of matplotlib for a figure."""
    from cycler import cycler

    return {
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.prop_cycle": cycler(color=SERIES),
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": INK,
        "axes.titlesize": 10,
        "figure.titlesize": 11,
        "font.size": 9,
        "grid.alpha": 0.3,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "lines.linewidth": 1.3,
        "svg.hashsalt": "phase-rppg",  # equal figures give equal files
        "text.color": INK,
        "xtick.color": INK,
        "xtick.labelsize": 8,
        "ytick.color": INK,
        "ytick.labelsize": 8,
    }


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that returns a figure: it draws in the style of the package."""

    @functools.wraps(draw)
    def with_style(*args: P.args, **kwargs: P.kwargs) -> R:
        import matplotlib

        with matplotlib.rc_context(parameters()):
            return draw(*args, **kwargs)

    return with_style
