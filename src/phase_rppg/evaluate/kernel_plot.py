"""Plots of learnt impulse responses: kernels, gain, effective length and poles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..physics import fir
from ..physics.kernel import EPS, LATE_S, Component
from ..report.plot_style import BLUE, GREEN, ORANGE, PURPLE, RED, styled
from ..signal.constants import BAND_HZ
from ..types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)


@styled
def kernel_figure(found: Sequence[Component], fps: float, title: str) -> Figure:
    """Return a figure with one panel per component, and panels for gain, effective length and poles."""
    from matplotlib.figure import Figure

    columns = max(len(found), 3)
    figure = Figure(figsize=(3.9 * columns, 7.2), dpi=100, layout="constrained")
    figure.suptitle(title)
    grid = figure.add_gridspec(2, columns)
    for number, (component, colour) in enumerate(zip(found, _COLOURS, strict=False)):
        _draw_kernel(figure.add_subplot(grid[0, number]), component, fps, number + 1, colour)
    gain, length, poles = (figure.add_subplot(grid[1, i]) for i in range(3))
    _draw_gain(gain, found, fps)
    _draw_length(length, found[0], fps)
    _draw_poles(poles, found)
    return figure


def _draw_kernel(axes: Axes, component: Component, fps: float, number: int, colour: str) -> None:
    lag_s = np.arange(len(component.kernel)) / fps
    top = float(np.abs(component.kernel).max())
    axes.axhline(0, color="black", lw=0.6)
    axes.plot(lag_s, component.kernel / top, "o", ms=3.5, color=colour, label="learnt")
    axes.plot(lag_s, component.fit.fitted / top, "-", lw=1.3, color="black", label="damped oscillator")
    axes.set_title(
        f"component {number}: {100 * component.share:.0f} % of the energy\n"
        f"R² = {component.explained:.2f}; beyond {LATE_S:g} s {100 * component.memory:.0f} %, "
        f"R² = {component.explained_memory:.2f}\nω/2π = {component.hz:.2f} Hz, "
        f"ζ = {component.fit.oscillator.damping_ratio:.2f}",
        fontsize=9,
    )
    axes.set(xlabel="lag (s)", ylabel="impulse response" if number == 1 else "", ylim=(-1.15, 1.15))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower right")


def _draw_gain(axes: Axes, found: Sequence[Component], fps: float) -> None:
    hz = np.geomspace(0.2, fps / 2, 400)
    tops = []
    for component, colour in zip(found, _COLOURS, strict=False):
        learnt, fitted = (decibels(taps, hz, fps) for taps in (component.kernel, component.fit.fitted))
        axes.semilogx(hz, learnt, color=colour, lw=1.6)
        axes.semilogx(hz, fitted, color=colour, lw=1.0, ls="--")
        tops.append(float(learnt.max()))
    axes.axvspan(*BAND_HZ, color=GREEN, alpha=0.12, label="40–200 bpm")
    axes.set(ylim=(max(tops) - 45, max(tops) + 4), xlim=(0.2, fps / 2))
    axes.set(title="gain (solid: learnt, dashed: oscillator)", xlabel="frequency (Hz)", ylabel="dB")
    axes.title.set_fontsize(9)
    axes.set_xticks([0.2, 0.5, 1, 2, 5, 10], ["0.2", "0.5", "1", "2", "5", "10"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="lower center")


def _draw_length(axes: Axes, component: Component, fps: float) -> None:
    """Draw the share of the weight beyond R lags, for the first component."""
    longest = max(len(component.kernel), component.bound_frames) + 2
    lengths = np.arange(longest)
    oscillator, delay = component.fit.oscillator, component.delay_frames
    force = 1 / fir.truncation_error(oscillator, 0, 1.0)
    after = np.maximum(lengths - delay, 0)
    bound = [fir.truncation_bound(oscillator, int(n), force) for n in after]
    true = fir.truncation_errors(oscillator, longest, force)[after]
    weight = np.abs(component.kernel)
    beyond = 1 - np.concatenate([[0.0], np.cumsum(weight)]) / weight.sum()
    axes.semilogy(np.arange(len(beyond)) / fps, np.maximum(beyond, 1e-6), color=_COLOURS[0], label="learnt")
    axes.semilogy(lengths / fps, true, color="black", lw=1.0, label="its oscillator")
    axes.semilogy(lengths / fps, bound, color=RED, lw=1.0, label="Proposition 2")
    axes.axhline(EPS, color="black", ls=":", lw=0.9)
    axes.set(ylim=(5e-3, 12), xlabel="length R (s)", ylabel="weight beyond R")
    axes.set_title(
        f"component 1: length for ε = {EPS:g}\nlearnt {component.effective_frames}, oscillator "
        f"{component.needed_frames}, guaranteed {component.bound_frames} frames",
        fontsize=9,
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _draw_poles(axes: Axes, found: Sequence[Component]) -> None:
    """Draw the poles of z″ + αz′ + ω²z in the s-plane; the marker size shows the share of the energy."""
    reach, damped = 0.0, 10.0
    for number, (component, colour) in enumerate(zip(found, _COLOURS, strict=False), 1):
        roots = np.roots([1.0, component.fit.alpha, component.fit.omega**2])
        size = 40 + 260 * component.share
        axes.scatter(
            roots.real, roots.imag / (2 * np.pi), s=size, marker="x", color=colour, label=f"{number}"
        )
        reach = max(reach, float(np.abs(roots.imag).max()) / (2 * np.pi))
        damped = max(damped, float(-roots.real.min()))
    axes.axvline(0, color="black", lw=0.8)
    axes.axhline(0, color="black", lw=0.6)
    for sign in (-1, 1):
        axes.axhspan(*sorted(sign * hz for hz in BAND_HZ), color=GREEN, alpha=0.12)
    reach = max(1.2 * reach, 4.0)
    axes.set(
        xlim=(-min(1.1 * damped, 60.0), 3),
        ylim=(-reach, reach),
        xlabel="Re s = −α/2 (1/s)",
        ylabel="Im s / 2π (Hz)",
    )
    axes.set_title("poles of the oscillators", fontsize=9)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, title="component", title_fontsize=8, loc="center left", markerscale=0.6)


def decibels(taps: FloatArray, hz: FloatArray, fps: float) -> FloatArray:
    """Return the gain of a filter (L,) in dB at frequencies in hertz."""
    phasors = np.exp(-2j * np.pi * np.outer(hz, np.arange(len(taps))) / fps)
    gain: FloatArray = 20 * np.log10(np.maximum(np.abs(phasors @ taps), 1e-12))
    return gain
