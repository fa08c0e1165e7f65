"""`phase demo`: a synthetic face with a known pulse, measured before your eyes."""

from __future__ import annotations

from pathlib import Path

import typer

from ..registry import DEFAULT_METHOD

NAME = "demo"
_FRAME = (240, 320)  # height, width


def command(
    bpm: float = typer.Option(72.0, "--bpm", min=45, max=180, help="Heart rate of the synthetic person."),
    seconds: float = typer.Option(12.0, "--seconds", min=2, max=120, help="Length of the clip."),
    method: str = typer.Option(DEFAULT_METHOD, "--method", "-m", help="Network or method to measure with."),
    seed: int = typer.Option(7, "--seed", help="Another seed is another person."),
    keep: Path = typer.Option(None, "--keep", metavar="FILE.mp4", help="Keep the clip under this name."),
    plot: Path = typer.Option(
        None, "--plot", metavar="FILE.png", help="Draw wave, spectrum and rate over time."
    ),
) -> None:
    """Make a short synthetic face video with a known pulse, and measure it.

    Nothing is downloaded and no camera is needed: if this works, the installation works.

    Example: `phase demo --bpm 88 --plot demo.png`
    """
    import tempfile

    from rich.console import Console

    from ..measurement.measure import MeasureOptions
    from ..report.document import has_reading
    from . import NO_READING
    from .measure import check_outputs, check_picture, measure_one, print_result, write_files

    order = MeasureOptions(method)
    order.config()
    check_outputs([], [output for output in (keep, plot) if output is not None])
    check_picture(plot)
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as folder:
        video = keep if keep is not None else Path(folder) / "demo.mp4"
        truth_bpm = make_video(video, bpm, seconds, seed)
        console.print(
            f"made {video.name}: {seconds:g} s of a synthetic face whose heart beats {truth_bpm:.1f} bpm"
        )
        result = measure_one(video, order, quiet=False)
    write_files([result], [], None, plot, None)
    print_result(result)
    if not has_reading(result):
        raise typer.Exit(NO_READING)


def make_video(video: Path, bpm: float, seconds: float, seed: int) -> float:
    """Write the clip and return the true mean rate."""
    import numpy as np

    from .. import synth
    from ..synth.film import film
    from ..video.encode import write_video

    fixed = {
        "pulse.bpm": bpm, "pulse.drift_bpm": 0.5, "pulse.rsa": 0.02, "pulse.hrv_s": 0.3 / bpm,
        "pulse.amplitude": 0.015, "subject.fitzpatrick": 2,
        "motion.kind": "still", "light.kind": "constant", "frame.face_px": 280.0,
    }  # fmt: skip
    recording = film(
        synth.load("studio"), seed, 0, seconds=seconds, height=_FRAME[0], width=_FRAME[1], fixed=fixed
    )
    write_video(video, recording.frames(), t_s=recording.t_s, crf=16, preset="veryfast")
    return float(np.mean(recording.bpm(recording.t_s)))
