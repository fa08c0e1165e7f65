"""`phase physics`: the oscillator of the paper in numbers and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..physics import Oscillator

NAME = "physics"


def command(
    alpha: float = typer.Option(4.0, "--alpha", help="Damping α of the oscillator, in 1/s."),
    omega: float = typer.Option(7.5, "--omega", help="Natural frequency ω, in rad/s; 7.5 is 72 per minute."),
    fps: float = typer.Option(30.0, "--fps", help="Frames per second; the time step is 1/fps."),
    eps: float = typer.Option(0.01, "--eps", help="How much the finite filter may miss (ε)."),
    force: float = typer.Option(
        None, "--force", help="Largest force M.", show_default="ω², which holds the wave at 1"
    ),
    plot: Path = typer.Option(
        None, "--plot", metavar="FILE.png", help="Draw kernel, Bode plot and truncation error."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
) -> None:
    """Show the damped oscillator as a filter: its matrices, its stability, and how long it must be.

    z″ + αz′ + ω²z = u, stepped by semi-implicit Euler, is a causal convolution; R taps of it miss at most ε
    (Propositions 1 and 2 of the paper). A time step that makes the oscillator unstable is refused.

    Example: `phase physics --alpha 4 --omega 7.5 --fps 30 --eps 0.01 --plot oscillator.png`
    """
    from ..physics import Oscillator
    from ..physics.oscillator import positive

    oscillator = Oscillator(alpha, omega, 1 / positive("fps", fps, "frames per second"))
    facts = _facts(oscillator, eps, omega**2 if force is None else force)
    if plot is not None:
        from ..evaluate.plots import save

        save(_figure(oscillator, facts), plot)
    if as_json:
        from ..fileio import dump_json

        typer.echo(dump_json(facts))
    else:
        _print(facts)


def _facts(oscillator: Oscillator, eps: float, force_bound: float) -> dict[str, Any]:
    import numpy as np

    from ..physics import fir, theory

    length = fir.fir_length(oscillator, eps, force_bound)
    constants = fir.best_decay(oscillator, length)
    needed: int | None = None
    if length < fir.MAX_TAPS // 20:  # short enough to write the kernel out and look
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
    manner = "it rings" if ratio < 1 else "it creeps"
    (a, b), (c, d) = facts["A"]
    needed = facts["fir_length_needed"]
    rows = [
        ("damping ratio ζ = α/2ω", f"{ratio:.3f}, {manner}"),
        ("A", f"{a: .6f}  {b: .6f}\n{c: .6f}  {d: .6f}"),
        ("B", f"{facts['B'][0]: .6f}  {facts['B'][1]: .6f}"),
        ("C", f"{facts['C'][0]: .0f}  {facts['C'][1]: .0f}"),
        ("spectral radius ρ(A)", f"{facts['spectral_radius']:.6f}, stable"),
        ("‖Aᵐ‖ ≤ K ρᵐ with", f"K = {facts['K']:.4g}, ρ = {facts['rho']:.6f}"),
        ("‖w‖₁ at most", f"{facts['kernel_l1_bound']:.4g}"),
        (
            f"taps R for ε = {facts['eps']:g}",
            f"{facts['fir_length']} ({facts['fir_length_s']:.2f} s), guaranteed by Proposition 2",
        ),
        (
            "taps truly needed",
            "not counted, too long" if needed is None else f"{needed} ({needed / facts['fps']:.2f} s)",
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

    # In units of the steady answer 1/ω², the taps add up to 1.
    taps = oscillator.kernel(shown) * oscillator.omega**2
    time_s = np.arange(shown) * oscillator.dt_s
    axes.plot(time_s, taps, ".-" if shown < 400 else "-", color="tab:blue", markersize=4, linewidth=1)
    axes.axhline(0, color="black", linewidth=0.6)
    axes.set(title="Kernel g[m] = C Aᵐ B", xlabel="m Δt (s)", ylabel="g[m] · ω²")


def _draw_truncation(axes: Axes, oscillator: Oscillator, facts: dict[str, Any], shown: int) -> None:
    import numpy as np

    from ..physics import fir

    lengths = np.unique(np.linspace(0, shown, 200).astype(int))
    bounds = [fir.truncation_bound(oscillator, int(length), facts["force_bound"]) for length in lengths]
    axes.semilogy(lengths, bounds, color="tab:red", label="bound (Proposition 2)")
    if facts["fir_length_needed"] is not None:
        errors = fir.truncation_errors(oscillator, shown, facts["force_bound"])[lengths]
        axes.semilogy(lengths, errors, color="tab:blue", label="true worst case")
    axes.axhline(facts["eps"], color="black", linestyle=":", label=f"ε = {facts['eps']:g}")
    if facts["fir_length"] <= shown:
        axes.axvline(facts["fir_length"], color="tab:red", linestyle=":", label=f"R = {facts['fir_length']}")
    axes.set(title="What a filter of R taps can miss", xlabel="R (taps)", ylabel="error")
    axes.legend(fontsize=8)


def _draw_bode(gain: Axes, phase: Axes, oscillator: Oscillator) -> None:
    import numpy as np

    nyquist_hz = 0.5 / oscillator.dt_s
    frequency_hz = np.geomspace(min(0.05, nyquist_hz / 100), nyquist_hz, 600)
    answer = oscillator.response(frequency_hz) * oscillator.omega**2
    gain.semilogx(frequency_hz, 20 * np.log10(np.abs(answer)), color="tab:blue")
    phase.semilogx(frequency_hz, np.degrees(np.unwrap(np.angle(answer))), color="tab:blue")
    for axes in (gain, phase):
        axes.axvspan(40 / 60, 200 / 60, color="tab:green", alpha=0.12, label="40–200 bpm")
        axes.axvline(oscillator.omega / (2 * np.pi), color="black", linestyle=":", label="ω / 2π")
        axes.set_xlabel("frequency (Hz)")
        axes.legend(fontsize=8, loc="lower left")
    gain.set(title="Bode plot: gain", ylabel="dB, relative to a steady force")
    phase.set(title="Bode plot: phase", ylabel="degrees")
