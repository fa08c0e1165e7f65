"""`phase explain --kernel`: the impulse response of the temporal part of a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .terminal import escaped

if TYPE_CHECKING:
    from ..nn.phasenet.impulse_response import Response
    from ..physics.kernel import Component


def explain_kernel(which: str, out: Path | None, *, force: bool, as_json: bool) -> None:
    """Linearise the temporal part of a network, fit damped oscillators, and print and plot the result."""
    from .outputs import check_figure

    check_figure(out, force=force, option="--out")
    from ..nn.phasenet.impulse_response import response, still_face_features
    from ..physics.kernel import components
    from ..train.export import load_streaming

    network, _ = load_streaming(which)
    measured = response(network, still_face_features(network))
    found = components(measured.jacobian, measured.fps)
    if out is not None:
        from ..evaluate.kernel_plot import kernel_figure
        from ..report.figure_file import save_figure

        save_figure(
            kernel_figure(found, measured.fps, f"Impulse response of the temporal part: {which}"), out
        )
    facts = kernel_json(which, measured, found)
    if as_json:
        from ..fileio import dump_json

        typer.echo(dump_json(facts))
    else:
        _print(facts, out)


def kernel_json(which: str, measured: Response, found: list[Component]) -> dict[str, Any]:
    """Return the JSON document of an impulse response and its components."""
    from ..physics.kernel import EPS

    return {
        "network": which,
        "fps": measured.fps,
        "lags": int(measured.jacobian.shape[1]),
        "linear": round(measured.linear, 4),
        "explained": round(sum(c.share * c.explained for c in found) / sum(c.share for c in found), 4),
        "eps": EPS,
        "components": [
            {
                "share": round(c.share, 4),
                "explained": round(c.explained, 4),
                "memory": round(c.memory, 4),
                "explained_memory": round(c.explained_memory, 4),
                "alpha": round(c.fit.alpha, 4),
                "omega": round(c.fit.omega, 4),
                "natural_hz": round(c.hz, 4),
                "damping_ratio": round(c.fit.oscillator.damping_ratio, 4),
                "delay_frames": c.delay_frames,
                "effective_frames": c.effective_frames,
                "oscillator_frames": c.needed_frames,
                "guaranteed_frames": c.bound_frames,
                "kernel": [round(float(v), 6) for v in c.kernel],
            }
            for c in found
        ],
    }


def _print(facts: dict[str, Any], out: Path | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    console.print(
        f"{facts['network']}: {facts['lags']} lags at {facts['fps']:g} fps; "
        f"{100 * facts['linear']:.0f} % of the response is time-invariant"
    )
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for title in (
        "energy",
        "R²",
        "memory",
        "mem. R²",
        "ω/2π",
        "ζ",
        "delay",
        "length",
        "osc.",
        "Prop. 2",
    ):
        table.add_column(title, justify="right", no_wrap=True)
    for row in facts["components"]:
        table.add_row(
            f"{100 * row['share']:.0f} %",
            f"{row['explained']:.2f}",
            f"{100 * row['memory']:.0f} %",
            f"{row['explained_memory']:.2f}",
            f"{row['natural_hz']:.2f} Hz",
            f"{row['damping_ratio']:.2f}",
            *(str(row[name]) for name in ("delay_frames", "effective_frames", "oscillator_frames")),
            str(row["guaranteed_frames"]),
        )
    console.print(table)
    console.print(
        "R²: variance explained by one damped oscillator. Memory: energy at lags of 0.1 s and more.\n"
        f"Delay and lengths are in frames; a length contains all but {facts['eps']:g} of the weight.\n"
        "Lengths: of the kernel, of its oscillator (osc.), and guaranteed by Proposition 2."
    )
    if out is not None:
        console.print(f"written: {escaped(out)}")
