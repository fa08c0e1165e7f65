"""`phase evaluate`: how good a model is on recordings with a reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Optional

import typer

from ..registry import DEFAULT_METHOD

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from ..evaluate.metrics import Summary
    from ..evaluate.protocol import Evaluation, Scores
    from ..session.pulse_model import PulseModel

NAME = "evaluate"


def command(
    root: Optional[Path] = typer.Argument(None, metavar="ROOT", help="The folder of the data set."),
    dataset: str = typer.Option(
        "folder", "--dataset", "-d", help="ubfc_rppg, pure, buaa_mihr, mmpd or folder."
    ),
    model: str = typer.Option(
        DEFAULT_METHOD,
        "--model",
        "-m",
        help="A network that comes along, a method, a manifest (.json), or a checkpoint (.safetensors).",
    ),
    window: float = typer.Option(10.0, help="Length of a window in seconds."),
    step: float = typer.Option(1.0, help="Seconds from one window to the next."),
    video: Optional[list[Path]] = typer.Option(
        None, "--video", metavar="FILE", help="A single video instead of a data set; may be repeated."
    ),
    reference: Optional[list[Path]] = typer.Option(
        None,
        "--reference",
        metavar="FILE",
        help="Its reference: CSV, PURE's .json or UBFC's .txt; one for each video, or one for all.",
    ),
    alone: bool = typer.Option(
        False, "--alone", help="A network that comes along, without POS reading along."
    ),
    ungated: bool = typer.Option(
        False, "--ungated", help="List every window's number, also those not shown."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document instead of the table."),
    csv: Optional[Path] = typer.Option(None, "--csv", metavar="FILE", help="Write one row per window."),
    out: Optional[Path] = typer.Option(
        None,
        "--out",
        "-o",
        metavar="DIR",
        help="Write evaluation.json, windows.csv and plots to this folder.",
    ),
    workers: int = typer.Option(
        1, help="Recordings measured at once, each in its own process; 0: in this one."
    ),
) -> None:
    """Measure recordings in windows and compare each window with its reference, with and without the gate.

    The reference rate comes from the contact PPG in the same window by the same estimator.

    Example: `phase evaluate ~/data/UBFC --dataset ubfc_rppg --model pos --json > pos.json`

    Example: `phase evaluate --video face.mp4 --reference face.csv`

    Example: `phase evaluate ~/data/PURE -d pure --model run/best.safetensors` (needs the extra `train`)
    """
    from rich.console import Console

    from ..datasets import base
    from ..errors import ArgumentError, RecordingError
    from ..evaluate import protocol
    from ..fileio import dump_json, write_json
    from .progress import bar

    if (root is None) == (not video):
        raise ArgumentError("ROOT, --video", "both" if video else "neither", "a folder or single videos")
    if root is not None:
        found = base.find(dataset, root)
    else:
        dataset, found = "folder", protocol.pairs(video or [], reference or [])
    with bar("measuring") as progress:
        task = progress.add_task("", total=len(found))

        def on_done(_: str, problem: RecordingError | None) -> None:
            progress.advance(task)
            if problem is not None:
                progress.console.print(f"excluded: {problem}", markup=False, highlight=False, soft_wrap=True)

        evaluation = protocol.evaluate(
            dataset,
            found,
            model,
            window_s=window,
            step_s=step,
            workers=workers,
            on_done=on_done,
            alone=alone,
            loader=_loader(model),
        )
    if not evaluation.results:
        raise base.nothing_left(root or "--video", evaluation.problems)
    document = protocol.as_json(evaluation, ungated=ungated)
    if csv is not None:
        _write_csv(csv, evaluation, ungated)
    if out is not None:
        write_json(out / "evaluation.json", document)
        _write_csv(out / "windows.csv", evaluation, ungated=True)
        _write_plots(out, evaluation)
    if as_json:
        typer.echo(dump_json(document))
    else:
        Console().print(_table(evaluation))


def _loader(model: str) -> Callable[[str], PulseModel] | None:
    """What opens the model, if it is a file of torch."""
    if Path(model).suffix not in (".safetensors", ".pth", ".pt"):
        return None
    from ..errors import UsageError, WeightsError

    if Path(model).suffix != ".safetensors":
        raise WeightsError(model, "a foreign file; convert it with phase import-weights first")
    try:
        from ..train.predict import pulse_model
    except ModuleNotFoundError as error:
        raise UsageError(f"a checkpoint needs {error.name}: pip install 'phase-rppg[train]'") from error
    return pulse_model


def _table(evaluation: Evaluation) -> Table:
    from rich import box
    from rich.table import Table

    from ..evaluate.protocol import by_condition, mae_interval, mean_of_recordings, score, whole_recordings

    title = f"{evaluation.model} on {evaluation.dataset}, windows of {evaluation.window_s:g} s"
    caption = "left: every number found; right: only what the gate shows; errors in bpm"
    sure = mae_interval(evaluation, shown=False)
    if sure is not None:
        caption += f"\nleft MAE, 95 % interval over subjects: {sure.low:.2f} to {sure.high:.2f}"
    caption += f"\n{evaluation.stamp}"
    table = Table(title=title, caption=caption, box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("recording", no_wrap=True)
    for name in ("n", "MAE", "RMSE", "r", "±5", "│", "shown", "MAE", "±5"):
        table.add_column(name, justify="right", no_wrap=True)
    every = [score(result.rows) for result in evaluation.results]
    for result, scores in zip(evaluation.results, every, strict=True):
        table.add_row(result.name, *_cells(scores))
    table.add_section()
    table.add_row("all windows", *_cells(score(evaluation.rows())), style="bold")
    mean = mean_of_recordings(every)
    shown = [_share(mean["coverage"]), _number(mean["gated_mae"])]
    table.add_row("mean of recordings", "", _number(mean["ungated_mae"]), "", "", "", "│", *shown)
    for convention, summary in whole_recordings(evaluation).items():
        if summary is not None:
            table.add_row(f"whole, {convention}", f"{summary.count}", *_errors(summary), "│")
    for kind, values in by_condition(evaluation).items():
        if len(values) > 1:
            table.add_section()
            for value, scores in values.items():
                table.add_row(f"{kind}: {value}", *_cells(scores))
    return table


def _cells(scores: Scores) -> list[str]:
    left, right = scores.ungated, scores.gated
    all_found, shown = ["–"] * 4, ["–"] * 2
    if left is not None:
        all_found = _errors(left)
    if right is not None:
        shown = [_number(right.mae.value), _share(right.within.value)]
    return [f"{scores.windows}", *all_found, "│", _share(scores.coverage), *shown]


def _errors(summary: Summary) -> list[str]:
    r = summary.pearson.value if summary.pearson is not None else None
    return [*map(_number, (summary.mae.value, summary.rmse.value, r)), _share(summary.within.value)]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _write_csv(path: Path, evaluation: Evaluation, ungated: bool) -> None:
    import csv
    import io

    from ..fileio import write_text

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ["recording", "subject", "start_s", "end_s", "truth_bpm", "bpm", "p_ok", "shown", "reason", "stamp"]
    )
    for result in evaluation.results:
        for row in result.rows:
            bpm = f"{row.bpm:.3f}" if row.bpm is not None and (row.shown or ungated) else ""
            times = [f"{row.start_s:g}", f"{row.end_s:g}", f"{row.truth_bpm:.3f}"]
            writer.writerow(
                [result.name, result.subject, *times, bpm, f"{row.p_ok:.4f}", int(row.shown), row.reason,
                 evaluation.stamp]
            )  # fmt: skip
    write_text(path, text.getvalue())


def _write_plots(folder: Path, evaluation: Evaluation) -> None:
    import numpy as np

    from ..evaluate import data_stamp, metrics, plots, selective

    found = [
        (result.name, row) for result in evaluation.results for row in result.rows if row.bpm is not None
    ]
    if not found:
        return
    names = [name for name, _ in found]
    estimate = np.array([row.bpm for _, row in found], float)
    truth = np.array([row.truth_bpm for _, row in found])
    p_ok = np.array([row.p_ok for _, row in found])
    title = f"{evaluation.model} on {evaluation.dataset}"
    figures = {"scatter": plots.scatter(estimate, truth, title=title, groups=names)}
    if len(found) > 2:
        figures["bland-altman"] = plots.bland_altman(estimate, truth, title=title, groups=names)
    error = np.abs(estimate - truth)
    curve = selective.risk_coverage(error, p_ok, windows=len(evaluation.rows()))
    figures["risk-coverage"] = plots.risk_coverage({evaluation.model: curve}, title=title)
    table = selective.calibration(p_ok, error <= metrics.WITHIN_BPM)
    figures["reliability"] = plots.reliability(table, title=title)
    for name, figure in figures.items():
        data_stamp.put(figure, evaluation.stamp)
        plots.save(figure, folder / f"{name}.png")
