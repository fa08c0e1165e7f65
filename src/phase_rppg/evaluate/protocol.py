"""Windowed evaluation: every recording through the pipeline, every window against the reference.

The reference rate of a window comes from the contact PPG in the same window by the same estimator. Each
window has the number that the pipeline found and whether its gate lets it be shown, so one pass gives the
errors at full coverage and those of what a user would see.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import registry
from ..datasets import base, folder, reference_rate
from ..datasets.prepare import labels_at
from ..errors import ArgumentError, RecordingError
from ..measurement.measure import MeasureOptions, run
from ..session.pulse_model import PulseModel
from ..session.results import Result, WindowResult
from ..types import Estimate, NoReading, Recording, Waveform
from ..workers import Job, run_jobs
from . import data_stamp, metrics
from .metrics import Comparison, Summary


@dataclass(frozen=True, slots=True)
class Row:
    """One window of one recording."""

    start_s: float
    end_s: float
    truth_bpm: float
    bpm: float | None  # what was found, believed or not; None when there was nothing to find it in
    p_ok: float
    shown: bool  # the gate lets it pass
    reason: str  # why not

    @property
    def error_bpm(self) -> float | None:
        return None if self.bpm is None else self.bpm - self.truth_bpm


@dataclass(frozen=True, slots=True)
class RecordingResult:
    """All windows of one recording that have a reference, and its whole wave against the reference."""

    name: str
    subject: str
    conditions: dict[str, str]
    rows: tuple[Row, ...]
    whole: dict[str, Comparison]  # convention → the whole recording as one window
    cpu_s: float  # without decoding, which runs in a process of its own
    frames: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A model on a data set."""

    dataset: str
    model: str
    window_s: float
    step_s: float
    results: tuple[RecordingResult, ...]
    problems: tuple[RecordingError, ...]
    stamp: str = "REAL DATA"  # or whether the generator made some of it

    def rows(self) -> list[Row]:
        return [row for result in self.results for row in result.rows]


@dataclass(frozen=True, slots=True)
class Scores:
    """Errors of all numbers that were found, and of those that are shown."""

    windows: int
    found: int
    shown: int
    ungated: Summary | None  # None: there was no number at all
    gated: Summary | None

    @property
    def coverage(self) -> float:
        """Share of the windows with a shown number."""
        return self.shown / self.windows if self.windows else 0.0


def score(rows: Sequence[Row]) -> Scores:
    """The measures of a set of windows, with and without the gate."""
    found = [row for row in rows if row.bpm is not None]
    shown = [row for row in found if row.shown]
    return Scores(len(rows), len(found), len(shown), _summary(found), _summary(shown))


def _summary(rows: Sequence[Row]) -> Summary | None:
    if not rows:
        return None
    return metrics.summarise(
        [row.bpm for row in rows if row.bpm is not None], [row.truth_bpm for row in rows]
    )


def evaluate(
    dataset: str,
    found: Sequence[base.Found],
    model: str,
    *,
    window_s: float = 10.0,
    step_s: float = 1.0,
    workers: int = 1,
    on_done: Callable[[str, RecordingError | None], None] | None = None,
    alone: bool = False,
    loader: Callable[[str], PulseModel] | None = None,
) -> Evaluation:
    """Measure the recordings with a model; one that fails is named and the rest goes on.

    `loader`, a function of a module, opens the model if it is a file that the pipeline itself cannot read.
    """
    order = MeasureOptions(model, window_s, step_s, alone=alone, loader=loader)
    order.config()  # a wrong name or window is said at once, not per recording
    jobs = [Job(one.name, (dataset, one, order)) for one in found]
    results: dict[str, RecordingResult] = {}
    problems: list[RecordingError] = []
    for outcome in run_jobs(evaluate_one, jobs, workers):
        name, problem = outcome.job.name, None
        if outcome.error is not None:
            problem = base.recording_error(name, outcome.error)
            problems.append(problem)
        else:
            results[name] = outcome.result
        if on_done is not None:
            on_done(name, problem)
    used = [one for one in found if one.name in results]
    ordered = tuple(results[one.name] for one in used)
    words = data_stamp.words(data_stamp.synthetic(used))
    return Evaluation(dataset, model, window_s, step_s, ordered, tuple(problems), words)


