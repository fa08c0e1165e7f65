"""`phase models`: the networks, with their true sizes."""

from __future__ import annotations

from typing import Any

import typer

NAME = "models"


def command(
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of a table."),
) -> None:
    """List the networks: parameters, multiply-accumulates, causality and receptive field.

    Counts are exact: every weight that training changes, every convolution and matrix product. Needs the
    extra `train` (torch).

    Example: `phase models --json`
    """
    rows = _rows()
    if as_json:
        from ..fileio import dump_json

        typer.echo(dump_json(rows))
        return

    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
    for title in ("network", "clip", "parameters", "MACs", "/frame", "causal", "sees"):
        numbers = title in ("parameters", "MACs", "/frame")
        table.add_column(title, no_wrap=True, justify="right" if numbers else "left")
    for row in rows:
        table.add_row(
            str(row["name"]),
            f"{row['frames']}×{row['size']}²",
            f"{row['parameters']:,}",
            f"{row['macs_per_clip'] / 1e9:.2f} G",
            f"{row['macs_per_frame'] / 1e6:.1f} M",
            "yes" if row["causal"] else "no",
            _field(row),
        )
    console = Console()
    console.print(table)
    if any(row["recursive"] for row in rows):
        console.print("+ : and a memory that fades but never ends (running mean of the input, oscillators)")


def _field(row: dict[str, Any]) -> str:
    if row["receptive_frames"] is None:
        return "the clip"
    return f"{row['receptive_frames']} ({row['receptive_s']:.2f} s)" + ("+" if row["recursive"] else "")


def _rows() -> list[dict[str, Any]]:
    from .. import nn, registry

    rows = []
    for name in nn.names():
        network = nn.build(name)
        from ..nn import counting

        module = registry.load("nn", name)
        per_clip = counting.clip_macs(network, module.FRAMES, module.SIZE)
        streams = hasattr(network, "step")
        frames = getattr(network, "receptive_frames", None)
        rows.append(
            {
                "name": name,
                "size": module.SIZE,
                "frames": module.FRAMES,
                "parameters": counting.parameters(network),
                "macs_per_clip": per_clip,
                "macs_per_frame": counting.step_macs(network, module.SIZE)
                if streams
                else per_clip / module.FRAMES,
                "causal": module.CAUSAL,
                "receptive_frames": frames,
                "receptive_s": None if frames is None else frames / network.config.fps,  # type: ignore[union-attr]
                "recursive": bool(getattr(network, "recursive", False)),
                "citation": module.CITATION,
            }
        )
    return rows
