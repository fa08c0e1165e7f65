"""Frequency response: strong damping gives a broad filter, weak damping a sharp one."""

import sys

import numpy as np
from matplotlib.figure import Figure

from phase_rppg.physics import Oscillator
from phase_rppg.report.plot_style import styled
from phase_rppg.signal.constants import BAND_HZ


@styled
def draw(path: str) -> None:
    hz = np.geomspace(0.2, 10, 300)
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    for ratio in (0.1, 0.3, 1.0):
        oscillator = Oscillator(alpha=2 * ratio * 7.5, omega=7.5, dt_s=1 / 30)
        gain = np.abs(oscillator.response(hz)) * oscillator.omega**2
        axes.semilogx(hz, 20 * np.log10(gain), label=f"damping ratio {ratio:g}")
    axes.axvspan(*BAND_HZ, alpha=0.1, label="heart rates")
    axes.set(xlabel="frequency (Hz)", ylabel="gain (dB)")
    axes.legend()
    figure.savefig(path, dpi=100)


draw(sys.argv[1])
