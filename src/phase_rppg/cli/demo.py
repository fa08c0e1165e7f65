"""`phase demo`: make a synthetic face video with a known pulse and measure it."""

from __future__ import annotations

import itertools
from pathlib import Path

import typer

from . import options
from .terminal import escaped, open_console

NAME = "demo"
PANEL = "Measure"
_FRAME_SHAPE = (240, 320)  # height, width


def command(
    out: Path = options.out(
        None, "FILE.mp4", "Video to write.", show_default="demo.mp4, or the next free name"
    ),
    bpm: float = typer.Option(72.0, "--bpm", min=45, max=180, help="Heart rate of the synthetic person."),
    seconds: float = typer.Option(12.0, "--seconds", min=2, max=120, help="Length of the video in seconds."),
    model: str = options.model("How to measure"),
    seed: int = options.seed(7, "Seed of the generator; each seed gives another face."),
    plot: Path = options.plot("Plot the waveform, its spectrum and the rate over time."),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Make a short synthetic face video with a known pulse and measure it.

    The command needs no download and no camera. It tests the installation. The video stays in the current
    folder, so that other commands can read it.

    Example: `phase demo --bpm 88 --plot demo.png`
    """
    from ..measurement.measure import MeasureOptions
    from ..report.document import has_reading
    from . import NO_READING
    from .measure import measure_one, print_result
    from .outputs import check_figure, check_output

    settings = MeasureOptions(model)
    settings.config()  # refuses wrong values
    video = _free_name() if out is None else out
    check_output(video, force=force, suffixes=(".mp4", ".mkv", ".mov"))
    check_figure(plot, force=force)
    truth_bpm = make_video(video, bpm, seconds, seed)
    if not as_json:
        open_console().print(
            f"{escaped(video)}: {seconds:g} s of a synthetic face "
            f"with a true heart rate of {truth_bpm:.1f} bpm"
        )
    result = measure_one(video, settings, quiet)
    if as_json:
        from ..fileio import dump_json
        from ..report.document import document

        typer.echo(dump_json({"true_bpm": round(truth_bpm, 2), **document(result)}))
    else:
        print_result(result, quiet=quiet)
    if plot is not None:  # after the result, which a full disk must not lose
        from ..report import plots

        plots.save(plot, result)
    if not has_reading(result):
        raise typer.Exit(NO_READING)


def _free_name() -> Path:
    """Return demo.mp4, or demo-2.mp4 … if that file exists."""
    names = itertools.chain(["demo.mp4"], (f"demo-{number}.mp4" for number in itertools.count(2)))
    return next(path for path in map(Path, names) if not path.exists())


def make_video(video: Path, bpm: float, seconds: float, seed: int) -> float:
    """Write the video and return the true mean heart rate."""
    import numpy as np

    from .. import synth
    from ..synth.recording import make_recording
    from ..video.encode import write_video

    fixed = {
        "pulse.bpm": bpm, "pulse.drift_bpm": 0.5, "pulse.rsa": 0.02, "pulse.hrv_s": 0.3 / bpm,
        "pulse.amplitude": 0.015, "subject.fitzpatrick": 2,
        "motion.kind": "still", "light.kind": "constant", "frame.face_px": 280.0,
    }  # fmt: skip
    recording = make_recording(
        synth.load("studio"),
        seed,
        0,
        seconds=seconds,
        height=_FRAME_SHAPE[0],
        width=_FRAME_SHAPE[1],
        fixed=fixed,
    )
    write_video(video, recording.frames(), t_s=recording.t_s, crf=16, preset="veryfast")
    return float(np.mean(recording.bpm(recording.t_s)))
