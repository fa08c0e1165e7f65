"""The damped oscillator of the paper: kernel and recurrence give the same wave (Proposition 1)."""

import sys

import numpy as np
from matplotlib.figure import Figure

from phase_rppg.physics import Oscillator
from phase_rppg.physics.oscillator import convolve
from phase_rppg.report.plot_style import styled


@styled
def draw(path: str) -> None:
    oscillator = Oscillator(alpha=4.0, omega=7.5, dt_s=1 / 30)
    t_s = np.arange(180) / 30
    force = np.maximum(np.sin(2 * np.pi * 1.2 * t_s), 0) ** 4  # the heart pushes once a beat
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.fill_between(t_s, force, alpha=0.2, label="force")
    wave = oscillator.recurrence(force)
    axes.plot(t_s, wave / wave.max(), label="recurrence")
    axes.plot(t_s, convolve(oscillator.kernel(180), force) / wave.max(), ":", lw=3, label="convolution")
    axes.set(xlabel="time (s)", ylabel="force and wave (relative)", ylim=(-0.6, 1.4))
    axes.legend(ncols=3, loc="upper center")
    figure.savefig(path, dpi=100)


draw(sys.argv[1])
