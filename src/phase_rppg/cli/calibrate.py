"""`phase calibrate`: fit the gate to synthetic recordings with known heart rates."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .. import registry
from . import options
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from ..session.calibration import Calibration

NAME = "calibrate"
PANEL = "Research"


def command(
    out: Path = options.out(
        Path("calibration"), "DIR", "Folder for the calibration files, one for each family of methods."
    ),
    models: list[str] = options.model("What to calibrate (may be repeated)", default=["pos"]),
    worlds: list[str] = typer.Option(
        [],
        "--world",
        "-w",
        metavar="NAME[:N][,KEY=VALUE…]",
        help="World, number of films and fixed settings, such as talk:6,pulse.present=false; may be "
        f"repeated. Worlds: {registry.listed('worlds')}.",
        show_default="a mixture of ordinary videos and films without a pulse",
        autocompletion=options.completion(lambda: registry.names("worlds")),
    ),
    count: int = typer.Option(12, "--n", min=1, help="Films of each world without its own number."),
    seconds: list[float] = typer.Option(
        [],
        "--seconds",
        min=8.0,
        help="Length of the films in seconds; several lengths are used in turn.",
        show_default="8.5 to 30 s",
    ),
    seed: int = options.seed(2024, "Seed of the generator."),
    only_p_ok: bool = typer.Option(
        False,
        "--only-p-ok",
        help="Fit p_ok and its threshold only; keep p_alive, the interval and the limits as bundled.",
    ),
    workers: int = options.workers(work="measures the recordings"),
    cache: Path = typer.Option(
        None,
        "--cache",
        metavar="DIR",
        help="Folder for films and their windows; an interrupted run continues from it.",
    ),
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Fit the gate, which decides whether a window gets a heart rate.

    The command makes films with and without a pulse, measures them without a gate, as a file and as a
    camera, and fits the models of p_alive and p_ok, the thresholds, the interval and the quality limits. At
    most 1 % of the windows without a pulse get a reading, and at most 10 % of the readings have an error
    above 5 bpm. Each file records the command that wrote it.

    Example: `phase calibrate --model phasenet-stream --model pos --out calibration --cache films`
    """
    from rich.progress import Progress

    from .. import synth
    from ..evaluate import calibration_films, fit_calibration, world_windows
    from ..fileio import dump_json
    from ..measurement.measure import MeasureOptions
    from ..session import calibration
    from .outputs import check_output

    recordings = dict(parse_world(world, count) for world in worlds or calibration_films.WORLDS)
    lengths = seconds or list(calibration_films.SECONDS)
    for spec in world_windows.film_specs(recordings, seed=seed, seconds=lengths):
        synth.load(spec.world)
    for name in models:
        MeasureOptions(name, gated=False).config()  # refuses an unknown name before any work is done
        check_output(out / f"{calibration.family(name)}.json", force=force)
    console = open_console()
    hidden = quiet or not sys.stderr.isatty()
    with Progress(console=open_console(stderr=True), transient=True, disable=hidden) as bar:
        task = bar.add_task("generating and measuring", total=sum(recordings.values()))
        observed = world_windows.observe_worlds(
            recordings,
            models,
            seed=seed,
            seconds=lengths,
            workers=workers,
            modes=("file", "camera"),
            cache=cache,
            on_done=lambda: bar.advance(task),
        )
    written = []
    for name in models:
        provenance = {
            "command": _command_text(name, worlds, count, seconds, seed, only_p_ok),
            "seed": seed,
            "seconds": lengths,
            "worlds": recordings,
        }
        fitted = fit_calibration.calibrate_method(name, observed[name], provenance, only_p_ok=only_p_ok)
        file = out / f"{fitted.family}.json"
        calibration.write(file, fitted)
        thresholds = asdict(fitted.thresholds)
        written.append({"model": name, "file": str(file), "thresholds": thresholds, **fitted.provenance})
        if not as_json:
            console.print(f"{name}: {_summary(fitted)} → {escaped(file)}")
    if as_json:
        typer.echo(dump_json(written))


def _summary(fitted: Calibration) -> str:
    """Return the thresholds of a calibration and the figures of its readings, in one line."""
    facts, thresholds = fitted.provenance, fitted.thresholds
    return (
        f"thresholds p_ok {thresholds.ok:.2f}, p_alive {thresholds.alive:.2f}, "
        f"near a confident window {thresholds.kept_alive:.2f}; "
        f"readings in {100 * facts['shown_of_right_windows']:.0f} % of the right windows, in "
        f"{100 * facts['false_readings']:.2f} % of the windows and {facts['false_films']} of "
        f"{facts['recordings_without_pulse']} films without a pulse; "
        f"calibration error of p_ok {facts['ece_of_p_ok']:.3f}; "
        f"MAE of the readings {facts['mae_bpm_of_shown']} bpm"
    )


def _command_text(
    model: str, worlds: list[str], count: int, seconds: list[float], seed: int, only_p_ok: bool
) -> str:
    """Return the command that writes the same file again."""
    words = [f"--model {model}", *(f"--world {world}" for world in worlds)]
    words += [f"--n {count}"] if worlds else []
    words += [f"--seconds {length:g}" for length in seconds]
    words += [f"--seed {seed}", *(["--only-p-ok"] if only_p_ok else [])]
    return " ".join(["phase calibrate --out OUT", *words])


def parse_world(text: str, count: int) -> tuple[str, int]:
    """Return the world with its settings and the number of films: `talk:6,pulse.present=false`."""
    head, comma, changes = text.partition(",")
    name, colon, number = head.partition(":")
    if colon and not (number.isdecimal() and int(number) >= 1):
        raise typer.BadParameter(f"{text}: expected a world, or a world and a number such as photo:24")
    return name + comma + changes, int(number or count)
