"""`phase import-weights`: weights that others published, for our protocols."""

from __future__ import annotations

from pathlib import Path

import typer

NAME = "import-weights"


def command(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="A .pth file of the rPPG-Toolbox (PhysNet, FactorizePhys or PhysMamba)."
    ),
    output: Path = typer.Option(
        None,
        "--out",
        "-o",
        "--output",
        metavar="FILE",
        help="Where to write.",
        show_default="beside FILE, as .safetensors",
    ),
    network: str = typer.Option(
        None,
        "--network",
        "-n",
        help="physnet, factorizephys or physmamba.",
        show_default="recognised by its names",
    ),
    size: int = typer.Option(None, "--size", help="Input size in pixels.", show_default="as published"),
    target: str = typer.Option(
        None,
        "--target",
        help="What the wave was trained to be: 'wave' or 'difference' (its slope).",
        show_default="as published",
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite the output."),
) -> None:
    """Turn a published state dict into one of our weights files, renamed layer by layer.

    The file is opened without running any code in it. Every tensor must have the published name and shape;
    what is missing, unexpected or mis-shaped is named. `phase_rppg.nn.weights.load` reads the result. Needs
    the extra `train` (torch).

    Example: `phase import-weights PURE_PhysNet_DiffNormalized.pth -o physnet-pure.safetensors`
    """
    from rich.console import Console

    from .. import fileio, nn
    from ..errors import ArgumentError, OutputError, UsageError

    try:
        from ..nn import counting, published_weights, weights
    except ModuleNotFoundError as error:
        raise UsageError(f"weights need {error.name}: pip install 'phase-rppg[train]'") from error
    written = output or file.with_suffix(".safetensors")
    if written.exists() and not force:
        raise OutputError(written, "exists already; --force overwrites it")
    if target not in (None, "wave", "difference"):
        raise ArgumentError("--target", target, "wave or difference")
    state = published_weights.read_published(file)
    name = network or published_weights.guess(state, file)
    converted = published_weights.convert(state, name, file)
    overrides = {} if size is None else {"size": size}
    built = nn.build(name, **overrides)
    built.load_state_dict(converted)
    facts = {
        "target": target or published_weights.SOURCES[name].target,
        "imported_from": file.name,
        "imported_sha256": fileio.sha256(file),
    }
    weights.save(written, name, converted, overrides=overrides, facts=facts)
    console = Console()
    console.print(f"{name}: {len(converted)} tensors, {counting.parameters(built):,} parameters → {written}")
    if facts["target"] == "difference":
        console.print("It was trained on the slope of the pulse; its wave is summed up when it is loaded.")