def pairs(videos: Sequence[Path], references: Sequence[Path]) -> list[base.Found]:
    """Single videos as recordings: one reference for each, or one for all."""
    if not references or len(references) not in (1, len(videos)):
        raise ArgumentError(
            "reference", f"{len(references)} files", f"1 or {len(videos)}, one for each video"
        )
    every = list(references) * len(videos) if len(references) == 1 else list(references)
    return [folder.pair(video, label) for video, label in zip(videos, every, strict=True)]


def evaluate_one(dataset: str, found: base.Found, order: MeasureOptions) -> RecordingResult:
    """One recording through the pipeline."""
    recording = base.read(registry.load("datasets", dataset), found)
    started_s = time.process_time()
    result = run(base.Unbroken(recording.video, recording.name), order)
    cpu_s = time.process_time() - started_s
    return against_reference(recording, result, order.window_s, order.step_s, cpu_s)


def against_reference(
    recording: Recording, result: Result, window_s: float, step_s: float, cpu_s: float = 0.0
) -> RecordingResult:
    """Compare what was measured with the reference, window by window."""
    rows = []
    windows = _by_start(result, step_s)
    for index in range(int((result.duration_s - window_s) / step_s + 1e-6) + 1):
        start_s = index * step_s
        truth_bpm = reference_rate.window_bpm(recording.reference, start_s, start_s + window_s)
        if truth_bpm is not None:
            rows.append(_row(windows.get(index), start_s, start_s + window_s, truth_bpm))
    if not rows:
        raise RecordingError(recording.name, f"no window of {window_s:g} s has a reference rate")
    return RecordingResult(
        recording.name,
        recording.subject,
        dict(recording.conditions),
        tuple(rows),
        _whole(recording, result),
        cpu_s,
        result.frame_count,
    )


def _by_start(result: Result, step_s: float) -> dict[int, WindowResult]:
    """The windows by the number of their start; of several faces the one that fills the window best."""
    chosen: dict[int, WindowResult] = {}
    for face in result.faces:
        for window in face.windows:
            index = round(window.start_s / step_s)
            rival = chosen.get(index)
            if rival is None or _weight(window) > _weight(rival):
                chosen[index] = window
    return chosen


def _weight(window: WindowResult) -> float:
    return window.quality.coverage * window.quality.face_px


def _row(window: WindowResult | None, start_s: float, end_s: float, truth_bpm: float) -> Row:
    if window is None:
        return Row(start_s, end_s, truth_bpm, None, 0.0, False, "NO_FACE")
    reading = window.reading
    bpm = reading.bpm if isinstance(reading, Estimate) else window.peak.bpm if window.peak else None
    reason = str(reading.reason) if isinstance(reading, NoReading) else ""
    return Row(start_s, end_s, truth_bpm, bpm, reading.p_ok, isinstance(reading, Estimate), reason)


def _whole(recording: Recording, result: Result) -> dict[str, Comparison]:
    """The wave of the main face against the reference over the whole recording, in both conventions."""
    if not result.faces:
        return {}
    wave = result.faces[0].wave
    values, known = labels_at(recording.reference, wave.t_s)
    valid = wave.valid & known
    if valid.sum() < 2 * wave.fps:
        return {}
    label = Waveform(values, wave.fps, wave.start_s, valid)
    prediction = Waveform(wave.values, wave.fps, wave.start_s, valid)
    found = {name: metrics.compare(prediction, label, name) for name in metrics.CONVENTIONS}
    return {name: comparison for name, comparison in found.items() if comparison is not None}


def mae_interval(evaluation: Evaluation, *, shown: bool) -> metrics.Interval | None:
    """95 % interval of the mean absolute error when subjects are drawn anew; None for a single subject."""
    errors = [
        (result.subject, abs(row.error_bpm))
        for result in evaluation.results
        for row in result.rows
        if row.error_bpm is not None and (row.shown or not shown)
    ]
    if not errors:
        return None
    return metrics.bootstrap(
        lambda e: float(np.mean(e)), [subject for subject, _ in errors], [error for _, error in errors]
    )


