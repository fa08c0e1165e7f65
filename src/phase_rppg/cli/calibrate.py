"""`phase calibrate`: the numbers of the gate, from worlds whose truth is known."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

NAME = "calibrate"


def command(
    out: Path = typer.Argument(..., metavar="OUT", help="Folder for the files, one per family of methods."),
    methods: list[str] = typer.Option(["pos"], "--method", "-m", help="Method or network; may be repeated."),
    worlds: list[str] = typer.Option(
        [], "--world", "-w", metavar="NAME[:N]", help="World to watch, and how often; without it, all."
    ),
    count: int = typer.Option(12, "--n", min=1, help="Recordings of each world that names no number."),
    seconds: float = typer.Option(20.0, "--seconds", min=10.0, help="Length of each recording."),
    seed: int = typer.Option(2024, "--seed", help="Seed of the worlds."),
    workers: int = typer.Option(1, "--workers", min=1, help="Processes."),
    cache: Path = typer.Option(None, "--cache", metavar="DIR", help="Keep what was watched, to go on later."),
) -> None:
    """Fit the gate: which windows may show a number, and how sure each one is.

    Films the worlds of the generator, those without a pulse included, lets the pipeline measure them
    without a gate, and fits p_ok, its threshold (at most 1 % false readings where there is no pulse, at
    most 5 % of the shown numbers off by more than 5 bpm), the interval and the limits. The files name this
    command.

    Example: `phase calibrate calibration --method pos --world studio --world photo:24`
    """
    from rich.console import Console
    from rich.progress import Progress

    from .. import infer, synth
    from ..evaluate import fit_calibration, world_windows
    from ..measurement.measure import MeasureOptions
    from ..session import calibration

    recordings = dict(recordings_of(world, count) for world in worlds or synth.names())
    for world in recordings:
        synth.load(world)
    for method in methods:
        MeasureOptions(method, gated=False).config()  # a wrong name is refused before anything is filmed
    console = Console(highlight=False)
    quiet = not sys.stderr.isatty()
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as bar:
        task = bar.add_task("filming and measuring", total=sum(recordings.values()))
        observed = world_windows.observe_worlds(
            recordings,
            methods,
            seed=seed,
            seconds=seconds,
            workers=workers,
            alone=True,  # a gate is made for one wave
            cache=cache,
            on_done=lambda: bar.advance(task),
        )
    for method in methods:
        words = [f"--method {method}", *(f"--world {world}:{n}" for world, n in recordings.items())]
        words += [f"--seconds {seconds:g}", f"--seed {seed}"]
        provenance = {
            "command": " ".join(["phase calibrate OUT", *words]),
            "seed": seed,
            "worlds": recordings,
        }
        family = calibration.family(method)
        if family == calibration.NETWORKS:
            provenance["weights_sha256"] = infer.load(method).manifest.sha256
        found = fit_calibration.calibrate(observed[method], family, provenance)
        calibration.write(out / f"{family}.json", found)
        facts = found.provenance
        console.print(
            f"{method}: p_ok ≥ {found.threshold:.2f} is shown, "
            f"≥ {found.kept_threshold:.2f} while a face was sure; "
            f"{100 * facts['shown_of_windows_with_pulse']:.0f} % of the windows with a pulse, "
            f"{100 * facts['false_readings']:.2f} % of those without, "
            f"error of shown {facts['mae_bpm_of_shown']} bpm → {out / f'{family}.json'}"
        )


def recordings_of(words: str, count: int) -> tuple[str, int]:
    """What `NAME` or `NAME:N` asks for."""
    name, colon, number = words.partition(":")
    if colon and not (number.isdecimal() and int(number) >= 1):
        raise typer.BadParameter(f"{words}: a world, or a world and a number of recordings like photo:24")
    return name, int(number or count)
