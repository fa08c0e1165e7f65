"""Beats: the interval between heart beats over time."""

import sys

import numpy as np
from matplotlib.figure import Figure

from phase_rppg import measure
from phase_rppg.report.plot_style import PULSE, styled


@styled
def draw(path: str) -> None:
    face = measure("demo.mp4").faces[0]
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.step(face.beats_s, 1000 * face.ibi_s, where="pre", color=PULSE)
    axes.plot(face.beats_s, 1000 * face.ibi_s, "o", color=PULSE, ms=4)
    axes.axhline(1000 * float(np.nanmean(face.ibi_s)), linestyle=":", label="mean")
    axes.set(xlabel="time (s)", ylabel="time between beats (ms)")
    axes.legend()
    figure.savefig(path, dpi=100)


draw(sys.argv[1])
