"""`phase toolbox-cache`: exchange preprocessed clips with the rPPG-Toolbox."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from ..text import counted
from . import options
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from ..datasets.toolbox_cache import ExportOptions

NAME = "toolbox-cache"
PANEL = "Research"


def command(
    dataset: str = options.dataset(),
    root: Path = typer.Argument(
        ..., metavar="ROOT", help="Folder of *_input*.npy files; with --write a folder of phase prepare."
    ),
    write: bool = typer.Option(False, "--write", help="Write clips of the toolbox instead of reading them."),
    out: Path = options.out(Path("prepared"), "DIR", "Folder for the result."),
    file_list: Optional[Path] = typer.Option(
        None, "--file-list", metavar="FILE", help="Only the clips of this list (input_files)."
    ),
    target: str = typer.Option(
        "",
        "--target",
        help="What the labels are: the waveform ('wave') or its difference ('difference').",
        show_default="by the name of the folder",
    ),
    fps: float = typer.Option(30.0, help="Frame rate of the clips in frames per second."),
    frames: int = typer.Option(180, "--frames", help="With --write: length of a clip in frames."),
    inputs: list[str] = typer.Option(
        ["Raw"],
        "--input",
        metavar="TYPE",
        help="With --write: Raw, DiffNormalized, Standardized; several give more channels.",
    ),
    label: str = typer.Option("Raw", "--label", metavar="TYPE", help="With --write: type of the labels."),
    as_json: bool = options.JSON,
) -> None:
    """Convert preprocessed clips of the rPPG-Toolbox to ours, or ours to its clips and file list.

    The clips to read must hold pixels (DATA_TYPE Raw). A file list selects clips by their file names. Writing
    adds DIR.csv next to the folder of the clips, the list that the toolbox reads.

    Example: `phase toolbox-cache pure PreprocessedData/PURE_Raw -o prepared`

    Example: `phase toolbox-cache pure prepared --write -o cached --input DiffNormalized --frames 128`
    """
    from ..datasets import toolbox_cache as clips
    from ..fileio import dump_json

    facts: dict[str, object]
    if write:
        paths, entries = _write(dataset, root, out, clips.ExportOptions(frames, tuple(inputs), label))
        facts = {"recordings": entries, "clips": len(paths), "out": str(out)}
        made = f"{counted(len(paths), 'clip')} of {counted(entries, 'recording')}"
        text = f"{made} in {escaped(out)}; list: {escaped(out)}.csv"
    else:
        settings = clips.ImportOptions(dataset, fps, target)
        found = clips.find_recordings(root, file_list)
        count = len([clips.import_recording(recording, out, settings) for recording in found])
        facts = {"recordings": count, "out": str(out)}
        text = f"{counted(count, 'recording')} of {dataset} in {escaped(out)}"
    if as_json:
        typer.echo(dump_json(facts))
    else:
        open_console().print(text)


def _write(dataset: str, root: Path, out: Path, settings: ExportOptions) -> tuple[list[Path], int]:
    from ..datasets import toolbox_cache as clips
    from ..datasets.cache import open_cache
    from ..errors import InputError

    entries = open_cache(root, dataset)
    paths = [path for entry in entries for path in clips.export_entry(entry, out, settings)]
    if not paths:
        raise InputError(f"{root}: no recording has {settings.frames} valid frames in one clip")
    clips.write_file_list(out.with_name(f"{out.name}.csv"), paths)
    return paths, len(entries)
