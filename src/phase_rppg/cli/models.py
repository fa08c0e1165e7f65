"""`phase models`: list the networks with their sizes."""

from __future__ import annotations

from typing import Any

import typer

from . import options

NAME = "models"
PANEL = "Tools"
COMPUTED, DRAWN = "computed", "drawn"  # forms of a network that need different multiply-accumulates


def command(
    as_json: bool = options.JSON,
) -> None:
    """List the networks with parameters, multiply-accumulates, causality and receptive field.

    The counts include all trainable weights, convolutions and matrix products. "drawn" is the count of
    the blocks of PHASE-Net as its paper draws them. With --json, also the published training settings.
    Needs the extra `train` (torch).

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

    table = Table(box=box.SIMPLE, padding=0, show_edge=False)  # fits into 80 columns
    for title in ("network", "clip", "weights", "MACs", "/frame", "causal", "receptive\nfield"):
        numbers = title in ("weights", "MACs", "/frame")
        table.add_column(title, no_wrap=True, justify="right" if numbers else "left")
    for row in rows:
        table.add_row(
            str(row["name"]),
            f"{row['frames']}×{row['size']}²",
            f"{row['parameters']:,}",
            "\n".join(_macs(*form) for form in row["macs_forms"].items()),
            f"{row['macs_per_frame'] / 1e6:.1f} M",
            "yes" if row["causal"] else "no",
            _receptive_field(row),
        )
    console = Console()
    console.print(table)
    console.print("drawn: the blocks pool last, as the paper draws them; pooling first gives equal results")
    if any(row["recursive"] for row in rows):
        console.print("+ : also recursive; the influence of older frames decays but never ends")


def _macs(form: str, count: float) -> str:
    return f"{count / 1e9:.2f} G" + (f" {form}" if form != COMPUTED else "")


def _receptive_field(row: dict[str, Any]) -> str:
    if row["receptive_frames"] is None:
        return "whole clip"
    return f"{row['receptive_s']:.2f} s" + ("+" if row["recursive"] else "")


def _rows() -> list[dict[str, Any]]:
    from .. import nn, registry

    rows = []
    for name in nn.names():
        network = nn.build(name)
        from ..nn import complexity

        module = registry.load("nn", name)
        per_clip = complexity.clip_macs(network, module.FRAMES, module.SIZE)
        streams = hasattr(network, "step")
        frames = getattr(network, "receptive_frames", None)
        rows.append(
            {
                "name": name,
                "size": module.SIZE,
                "frames": module.FRAMES,
                "parameters": complexity.parameters(network),
                "macs_per_clip": per_clip,
                "macs_forms": {COMPUTED: per_clip}
                | (
                    {DRAWN: per_clip + network.late_pooling_macs(module.FRAMES)}  # type: ignore[operator]
                    if hasattr(network, "late_pooling_macs")
                    else {}
                ),
                "macs_per_frame": complexity.step_macs(network, module.SIZE)
                if streams
                else per_clip / module.FRAMES,
                "causal": module.CAUSAL,
                "receptive_frames": frames,
                "receptive_s": None if frames is None else frames / network.config.fps,  # type: ignore[union-attr]
                "recursive": bool(getattr(network, "recursive", False)),
                "citation": module.CITATION,
                "training": module.TRAINING.facts() if hasattr(module, "TRAINING") else None,
            }
        )
    return rows
