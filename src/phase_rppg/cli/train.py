"""`phase train`: train a network from a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .. import registry
from . import choices, options
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from ..train.recipe import Stage

NAME = "train"
PANEL = "Research"


def command(
    recipe: str = typer.Argument(
        ...,
        metavar="RECIPE",
        help=f"TOML file, or the name of a bundled recipe: {choices.recipes()}.",
        autocompletion=options.completion(lambda: choices.recipes().split(", "), files=True),
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        metavar="KEY=VALUE",
        help="Replace a value of the recipe, e.g. optimise.lr=3e-4 or network.name=physnet; may be repeated. "
        f"Networks: {registry.listed('nn')}.",
    ),
    training: str = typer.Option(
        "equal",
        "--training",
        metavar="NAME",
        help="equal: the settings of the recipe. published: loss, optimiser, schedule, epochs, batch, clip "
        "length and size with which the network was published; values of --set still apply.",
    ),
    out: Path = options.out(
        Path("run"), "DIR", "Folder for the checkpoints, log.csv and the generated clips."
    ),
    cache: Path = typer.Option(
        None,
        "--cache",
        metavar="DIR",
        help="Folder for generated clips that several runs share.",
        show_default="the folder of --out",
    ),
    resume: bool = typer.Option(
        False, "--resume", help="Continue the run in this folder from its last checkpoint."
    ),
    device: str = options.DEVICE,
    precision: str = options.PRECISION,
    channels_last: bool = options.CHANNELS_LAST,
    compiled: bool = options.COMPILE,
    quiet: bool = options.QUIET,
) -> None:
    """Train a network from a recipe. An interrupted run continues with --resume.

    The command shows its progress on stderr: the clips that it generates, then the steps, each with a rate
    and the time left. Ctrl+C saves a checkpoint and exits with code 130. To train with several processes, use
    `torchrun --nproc-per-node 2 --no-python phase train …`.

    Example: `phase train smoke --out /tmp/run --set optimise.epochs=3`

    Example: `phase train paper --set network.name=physnet --training published --out physnet`
    """
    import os

    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # huge pages make memory allocation on a CPU faster
    from ..train.recipe import load_stages
    from .train_progress import TrainProgress

    stages = load_stages(recipe, settings)
    if training != "equal":
        stages = _published(stages, training, settings)
    is_first = os.environ.get("RANK", "0") == "0"
    with TrainProgress(hidden=quiet or not is_first) as progress:
        names = ", ".join(stage.name for stage in stages)
        progress.say(f"recipe {escaped(recipe)}: {escaped(names)}; results in {escaped(out)}")
        from ..train import compute, loop  # takes seconds, so the first line is printed before

        checkpoint = loop.train_stages(
            stages,
            out,
            resume=resume,
            cache=cache,
            on_step=progress.on_step,
            on_clips=progress.on_clips,
            compute=compute.Compute(device, precision, channels_last, compiled),
        )
    if is_first:
        open_console().print(f"checkpoint: {escaped(checkpoint)}")


def _published(stages: list[Stage], training: str, settings: list[str]) -> list[Stage]:
    """Return the stages with the published settings, in which the values of --set win."""
    from ..train.published import train_as

    return train_as(stages, training, keep=[setting.partition("=")[0].strip() for setting in settings])
