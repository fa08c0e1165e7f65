"""`phase import-weights`: convert weights that other authors published."""

from __future__ import annotations

from pathlib import Path

import typer

from .. import registry
from . import options
from .terminal import escaped, open_console

NAME = "import-weights"
PANEL = "Tools"
_MAX_SIZE = 1024  # pixels


def command(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="A .pth file from rPPG-Toolbox or from the authors of a network."
    ),
    out: Path = options.out(None, "FILE", "File to write.", show_default="FILE with the suffix .safetensors"),
    network: str = typer.Option(
        None,
        "--network",
        "-n",
        help="Network: physnet, deepphys, ts-can, efficientphys, physformer, rhythmformer, physmamba, "
        "factorizephys, bigsmall, contrast-phys or phasenet-release.",
        show_default="detected from the names of the tensors",
        autocompletion=options.completion(lambda: registry.names("nn")),
    ),
    size: int = typer.Option(None, "--size", help="Input size in pixels.", show_default="that of the file"),
    target: str = typer.Option(
        None,
        "--target",
        help="Training target of the network: 'wave', or 'difference' for its first difference.",
        show_default="as published",
    ),
    force: bool = options.FORCE,
) -> None:
    """Convert a published state dict to a checkpoint of this package.

    The command reads tensors only and never runs code from the file. It lists tensors that are missing,
    unexpected or of the wrong shape. The option `--model` of phase evaluate accepts the result. Needs the
    extra `train` (torch).

    Example: `phase import-weights PURE_PhysNet_DiffNormalized.pth -o physnet-pure.safetensors`
    """

    from .. import fileio, nn
    from ..errors import ArgumentError
    from ..nn import complexity, published_weights
    from ..train.checkpoint import describe, save_checkpoint
    from .outputs import check_output

    written = file.with_suffix(".safetensors") if out is None else out
    check_output(written, force=force, suffixes=(".safetensors",), inputs=[file])
    if target not in (None, "wave", "difference"):
        raise ArgumentError("--target", target, "wave or difference")
    if size is not None and not 1 <= size <= _MAX_SIZE:
        raise ArgumentError("--size", size, f"1 to {_MAX_SIZE} pixels")
    state = published_weights.read_published(file)
    name = network or published_weights.recognise(state, file)
    published_weights.layout_of(name)
    pixels = size or published_weights.published_size(state, name)
    converted = published_weights.convert(state, name, file, pixels)
    overrides = {} if pixels is None else {"size": pixels}
    built = nn.build(name, **overrides)
    built.load_state_dict(converted)
    spec = describe(name, overrides, built, target=target or registry.load("nn", name).TARGET)
    provenance = {"imported_from": file.name, "imported_sha256": fileio.sha256(file)}
    save_checkpoint(written, spec, converted, provenance=provenance)
    console = open_console()
    console.print(
        f"{name}: {len(converted)} tensors, {complexity.parameters(built):,} parameters → {escaped(written)}"
    )
    if spec.target == "difference":
        console.print("The network predicts differences of the waveform; loading it integrates them.")
