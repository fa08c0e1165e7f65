"""Draw the figures of docs/physics.md with the functions of phase_rppg.physics.

python scripts/physics_figures.py          (scripts/docs --figures runs it)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from phase_rppg.physics import Oscillator, fir_length, truncation_bound, truncation_error
from phase_rppg.physics.wave import FIT_FPS, VesselLine, reduce_driven
from phase_rppg.report.figure_file import save_figure
from phase_rppg.report.plot_style import BLUE, PULSE, QUIET, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "physics"
OMEGA, FPS = 7.5, 30.0  # 72 bpm, frames per second


@styled
def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in (("wave", draw_wave), ("kernel", draw_kernels), ("truncation", draw_truncation)):
        figure = Figure(figsize=(7, 2.8), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        axes.legend(loc="upper right")
        save_figure(figure, FOLDER / f"{name}.svg")


def draw_wave(axes: Axes) -> None:
    """The wave equation at one spot, and the oscillator that was fitted to it."""
    line = VesselLine(alpha=6.0, speed=4.0, length=1.2)
    t_s = np.arange(round(3 * FIT_FPS)) / FIT_FPS
    inlet = np.maximum(np.sin(2 * np.pi * 1.2 * t_s), 0) ** 2
    found = reduce_driven(line, inlet)
    axes.plot(found.t_s, found.pressure, color=PULSE, label="damped wave equation, middle of the vessel")
    axes.plot(found.t_s, found.fit.fitted, "--", color=BLUE, label=f"oscillator, error {found.error:.0%}")
    axes.set_xlabel("time (s)")
    axes.set_ylabel("pressure")
    axes.set_ylim(top=1.15)


def draw_kernels(axes: Axes) -> None:
    """The kernel for an underdamped, a critically damped and an overdamped oscillator."""
    for ratio, colour in ((0.25, PULSE), (1.0, BLUE), (2.0, QUIET)):
        kernel = Oscillator(2 * ratio * OMEGA, OMEGA, 1 / FPS).kernel(60)
        axes.plot(
            np.arange(60) / FPS, kernel / kernel.max(), color=colour, label=f"damping ratio ζ = {ratio:g}"
        )
    axes.set_xlabel("lag m Δt (s)")
    axes.set_ylabel("g[m], largest value 1")


def draw_truncation(axes: Axes) -> None:
    """The bound of Proposition 2 and the exact error over the length of the filter."""
    oscillator = Oscillator(4.0, OMEGA, 1 / FPS)
    lengths = np.arange(1, 181)
    force = OMEGA**2  # a steady state of 1
    axes.semilogy(lengths, [truncation_bound(oscillator, int(n), force) for n in lengths], color=BLUE,
                  label="bound of Proposition 2")  # fmt: skip
    axes.semilogy(lengths, [truncation_error(oscillator, int(n), force) for n in lengths], color=PULSE,
                  label="exact error")  # fmt: skip
    enough = fir_length(oscillator, 0.01, force)
    axes.axvline(enough, color=QUIET, linestyle=":", label=f"R = {enough} for ε = 0.01")
    axes.set_xlabel("length of the filter (frames)")
    axes.set_ylabel("largest error")


if __name__ == "__main__":
    main()
