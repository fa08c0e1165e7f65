"""`phase export`: convert a trained network to ONNX."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import typer

from . import options
from .terminal import escaped, open_console

NAME = "export"
PANEL = "Tools"


def command(
    checkpoint: Path = typer.Argument(
        ..., metavar="CHECKPOINT", help="Checkpoint written by `phase train`, e.g. run/best.safetensors."
    ),
    out: Path = options.out(
        None, "FILE.onnx", "ONNX file to write.", show_default="CHECKPOINT with the suffix .onnx"
    ),
    name: str = typer.Option(
        None, "--name", help="Name of the network in the manifest.", show_default="from the recipe"
    ),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
) -> None:
    """Export a checkpoint to an ONNX file with explicit state, and write its manifest.

    The graph accepts any number of frames per call, so one file serves streaming and whole videos. The
    command compares it with torch over 300 frames before it saves the file.

    Example: `phase export run/best.safetensors --out phasenet-stream.onnx`
    """

    from ..fileio import dump_json
    from ..train.export import export
    from .outputs import check_output

    target = checkpoint.with_suffix(".onnx") if out is None else out
    check_output(target, force=force, suffixes=(".onnx",), inputs=[checkpoint])
    check_output(target.with_suffix(".json"), force=force)
    manifest = export(checkpoint, target, name=name)
    if as_json:
        typer.echo(dump_json({"file": str(target), **dataclasses.asdict(manifest)}))
        return
    console = open_console()
    console.print(
        f"{escaped(target)}: {escaped(manifest.name)}, {manifest.parameters:,} parameters, "
        f"sha256 {manifest.sha256[:12]}…"
    )
    console.print(
        f"largest difference from torch over 300 frames: {manifest.parity:.1e} of the waveform's "
        "standard deviation"
    )
