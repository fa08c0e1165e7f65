"""Options and arguments that several commands share: one name, one type and one text for each concept."""

from __future__ import annotations

import glob
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from .. import registry
from ..registry import DEFAULT_METHOD
from ..workers import Engine
from . import choices


def completion(names: Callable[[], list[str]], *, files: bool = False) -> Callable[[str], list[str]]:
    """Return a completion function for names; with `files`, paths are proposed when no name matches."""

    def complete(incomplete: str) -> list[str]:
        found = [name for name in names() if name.startswith(incomplete)]
        return found or (sorted(glob.glob(f"{glob.escape(incomplete)}*")) if files else [])

    return complete


def model(purpose: str, also: str = "", *, default: Any = DEFAULT_METHOD, **settings: Any) -> Any:
    """Return `--model`; `also` names files that are accepted besides registered names."""
    accepted = f"{choices.methods()}, or {also}" if also else choices.methods()
    return typer.Option(
        default,
        "--model",
        "-m",
        metavar="MODEL",
        help=f"{purpose}: {accepted}.",
        autocompletion=completion(choices.model_names, files=True),
        **settings,
    )


def workers(default: int | None = 1, *, work: str = "works", show_default: Any = True) -> Any:
    """Return `--workers`; 0 never starts a process."""
    return typer.Option(
        default,
        "--workers",
        metavar="N",
        min=0,
        help=f"Number of worker processes; 0 {work} in this process.",
        show_default=show_default,
    )


ENGINE: Any = typer.Option(
    "local",
    "--engine",
    metavar="NAME",
    help="Where the work runs: local, the processes of this machine, or ray, a cluster.",
    autocompletion=completion(lambda: ["local", "ray"]),
)
ADDRESS: Any = typer.Option(
    None,
    "--address",
    metavar="HOST:PORT",
    help="Running Ray cluster, or auto; without it, --engine ray starts one on this machine.",
)


def cluster_workers(workers: int | None, engine: Engine, local: int) -> int | None:
    """Return the number of workers: as given, else `local` on this machine and all CPUs of a cluster."""
    if workers is not None or engine.name != "local":
        return workers
    return local


def seed(default: Any, text: str) -> Any:
    """Return `--seed`."""
    return typer.Option(default, "--seed", metavar="N", min=0, help=text)


def out(default: Path | None, metavar: str, text: str, **settings: Any) -> Any:
    """Return `--out`, the file or folder that a command writes."""
    return typer.Option(default, "--out", "-o", metavar=metavar, help=text, **settings)


def plot(text: str) -> Any:
    """Return `--plot`, a figure whose format follows from the suffix."""
    return typer.Option(None, "--plot", metavar="FILE", help=f"{text} Accepts .png, .svg and .pdf.")


def dataset(default: Any = ...) -> Any:
    """Return the argument DATASET, which always stands before ROOT."""
    return typer.Argument(
        default,
        metavar="DATASET",
        help=f"Data set: {registry.listed('datasets')}.",
        autocompletion=completion(lambda: registry.names("datasets")),
    )


def root(default: Any = ...) -> Any:
    """Return the argument ROOT."""
    return typer.Argument(default, metavar="ROOT", help="Folder of the data set.")


DEVICE: Any = typer.Option(
    "auto", "--device", metavar="NAME", help="Device of networks: auto, cpu, cuda or mps."
)
PRECISION: Any = typer.Option(
    "fp32", "--precision", metavar="NAME", help="fp32, or mixed precision: bf16, or fp16 on a GPU."
)
CHANNELS_LAST: Any = typer.Option(
    False, "--channels-last", help="Store images with the channels last, which many GPUs prefer."
)
COMPILE: Any = typer.Option(False, "--compile", help="Compile the network with torch.compile.")

CONVENTION: Any = typer.Option(
    None,
    "--convention",
    metavar="NAME",
    help="Rules of published tables: ours, toolbox (rPPG-Toolbox) or release (the authors of PHASE-Net).",
)
JSON: Any = typer.Option(False, "--json", help="Print JSON instead of text.")
QUIET: Any = typer.Option(False, "--quiet", "-q", help="Hide progress bars and warnings.")
FORCE: Any = typer.Option(False, "--force", help="Overwrite existing files.")
LIST: Any = typer.Option(False, "--list", help="List the accepted names and exit.")
FPS: Any = typer.Option(None, "--fps", help="True frame rate, if the timestamps of the file are wrong.")
WINDOW: Any = typer.Option(10.0, "--window", metavar="S", help="Length of a window in seconds.")
STEP: Any = typer.Option(
    1.0, "--step", metavar="S", help="Time between the starts of two windows in seconds."
)

ALLOW_OUTSIDE: Any = typer.Option(
    False,
    "--allow-outside",
    help="Accept recordings with files outside ROOT: absolute paths, '..' and symbolic links.",
)
