"""`phase physics`: properties of the damped oscillator of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..report.plot_style import BLUE, GREEN, RED, styled
from . import options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..physics import Oscillator

NAME = "physics"
PANEL = "Research"


def command(
    alpha: float = typer.Option(4.0, "--alpha", help="Damping α of the oscillator, in 1/s."),
    omega: float = typer.Option(7.5, "--omega", help="Natural frequency ω, in rad/s; 7.5 rad/s is 72 bpm."),
    fps: float = typer.Option(30.0, "--fps", help="Frames per second; the time step is 1/fps."),
    eps: float = typer.Option(0.01, "--eps", help="Largest truncation error ε of the finite filter."),
    force_bound: float = typer.Option(
        None, "--force-bound", help="Bound M of the force.", show_default="ω², for a steady state of 1"
    ),
    plot: Path = options.plot("Plot the kernel, the truncation error and a Bode plot."),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
) -> None:
    """Show the state-space matrices, the stability and the filter length of a damped oscillator.

    Semi-implicit Euler turns z″ + αz′ + ω²z = u into a causal convolution. R taps of its kernel approximate
    it with an error of at most ε (Propositions 1 and 2 of the paper). An unstable time step is an error.

    Example: `phase physics --alpha 4 --omega 7.5 --fps 30 --eps 0.01 --plot oscillator.png`
    """
    from ..physics import Oscillator
    from ..physics.oscillator import positive
    from .outputs import check_figure

    check_figure(plot, force=force)
    oscillator = Oscillator(alpha, omega, 1 / positive("fps", fps, "frames per second"))
    facts = _properties(oscillator, eps, omega**2 if force_bound is None else force_bound)
    if plot is not None:
        from ..report.figure_file import save_figure

        save_figure(_figure(oscillator, facts), plot)
    if as_json:
        from ..fileio import dump_json

        typer.echo(dump_json(facts))
    else:
        _print(facts)


def _properties(oscillator: Oscillator, eps: float, force_bound: float) -> dict[str, Any]:
    import numpy as np

    from ..physics import fir, theory

    length = fir.fir_length(oscillator, eps, force_bound)
    constants = fir.best_decay(oscillator, length)
    needed: int | None = None
    if length < fir.MAX_TAPS // 20:  # otherwise the kernel needs too much memory
        errors = fir.truncation_errors(oscillator, length, force_bound)
        needed = max(int(np.argmax(errors <= eps)), 1)
    return {
        "alpha": oscillator.alpha,
        "omega": oscillator.omega,
        "fps": 1 / oscillator.dt_s,
        "eps": eps,
        "force_bound": force_bound,
        "A": oscillator.A.tolist(),
        "B": oscillator.B.tolist(),
        "C": oscillator.C.tolist(),
        "damping_ratio": oscillator.damping_ratio,
        "spectral_radius": oscillator.spectral_radius,
        "K": constants.K,
        "rho": constants.rho,
        "fir_length": length,
        "fir_length_s": length * oscillator.dt_s,
        "fir_error_bound": fir.truncation_bound(oscillator, length, force_bound),
        "fir_length_needed": needed,
        "kernel_l1_bound": theory.kernel_l1_bound(oscillator),
    }


def _print(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    ratio = facts["damping_ratio"]
    damping = "underdamped" if ratio < 1 else "critically damped" if ratio == 1 else "overdamped"
    (a, b), (c, d) = facts["A"]
    needed = facts["fir_length_needed"]
    rows = [
        ("damping ratio ζ = α/2ω", f"{ratio:.3f}, {damping}"),
        ("A", f"{a: .6f}  {b: .6f}\n{c: .6f}  {d: .6f}"),
        ("B", f"{facts['B'][0]: .6f}  {facts['B'][1]: .6f}"),
        ("C", f"{facts['C'][0]: .0f}  {facts['C'][1]: .0f}"),
        ("spectral radius r(A)", f"{facts['spectral_radius']:.6f}, stable"),
        ("‖Aᵐ‖ ≤ K ρᵐ with", f"K = {facts['K']:.4g}, ρ = {facts['rho']:.6f}"),
        ("‖w‖₁ (kernel) at most", f"{facts['kernel_l1_bound']:.4g}"),
        (
            f"taps R for ε = {facts['eps']:g}",
            f"{facts['fir_length']} ({facts['fir_length_s']:.2f} s), guaranteed by Proposition 2",
        ),
        (
            "smallest sufficient R",
            "not computed, too long" if needed is None else f"{needed} ({needed / facts['fps']:.2f} s)",
        ),
    ]
    table = Table(show_header=False, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(
        f"oscillator  α = {facts['alpha']:g} 1/s, ω = {facts['omega']:g} rad/s, {facts['fps']:g} fps, "
        f"|force| ≤ {facts['force_bound']:g}"
    )
    console.print(table)


@styled
def _figure(oscillator: Oscillator, facts: dict[str, Any]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7.5), dpi=110, layout="constrained")
    figure.suptitle(
        f"Damped oscillator: α = {facts['alpha']:g} 1/s, ω = {facts['omega']:g} rad/s at {facts['fps']:g} fps"
    )
    kernel, truncation, gain, phase = figure.subplots(2, 2).flat
    shown = max(min(facts["fir_length"], 3000), 2)
    _draw_kernel(kernel, oscillator, shown)
    _draw_truncation(truncation, oscillator, facts, shown)
    _draw_bode(gain, phase, oscillator)
    for axes in (kernel, truncation, gain, phase):
        axes.grid(alpha=0.3)
    return figure


def _draw_kernel(axes: Axes, oscillator: Oscillator, shown: int) -> None:
    import numpy as np

    # Divided by the steady-state gain 1/ω², the taps sum to 1.
    taps = oscillator.kernel(shown) * oscillator.omega**2
    time_s = np.arange(shown) * oscillator.dt_s
    axes.plot(time_s, taps, ".-" if shown < 400 else "-", color=BLUE, markersize=4, linewidth=1)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set(title="Kernel g[m] = C Aᵐ B", xlabel="m Δt (s)", ylabel="g[m] · ω²")


def _draw_truncation(axes: Axes, oscillator: Oscillator, facts: dict[str, Any], shown: int) -> None:
    import numpy as np

    from ..physics import fir

    lengths = np.unique(np.linspace(0, shown, 200).astype(int))
    bounds = [fir.truncation_bound(oscillator, int(length), facts["force_bound"]) for length in lengths]
    axes.semilogy(lengths, bounds, color=RED, label="bound (Proposition 2)")
    if facts["fir_length_needed"] is not None:
        errors = fir.truncation_errors(oscillator, shown, facts["force_bound"])[lengths]
        axes.semilogy(lengths, errors, color=BLUE, label="worst case")
    axes.axhline(facts["eps"], color="black", linestyle=":", label=f"ε = {facts['eps']:g}")
    if facts["fir_length"] <= shown:
        axes.axvline(facts["fir_length"], color=RED, linestyle=":", label=f"R = {facts['fir_length']}")
    axes.set(title="Truncation error of R taps", xlabel="R (taps)", ylabel="error")
    axes.legend(fontsize=8)


def _draw_bode(gain: Axes, phase: Axes, oscillator: Oscillator) -> None:
    import numpy as np

    from ..signal.constants import BAND_HZ

    nyquist_hz = 0.5 / oscillator.dt_s
    frequency_hz = np.geomspace(min(0.05, nyquist_hz / 100), nyquist_hz, 600)
    response = oscillator.response(frequency_hz) * oscillator.omega**2
    gain.semilogx(frequency_hz, 20 * np.log10(np.abs(response)), color=BLUE)
    phase.semilogx(frequency_hz, np.degrees(np.unwrap(np.angle(response))), color=BLUE)
    for axes in (gain, phase):
        axes.axvspan(*BAND_HZ, color=GREEN, alpha=0.12, label="40–200 bpm")
        axes.axvline(oscillator.omega / (2 * np.pi), color="black", linestyle=":", label="ω / 2π")
        axes.set_xlabel("frequency (Hz)")
        axes.legend(fontsize=8, loc="lower left")
    gain.set(title="Bode plot: gain", ylabel="dB, relative to a constant force")
    phase.set(title="Bode plot: phase", ylabel="degrees")
