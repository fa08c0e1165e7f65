"""`phase export`: make a trained network a file that runs anywhere."""

from __future__ import annotations

from pathlib import Path

import typer

NAME = "export"


def command(
    checkpoint: Path = typer.Argument(
        ..., metavar="CHECKPOINT", help="A checkpoint of `phase train`, e.g. run/best.safetensors."
    ),
    out: Path = typer.Option(
        None,
        "--out",
        "-o",
        metavar="FILE.onnx",
        help="The ONNX file to write.",
        show_default="beside the checkpoint",
    ),
    name: str = typer.Option(None, "--name", help="What to call the network.", show_default="the recipe's"),
) -> None:
    """Export a checkpoint to one ONNX file with explicit state, and its manifest.

    The graph takes any number of frames at a time, so one file serves live and offline. It is compared with
    torch over 300 frames before it is kept.

    Example: `phase export run/best.safetensors --out phasenet-stream.onnx`
    """
    from rich.console import Console

    from ..errors import UsageError

    try:
        from ..train.export import export
    except ModuleNotFoundError as error:
        raise UsageError(f"exporting needs {error.name}: pip install 'phase-rppg[train]'") from error
    target = (out or checkpoint).with_suffix(".onnx")
    manifest = export(checkpoint, target, name=name)
    console = Console()
    console.print(
        f"{target}: {manifest.name}, {manifest.parameters:,} parameters, sha256 {manifest.sha256[:12]}…"
    )
    console.print(f"differs from torch by at most {manifest.parity:.1e} of the wave's spread over 300 frames")
