"""`phase evaluate`: compare readings with a contact reference."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional

import typer

from . import command_line, options
from .terminal import escaped, open_console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.table import Table

    from ..datasets.base import Found
    from ..errors import RecordingError
    from ..evaluate.convention_evaluation import ConventionEvaluation
    from ..evaluate.metrics import Summary
    from ..evaluate.predictors import Loader
    from ..evaluate.session_evaluation import Evaluation, Scores
    from ..session.pulse_model import PulseModel

NAME = "evaluate"
PANEL = "Research"


def command(
    dataset: Optional[str] = options.dataset(None),
    root: Optional[Path] = options.root(None),
    model: str = options.model(
        "What to evaluate", "the manifest of an exported network (.json) or a checkpoint (.safetensors)"
    ),
    split: str = typer.Option(
        "whole",
        "--split",
        metavar="NAME",
        help="Subjects: whole (all of them), or intra, the test subjects of the literature.",
    ),
    convention: Optional[str] = options.CONVENTION,
    window: float = options.WINDOW,
    step: float = options.STEP,
    video: Optional[list[Path]] = typer.Option(
        None, "--video", metavar="FILE", help="Video to evaluate instead of a data set; may be repeated."
    ),
    reference: Optional[list[Path]] = typer.Option(
        None,
        "--reference",
        metavar="FILE",
        help="Reference of --video: CSV, PURE's .json or UBFC's .txt; one for each video or one for all.",
    ),
    alone: bool = typer.Option(
        False, "--alone", help="Use a bundled network without POS as the second method."
    ),
    ungated: bool = typer.Option(False, "--ungated", help="Include the rates that the gate refused."),
    csv: Optional[Path] = typer.Option(None, "--csv", metavar="FILE", help="Write one row per window."),
    out: Optional[Path] = options.out(
        None, "DIR", "Write REPORT.md, evaluation.json, CSV files and plots to this folder."
    ),
    prepared: Optional[Path] = typer.Option(
        None, "--prepared", metavar="DIR", help="Keep the crops of --convention in this folder."
    ),
    workers: int = options.workers(work="measures the recordings"),
    device: str = options.DEVICE,
    precision: str = options.PRECISION,
    channels_last: bool = options.CHANNELS_LAST,
    compiled: bool = options.COMPILE,
    allow_outside: bool = options.ALLOW_OUTSIDE,
    force: bool = options.FORCE,
    as_json: bool = options.JSON,
    quiet: bool = options.QUIET,
) -> None:
    """Compare the rate of each window with its reference, with and without the gate.

    The reference rate comes from the contact PPG in the same window by the same estimator. A model that was
    trained on a test subject is refused; the message names the subject. With --convention, the model alone is
    compared by the rules of published tables: crop, labels, joining of clips, band, rate, SNR and MACC.

    Example: `phase evaluate ubfc_rppg ~/data/UBFC --model pos --json > pos.json`

    Example: `phase evaluate ubfc_rppg ~/data/UBFC --model chrom --convention toolbox`

    Example: `phase evaluate --video face.mp4 --reference face.csv`

    Example: `phase evaluate pure ~/data/PURE --model run/best.safetensors` (needs the extra `train`)
    """
    from ..datasets import base
    from ..errors import ArgumentError, require
    from ..evaluate import convention_evaluation, session_evaluation
    from ..evaluate.convention_evaluation import Task

    require("scipy", *(["matplotlib"] if out is not None else []))
    if prepared is not None and convention is None:
        raise ArgumentError("--prepared", "given", "used only with --convention")
    _check_outputs(csv, out, force)
    name, found = _recordings(dataset, root, split, model, (video, reference), allow_outside)
    machine = {"device": device, "precision": precision, "channels_last": channels_last, "compile": compiled}
    where = root or "--video"
    if convention is not None:
        loader = _predictor_loader(model, machine)
        task = Task(name, model, convention, window, None if prepared is None else str(prepared), loader)
        with _progress(len(found), quiet) as on_done:
            compared = convention_evaluation.evaluate(found, task, workers=workers, on_done=on_done)
        if not compared.results:
            raise base.no_usable_recording(where, compared.problems)
        _write_convention(compared, csv, out, as_json)
        return
    with _progress(len(found), quiet) as on_done:
        evaluation = session_evaluation.evaluate(
            name,
            found,
            model,
            window_s=window,
            step_s=step,
            workers=workers,
            on_done=on_done,
            alone=alone,
            loader=_checkpoint_loader(model, machine),
        )
    if not evaluation.results:
        raise base.no_usable_recording(where, evaluation.problems)
    _write_session(evaluation, found, csv, out, ungated, as_json)


def _recordings(
    dataset: str | None,
    root: Path | None,
    split: str,
    model: str,
    single: tuple[list[Path] | None, list[Path] | None],
    allow_outside: bool,
) -> tuple[str, list[Found]]:
    """Return the name of the data set and its test recordings, or single videos with their references.

    A model that was trained on one of the test subjects is refused.
    """
    from ..datasets import base, splits
    from ..errors import ArgumentError, InputError
    from ..evaluate import leaks, session_evaluation

    video, reference = single
    if (dataset is None) == (not video):
        given = "both" if video else "neither"
        raise ArgumentError("DATASET ROOT, --video", given, "a data set or single videos")
    if dataset is None:
        return "folder", session_evaluation.pair_videos(video or [], reference or [])
    if root is None:
        raise ArgumentError("ROOT", "nothing", f"the folder of the data set: phase evaluate {dataset} ROOT")
    found = base.find(dataset, root, allow_outside=allow_outside)
    tested = splits.named(dataset, split, found).test
    found = [one for one in found if one.subject in tested]
    if not found:
        raise InputError(f"{root}: no subjects are left for testing in the split {split}")
    leaks.refuse_tested_subjects(model, _provenance(model), dataset, tested)
    return dataset, found


@contextlib.contextmanager
def _progress(count: int, quiet: bool) -> Iterator[Callable[[str, RecordingError | None], None]]:
    """Show a progress bar over recordings; yield the function that advances it."""
    from .progress import advance, bar

    with bar("measuring", quiet) as progress:
        task = progress.add_task("", total=count)
        yield lambda _, problem: advance(progress, task, problem)


def _write_session(
    evaluation: Evaluation,
    found: Sequence[Found],
    csv: Path | None,
    out: Path | None,
    ungated: bool,
    as_json: bool,
) -> None:
    """Write and print the results of complete sessions."""
    from ..evaluate import run_report, session_evaluation, session_evaluation_files
    from ..fileio import dump_json, write_json, write_text

    document = session_evaluation.as_json(evaluation, ungated=ungated)
    if csv is not None:
        session_evaluation_files.write_csv(csv, evaluation, ungated=ungated)
    if out is not None:
        record = session_evaluation_files.session_record(
            evaluation, found, command_line.given(), _provenance(evaluation.model)
        )
        write_json(out / "evaluation.json", document | {"run": record.facts()})
        session_evaluation_files.write_csv(out / "windows.csv", evaluation, ungated=True)
        session_evaluation_files.write_plots(out, evaluation)
        write_text(out / "REPORT.md", run_report.markdown(record))
    if as_json:
        typer.echo(dump_json(document))
    else:
        open_console(soft_wrap=False).print(_table(evaluation))


def _write_convention(
    evaluation: ConventionEvaluation, csv: Path | None, out: Path | None, as_json: bool
) -> None:
    """Write and print the results in a convention."""
    from ..evaluate import convention_evaluation, convention_evaluation_files, run_report
    from ..fileio import dump_json, write_json, write_text

    record = convention_evaluation_files.record(
        evaluation, command_line.given(), _provenance(evaluation.model)
    )
    document = convention_evaluation.as_json(evaluation, record.facts())
    if csv is not None:
        write_text(csv, convention_evaluation_files.table_csv(evaluation))
    if out is not None:
        write_json(out / "evaluation.json", document)
        write_text(out / "recordings.csv", convention_evaluation_files.table_csv(evaluation))
        convention_evaluation_files.write_plots(out, evaluation)
        write_text(out / "REPORT.md", run_report.markdown(record))
    if as_json:
        typer.echo(dump_json(document))
    else:
        open_console(soft_wrap=False).print(_convention_table(evaluation))


def _check_outputs(csv: Path | None, out: Path | None, force: bool) -> None:
    """Refuse files that exist or cannot be written."""
    from .outputs import check_output

    names = ("evaluation.json", "windows.csv", "recordings.csv", "REPORT.md")
    for file in ([] if csv is None else [csv]) + ([] if out is None else [out / name for name in names]):
        check_output(file, force=force)


def _is_checkpoint(model: str) -> bool:
    """Return whether a model is a checkpoint of this package; weights of others are refused."""
    from ..errors import WeightsError

    if Path(model).suffix in (".pth", ".pt"):
        raise WeightsError(model, "not a weights file of this package; convert it with phase import-weights")
    return Path(model).suffix == ".safetensors"


def _checkpoint_loader(model: str, machine: Mapping[str, Any]) -> Callable[[str], PulseModel] | None:
    """Return the function that opens a checkpoint, or None if `model` is no checkpoint."""
    if not _is_checkpoint(model):
        return None
    from ..train.compute import Compute
    from ..train.predict import pulse_model

    return functools.partial(pulse_model, compute=Compute(**machine))


def _predictor_loader(model: str, machine: Mapping[str, Any]) -> Loader | None:
    """Return the function that opens a checkpoint as a predictor, or None."""
    if not _is_checkpoint(model):
        return None
    from ..train.compute import Compute
    from ..train.predict import predictor

    return functools.partial(predictor, compute=Compute(**machine))


def _provenance(model: str) -> Mapping[str, Any]:
    """Return the record of the training of a model; empty for a classical method."""
    if Path(model).suffix == ".json":
        from ..infer.manifest import load_manifest

        return load_manifest(model).training
    if not _is_checkpoint(model):
        return {}  # bundled networks were trained on generated clips only
    from ..train.checkpoint import load_checkpoint

    return load_checkpoint(model).provenance


def _table(evaluation: Evaluation) -> Table:
    """Return the errors of each recording, of all windows and of each condition."""
    from rich import box
    from rich.table import Table

    from ..evaluate.session_evaluation import (
        by_condition,
        mae_interval,
        mean_of_recordings,
        score,
        whole_recordings,
    )

    title = f"{escaped(evaluation.model)} on {evaluation.dataset}, windows of {evaluation.window_s:g} s"
    caption = "left: all rates; right: rates that pass the gate; errors in bpm"
    interval = mae_interval(evaluation, shown=False)
    if interval is not None:
        caption += f"\nleft MAE, 95 % interval over subjects: {interval.low:.2f} to {interval.high:.2f}"
    caption += f"\n{escaped(evaluation.stamp)}"
    table = Table(title=title, caption=caption, box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("recording", no_wrap=True)
    for name in ("n", "MAE", "RMSE", "r", "±5", "│", "shown", "MAE", "±5"):
        table.add_column(name, justify="right", no_wrap=True)
    all_scores = [score(result.rows) for result in evaluation.results]
    for result, scores in zip(evaluation.results, all_scores, strict=True):
        table.add_row(escaped(result.name), *_cells(scores))
    table.add_section()
    table.add_row("all windows", *_cells(score(evaluation.rows())), style="bold")
    mean = mean_of_recordings(all_scores)
    shown = [_share(mean["coverage"]), _number(mean["gated_mae"])]
    table.add_row("mean of recordings", "", _number(mean["ungated_mae"]), "", "", "", "│", *shown)
    if (whole := whole_recordings(evaluation)) is not None:
        table.add_row("whole recordings", f"{whole.count}", *_errors(whole), "│")
    for kind, values in by_condition(evaluation).items():
        if len(values) > 1:
            table.add_section()
            for value, scores in values.items():
                table.add_row(escaped(f"{kind}: {value}"), *_cells(scores))
    return table


def _convention_table(evaluation: ConventionEvaluation) -> Table:
    """Return rate, error, SNR and MACC of each recording, and the metrics of all."""
    from rich import box
    from rich.table import Table

    from ..evaluate.convention_evaluation import by_condition, mae_interval, summaries

    caption = escaped(evaluation.convention.describe())
    interval = mae_interval(evaluation)
    if interval is not None:
        caption += f"\nMAE, 95 % interval over subjects: {interval.low:.2f} to {interval.high:.2f}"
    caption += f"\n{escaped(evaluation.stamp)}"
    title = f"{escaped(evaluation.model)} on {evaluation.dataset}, convention {evaluation.convention.name}"
    table = Table(title=title, caption=caption, box=box.SIMPLE, padding=(0, 1, 0, 0))
    table.add_column("recording", no_wrap=True)
    for name in ("true", "bpm", "error", "SNR", "MACC"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in evaluation.results:
        if (c := one.whole) is not None:
            error = abs(c.bpm - c.truth_bpm)
            table.add_row(escaped(one.name), *map(_number, (c.truth_bpm, c.bpm, error, c.snr_db, c.macc)))
    table.add_section()
    for name, summary in summaries(evaluation).items():
        if summary is not None:
            unit = "recordings" if name == "whole" else f"windows of {evaluation.window_s:g} s"
            table.add_row(f"{summary.count} {unit}", *_summary_cells(summary), style="bold")
    for kind, values in by_condition(evaluation).items():
        if len(values) > 1:
            table.add_section()
            for value, summary in values.items():
                table.add_row(escaped(f"{kind}: {value}"), *_summary_cells(summary))
    return table


def _summary_cells(summary: Summary) -> list[str]:
    r = "–" if summary.pearson is None else f"{summary.pearson.value:.2f}"
    snr, macc = (None if s is None else s.value for s in (summary.snr_db, summary.macc))
    return [
        f"r {r}",
        f"RMSE {summary.rmse.value:.2f}",
        _number(summary.mae.value),
        _number(snr),
        _number(macc),
    ]


def _cells(scores: Scores) -> list[str]:
    left, right = scores.ungated, scores.gated
    ungated, shown = ["–"] * 4, ["–"] * 2
    if left is not None:
        ungated = _errors(left)
    if right is not None:
        shown = [_number(right.mae.value), _share(right.within.value)]
    return [f"{scores.windows}", *ungated, "│", _share(scores.coverage), *shown]


def _errors(summary: Summary) -> list[str]:
    r = summary.pearson.value if summary.pearson is not None else None
    return [*map(_number, (summary.mae.value, summary.rmse.value, r)), _share(summary.within.value)]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
