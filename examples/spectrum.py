"""Spectra of three methods on the same skin colour: the pulse and its harmonics."""

import sys

import numpy as np
from matplotlib.figure import Figure

from phase_rppg import measure
from phase_rppg.report.plot_style import styled
from phase_rppg.signal import rate


@styled
def draw(path: str) -> None:
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    for method in ("phasenet-stream", "pos", "green"):
        spectrum = rate.spectrum(measure("demo.mp4", method=method).faces[0].wave)
        shown = (spectrum.hz > 0.5) & (spectrum.hz < 4)
        power_db = 10 * np.log10(spectrum.power[shown] / spectrum.power[shown].max() + 1e-6)
        axes.plot(60 * spectrum.hz[shown], power_db, label=method)
    axes.set(xlabel="rate (bpm)", ylabel="power (dB)", ylim=(-45, 3))
    axes.legend()
    figure.savefig(path, dpi=100)


draw(sys.argv[1])
