"""The part of `phase explain` that looks at the filter over time instead of at a video."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ..nn.phasenet.impulse_response import Response
    from ..physics.kernel import Component


def explain_kernel(which: str, out: Path | None, *, as_json: bool) -> None:
    """Linearise the temporal part of a network, fit oscillators, and say and draw what came out."""
    from ..errors import UsageError
    from .measure import check_output

    if out is not None:
        if out.suffix.lower() != ".png":
            raise UsageError(f"--out: got {out}, accepted with --kernel: a name ending in .png")
        check_output(out)
    try:
        from ..nn.phasenet.impulse_response import response
        from ..train.restore import temporal_part
    except ModuleNotFoundError as error:
        raise UsageError(f"--kernel needs {error.name}: pip install 'phase-rppg[train]'") from error
    from ..physics.kernel import components

    network, z = temporal_part(which)
    answer = response(network, z)
    found = components(answer.jacobian, answer.fps)
    if out is not None:
        from ..evaluate.kernel_plot import kernel_figure
        from ..evaluate.plots import save

        save(kernel_figure(found, answer.fps, f"Impulse response of the temporal part: {which}"), out)
    facts = kernel_facts(which, answer, found)
    if as_json:
        from ..fileio import dump_json

        typer.echo(dump_json(facts))
    else:
        _print(facts, out)


def kernel_facts(which: str, answer: Response, found: list[Component]) -> dict[str, Any]:
    """Plain values, as JSON has them."""
    from ..physics.kernel import EPS

    return {
        "network": which,
        "fps": answer.fps,
        "lags": int(answer.jacobian.shape[1]),
        "linear": round(answer.linear, 4),
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
        f"{100 * facts['linear']:.0f} % of its answer is the same at all moments"
    )
    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for title in (
        "energy",
        "R²",
        "memory",
        "its R²",
        "ω/2π",
        "ζ",
        "delay",
        "length",
        "oscillator",
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
        "R²: explained by one damped oscillator. Memory: energy at lags of 0.1 s and more.\n"
        f"Delay and lengths in frames; a length holds all but {facts['eps']:g} of the weight."
    )
    if out is not None:
        console.print(f"drawn: {out}", markup=False)