def by_condition(evaluation: Evaluation) -> dict[str, dict[str, Scores]]:
    """condition → value → measures over all windows recorded under it."""
    groups: dict[str, dict[str, list[Row]]] = {}
    for result in evaluation.results:
        for kind, value in result.conditions.items():
            groups.setdefault(kind, {}).setdefault(value, []).extend(result.rows)
    return {
        kind: {
            value: score(rows) for value, rows in sorted(values.items(), key=lambda v: base.natural_key(v[0]))
        }
        for kind, values in sorted(groups.items())
    }


def as_json(evaluation: Evaluation, *, ungated: bool = False) -> dict[str, Any]:
    """The whole evaluation; numbers that the gate holds back are null unless `ungated`."""
    per_recording = [score(result.rows) for result in evaluation.results]
    return {
        "stamp": evaluation.stamp,
        "dataset": evaluation.dataset,
        "model": evaluation.model,
        "window_s": evaluation.window_s,
        "step_s": evaluation.step_s,
        "overall": scores_json(score(evaluation.rows())),
        "mae_interval": {
            name: None if found is None else {"low": found.low, "high": found.high, "level": found.level}
            for name, found in (
                ("ungated", mae_interval(evaluation, shown=False)),
                ("gated", mae_interval(evaluation, shown=True)),
            )
        },
        "mean_of_recordings": mean_of_recordings(per_recording),
        "whole_recordings": {
            name: _summary_json(summary) for name, summary in whole_recordings(evaluation).items()
        },
        "conditions": {
            kind: {value: scores_json(scores) for value, scores in values.items()}
            for kind, values in by_condition(evaluation).items()
        },
        "recordings": [
            {
                "name": result.name,
                "subject": result.subject,
                "conditions": result.conditions,
                **scores_json(scores),
                "frames": result.frames,
                "cpu_s": round(result.cpu_s, 3),
                "windows": [_row_json(row, ungated) for row in result.rows],
            }
            for result, scores in zip(evaluation.results, per_recording, strict=True)
        ],
        "excluded": [{"name": p.recording, "problem": p.problem} for p in evaluation.problems],
    }


def mean_of_recordings(per_recording: Sequence[Scores]) -> dict[str, float | None]:
    """Mean absolute error with every recording counting the same, with and without the gate."""
    ungated = [s.ungated.mae.value for s in per_recording if s.ungated is not None]
    gated = [s.gated.mae.value for s in per_recording if s.gated is not None]
    return {
        "ungated_mae": float(np.mean(ungated)) if ungated else None,
        "gated_mae": float(np.mean(gated)) if gated else None,
        "coverage": float(np.mean([s.coverage for s in per_recording])) if per_recording else None,
    }


def scores_json(scores: Scores) -> dict[str, Any]:
    return {
        "count": scores.windows,
        "found": scores.found,
        "shown": scores.shown,
        "coverage": scores.coverage,
        "ungated": _summary_json(scores.ungated),
        "gated": _summary_json(scores.gated),
    }


def _summary_json(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    named = {
        "mae": summary.mae, "rmse": summary.rmse, "mape": summary.mape, "pearson": summary.pearson,
        "within_5": summary.within, "snr_db": summary.snr_db, "macc": summary.macc,
    }  # fmt: skip
    values = {name: None if s is None else {"value": s.value, "error": s.error} for name, s in named.items()}
    return {"count": summary.count, **values}


def whole_recordings(evaluation: Evaluation) -> dict[str, Summary | None]:
    """convention → measures with every recording as one window; None if no recording could be compared."""
    table: dict[str, Summary | None] = {}
    for convention in metrics.CONVENTIONS:
        compared = [r.whole[convention] for r in evaluation.results if convention in r.whole]
        table[convention] = metrics.summarise_comparisons(compared) if compared else None
    return table


def _row_json(row: Row, ungated: bool) -> dict[str, Any]:
    return {
        "start_s": row.start_s,
        "end_s": row.end_s,
        "truth_bpm": row.truth_bpm,
        "bpm": row.bpm if row.shown or ungated else None,
        "p_ok": row.p_ok,
        "reason": row.reason or None,
    }
