"""`phase explain`: show the attention masks or the temporal kernel of a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..registry import DEFAULT_METHOD
from . import choices, options
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from ..measurement.attention import AttentionResult
    from ..session.results import FaceResult

NAME = "explain"
PANEL = "Measure"
DEFAULT_TIMES = 4  # times shown in an image without --at


def command(
    source: Path = typer.Argument(None, metavar="VIDEO", help="A video; none with --kernel."),
    out: Path = options.out(
        None, "FILE", "File to write: .png, .svg or .pdf for a figure, .mp4 for a video."
    ),
    face: str = typer.Option("largest", "--face", help="Face to show: largest, or its number."),
    at_s: list[float] = typer.Option(
        [],
        "--at",
        metavar="S",
        help="Time in seconds to show; may be repeated.",
        show_default="four evenly spaced times",
    ),
    model: str = typer.Option(
        DEFAULT_METHOD,
        "--model",
        "-m",
        metavar="MODEL",
        help=f"A bundled network ({choices.networks()}), a manifest or an ONNX file; "
        "with --kernel also a checkpoint (.safetensors).",
        autocompletion=options.completion(lambda: choices.networks().split(", "), files=True),
    ),
    fps: float = options.FPS,
    kernel: bool = typer.Option(
        False, "--kernel", help="Plot the learnt impulse response and fit damped oscillators to it."
    ),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Show the attention masks of the network on a video, or its learnt temporal kernel.

    For a video, the command draws the masks of the Adaptive Spatial Filter over the frames and reports their
    share on skin. With `--kernel`, it plots the impulse response of the temporal part and fits damped
    oscillators (needs the extra `train`). Exit code: 0 a reading, 3 no face or no reading, 4 the file cannot
    be read. If there is a face but no reading, the masks are still drawn.

    Example: `phase explain face.mp4 -o face.png`

    Example: `phase explain --kernel -o kernel.png --json`
    """
    from ..errors import UsageError, require
    from ..report.figure_file import SUFFIXES
    from .outputs import check_output

    if kernel:
        from .explain_kernel import explain_kernel

        if source is not None:
            raise UsageError(f"--kernel reads no video; name a checkpoint with --model {source}")
        explain_kernel(model, out, force=force, as_json=as_json)
        return
    if source is None:
        raise UsageError("no video given; name one: phase explain VIDEO -o out.png (or use --kernel)")
    if out is None:
        raise UsageError("--out: got nothing, accepted: a name ending in .png, .svg, .pdf or .mp4")
    check_output(out, force=force, suffixes=(*SUFFIXES, ".mp4"), inputs=[source])
    require("matplotlib")
    explain_video(source, out, face, at_s, model, fps, as_json=as_json, quiet=quiet)


def explain_video(
    video: Path,
    out: Path,
    face_name: str,
    at_s: list[float],
    model: str,
    fps: float | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw the masks of one video; exit with code 3 if it has no reading."""
    from ..errors import ArgumentError, InputError
    from ..measurement.attention import record_attention
    from ..session.reasons import ADVICE
    from ..types import Estimate, Reason
    from ..video.decode import VideoFile
    from . import NO_READING
    from .measure import progress_bar, stderr

    if video.is_dir():
        raise InputError(f"{video} is a folder; name one video file")
    source = VideoFile(video, fps)
    with progress_bar(video, quiet) as update:
        recorded = record_attention(source, model, progress=update)
    for warning in () if quiet else recorded.result.warnings:
        stderr().print(f"warning: {escaped(warning)}", style="yellow")
    face = recorded.face(face_name)
    if face is None:
        reason = recorded.result.reason or Reason.NO_FACE
        stderr().print(f"{escaped(video.name)}: no reading: {reason} – {ADVICE[reason]}; nothing drawn")
        raise typer.Exit(NO_READING)
    attention = recorded.attentions[face.id]
    last_s = recorded.result.duration_s
    for t_s in at_s:
        if not 0 <= t_s <= last_s:
            raise ArgumentError("--at", t_s, f"a time in the video, 0 to {last_s:.1f} s")
    if out.suffix.lower() == ".mp4":
        from ..report.attention_video import save_mp4

        with progress_bar(video, quiet) as update:
            save_mp4(out, source, recorded, face, update)
    else:
        from ..report import attention_plots

        attention_plots.save(
            out, source, recorded, face, sorted(at_s) or attention.spaced_times(DEFAULT_TIMES)
        )
    _print_summary(video, out, recorded, face, as_json)
    if not isinstance(face.summary, Estimate):
        raise typer.Exit(NO_READING)


def _print_summary(
    video: Path, out: Path, recorded: AttentionResult, face: FaceResult, as_json: bool
) -> None:
    """Print the reading of the face and the share of each mask on skin."""

    from ..fileio import dump_json
    from ..report.document import face_text
    from ..types import Estimate

    attention = recorded.attentions[face.id]
    shares, area = attention.mean_on_skin(), attention.mean_skin_area()
    if as_json:
        typer.echo(
            dump_json(
                {
                    "video": str(video),
                    "picture": str(out),
                    "network": recorded.result.method,
                    "face": face.id,
                    "bpm": round(face.summary.bpm, 2) if isinstance(face.summary, Estimate) else None,
                    "reason": None if isinstance(face.summary, Estimate) else str(face.summary.reason),
                    "pictures": len(attention.t_s),
                    "on_skin": [round(float(share), 4) for share in shares],
                    "skin_area": round(area, 4),
                    "mean_mask": [[round(float(v), 6) for v in row] for row in attention.masks.mean((0, 1))],
                }
            )
        )
        return
    console = open_console()
    console.print(f"{escaped(video.name)}: {escaped(face_text(face))}")
    for number, share in enumerate(shares, 1):
        name = f"mask {number}" if len(shares) > 1 else "the mask"
        console.print(f"{100 * share:.0f} % of {name} is on skin; skin is {100 * area:.0f} % of the crop")
    console.print(f"written: {escaped(out)}")
