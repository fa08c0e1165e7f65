"""`phase explain`: where the network looks, and which filter over time it has learnt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..registry import DEFAULT_METHOD

if TYPE_CHECKING:
    from ..measurement.attention import AttentionResult
    from ..session.results import FaceResult

NAME = "explain"
MOMENTS = 4
SUFFIXES = (".png", ".mp4")


def command(
    what: Path = typer.Argument(
        None,
        metavar="VIDEO",
        help="A video; with --kernel a checkpoint, a manifest or an ONNX file instead of the shipped one.",
    ),
    out: Path = typer.Option(
        None, "--out", "-o", metavar="FILE", help="What to draw: FILE.png, or FILE.mp4 for a film."
    ),
    face: str = typer.Option("largest", "--face", help="Whose face: largest, or its number."),
    at_s: list[float] = typer.Option(
        [], "--at", metavar="S", help="A moment in seconds; may be repeated. Without it, four of them."
    ),
    weights: str = typer.Option(
        DEFAULT_METHOD, "--weights", metavar="PATH", help="A manifest or an ONNX file of your own."
    ),
    fps: float = typer.Option(None, "--fps", help="True frame rate, when the file's timestamps are wrong."),
    kernel: bool = typer.Option(
        False, "--kernel", help="Draw the learnt impulse response instead, and fit a damped oscillator."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of words."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="No progress and no warnings."),
) -> None:
    """Show where the network looks in a video, or which filter over time it has learnt.

    For a video: the masks of the Adaptive Spatial Filter over its frames, as a picture of some moments or as
    a film, and how much of their mass lies on skin. With `--kernel`: how the wave answers to a push of the
    features, and how much of that a damped oscillator explains (needs the extra `train`). Exit code: 0 drawn,
    3 no face, or no pulse (then the picture shows where the network looked in vain), 4 cannot be read.

    Example: `phase explain face.mp4 -o face.png`

    Example: `phase explain --kernel -o kernel.png --json`
    """
    from ..errors import UsageError

    if kernel:
        from .explain_kernel import explain_kernel

        explain_kernel(str(what) if what is not None else weights, out, as_json=as_json)
        return
    if what is None:
        raise UsageError("no video given; say which: phase explain VIDEO -o out.png (or --kernel)")
    if out is None or out.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--out: got {out or 'nothing'}, accepted: a name ending in {' or '.join(SUFFIXES)}")
    explain_video(what, out, face, at_s, weights, fps, as_json=as_json, quiet=quiet)


def explain_video(
    video: Path,
    out: Path,
    which: str,
    at_s: list[float],
    weights: str,
    fps: float | None,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    """Draw the masks of one video; ends with code 3 when there is nothing to read in it."""
    from ..errors import ArgumentError, InputError
    from ..measurement.attention import record_attention
    from ..session.reasons import ADVICE
    from ..types import Estimate, Reason
    from ..video.decode import VideoFile
    from . import NO_READING
    from .measure import check_output, progress_bar, stderr

    check_output(out)
    if video.is_dir():
        raise InputError(f"{video}: a folder; name one video file")
    source = VideoFile(video, fps)
    with progress_bar(video, quiet) as tell:
        seen = record_attention(source, weights, progress=tell)
    for warning in () if quiet else seen.result.warnings:
        stderr().print(f"warning: {warning}", style="yellow", markup=False)
    chosen = seen.face(which)
    if chosen is None:
        reason = seen.result.reason or Reason.NO_FACE
        stderr().print(f"{video.name}: no reading: {reason} – {ADVICE[reason]}; nothing drawn", markup=False)
        raise typer.Exit(NO_READING)
    attention = seen.attentions[chosen.id]
    last_s = seen.result.duration_s
    for moment in at_s:
        if not 0 <= moment <= last_s:
            raise ArgumentError("--at", moment, f"a moment in the video, 0 to {last_s:.1f} s")
    if out.suffix.lower() == ".mp4":
        from ..report.attention_video import save_mp4

        with progress_bar(video, quiet) as tell:
            save_mp4(out, source, seen, chosen, tell)
    else:
        from ..report.attention_plots import save_png

        save_png(out, source, seen, chosen, sorted(at_s) or attention.moments(MOMENTS))
    _say(video, out, seen, chosen, as_json)
    if not isinstance(chosen.summary, Estimate):
        raise typer.Exit(NO_READING)


def _say(video: Path, out: Path, seen: AttentionResult, face: FaceResult, as_json: bool) -> None:
    from rich.console import Console

    from ..fileio import dump_json
    from ..report.document import line
    from ..types import Estimate

    attention = seen.attentions[face.id]
    shares, area = attention.mean_on_skin(), attention.mean_skin_area()
    if as_json:
        typer.echo(
            dump_json(
                {
                    "video": str(video),
                    "picture": str(out),
                    "network": seen.result.method,
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
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{video.name}: {line(face)}", markup=False)
    for number, share in enumerate(shares, 1):
        which = f"mask {number}" if len(shares) > 1 else "the mask"
        console.print(
            f"{100 * share:.0f} % of {which} lies on skin, which is {100 * area:.0f} % of the square"
        )
    console.print(f"drawn: {out}", markup=False)
