"""Evaluate complete sessions: measure each recording and compare each window with the reference.

The reference rate of a window comes from the contact PPG in the same window by the same estimator. Each
window has its rate and whether the gate shows it. One pass therefore gives the errors with and without the
gate.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import registry
from ..datasets import base, folder, reference_rate
from ..datasets.prepare import reference_at
from ..errors import ArgumentError, RecordingError
from ..measurement.measure import MeasureOptions, run
from ..session.pulse_model import PulseModel
from ..session.results import Result, WindowResult
from ..types import Estimate, NoReading, Recording, Waveform
from ..workers import Job, run_jobs
from . import metrics, synthetic_stamp
from .metrics import Comparison, Summary


@dataclass(frozen=True, slots=True)
class Row:
    """One window of one recording."""

    start_s: float
    end_s: float
    truth_bpm: float
    bpm: float | None  # rate before the gate; None without a face or a spectral peak
    p_ok: float
    shown: bool  # whether the rate passes the gate
    reason: str  # why it does not pass

    @property
    def error_bpm(self) -> float | None:
        """Rate minus true rate."""
        return None if self.bpm is None else self.bpm - self.truth_bpm


@dataclass(frozen=True, slots=True)
class RecordingResult:
    """All windows of one recording that have a reference, and the comparison of its whole waveform."""

    name: str
    subject: str
    conditions: dict[str, str]
    rows: tuple[Row, ...]
    whole: Comparison | None  # the whole recording as one window; None without a face or a spectral peak
    cpu_s: float  # without decoding, which runs in its own process
    frames: int


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The results of a model on a data set."""

    dataset: str
    model: str
    window_s: float
    step_s: float
    results: tuple[RecordingResult, ...]
    problems: tuple[RecordingError, ...]
    stamp: str = "REAL DATA"  # origin of the data; see synthetic_stamp

    def rows(self) -> list[Row]:
        """Return the windows of all recordings."""
        return [row for result in self.results for row in result.rows]


@dataclass(frozen=True, slots=True)
class Scores:
    """Metrics of all rates, and of those that pass the gate."""

    windows: int
    found: int
    shown: int
    ungated: Summary | None  # None if there is no rate
    gated: Summary | None

    @property
    def coverage(self) -> float:
        """Share of the windows whose rate passes the gate."""
        return self.shown / self.windows if self.windows else 0.0


def score(rows: Sequence[Row]) -> Scores:
    """Return the metrics of a set of windows, with and without the gate."""
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
    """Measure recordings with a model and compare them with the reference; continue after a failure.

    `loader` opens a checkpoint. It must be a module-level function, because worker processes import it.
    """
    options = MeasureOptions(model, window_s, step_s, alone=alone, loader=loader)
    options.config()  # refuses wrong values before any recording is measured
    jobs = [Job(one.name, (dataset, one, options)) for one in found]
    results, problems = run_recordings(evaluate_recording, jobs, workers, on_done)
    used = [one for one in found if one.name in results]
    ordered = tuple(results[one.name] for one in used)
    stamp = synthetic_stamp.stamp_text(synthetic_stamp.synthetic_flags(used))
    return Evaluation(dataset, model, window_s, step_s, ordered, tuple(problems), stamp)


def run_recordings(
    function: Callable[..., Any],
    jobs: Sequence[Job],
    workers: int,
    on_done: Callable[[str, RecordingError | None], None] | None,
) -> tuple[dict[str, Any], list[RecordingError]]:
    """Run a function for every recording; return the results by name, and the errors of the others."""
    results: dict[str, Any] = {}
    problems: list[RecordingError] = []
    with contextlib.closing(run_jobs(function, jobs, workers)) as running:
        for outcome in running:
            name, problem = outcome.job.name, None
            if outcome.error is not None:
                problem = base.recording_error(name, outcome.error)
                problems.append(problem)
            else:
                results[name] = outcome.result
            if on_done is not None:
                on_done(name, problem)
    return results, problems


def pair_videos(videos: Sequence[Path], references: Sequence[Path]) -> list[base.Found]:
    """Return videos with their references; a single reference belongs to all videos."""
    if not references or len(references) not in (1, len(videos)):
        raise ArgumentError(
            "reference", f"{len(references)} files", f"1 or {len(videos)}, one for each video"
        )
    every = list(references) * len(videos) if len(references) == 1 else list(references)
    return [folder.pair(video, label) for video, label in zip(videos, every, strict=True)]


def evaluate_recording(dataset: str, found: base.Found, options: MeasureOptions) -> RecordingResult:
    """Measure one recording and compare it with its reference."""
    recording = base.read(registry.load("datasets", dataset), found)
    started_s = time.process_time()
    result = run(base.CompleteVideo(recording.video, recording.name), options)
    cpu_s = time.process_time() - started_s
    return compare_with_reference(recording, result, options.window_s, options.step_s, cpu_s)


def compare_with_reference(
    recording: Recording, result: Result, window_s: float, step_s: float, cpu_s: float = 0.0
) -> RecordingResult:
    """Compare a result with the reference, window by window."""
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
        _compare_whole(recording, result),
        cpu_s,
        result.frame_count,
    )


def _by_start(result: Result, step_s: float) -> dict[int, WindowResult]:
    """Return the windows by index; of several faces, the one with the largest visible area."""
    chosen: dict[int, WindowResult] = {}
    for face in result.faces:
        for window in face.windows:
            index = round(window.start_s / step_s)
            other = chosen.get(index)
            if other is None or _visible_size(window) > _visible_size(other):
                chosen[index] = window
    return chosen


def _visible_size(window: WindowResult) -> float:
    return window.quality.coverage * window.quality.face_px


def _row(window: WindowResult | None, start_s: float, end_s: float, truth_bpm: float) -> Row:
    if window is None:
        return Row(start_s, end_s, truth_bpm, None, 0.0, False, "NO_FACE")
    reading = window.reading
    bpm = reading.bpm if isinstance(reading, Estimate) else window.peak.bpm if window.peak else None
    reason = str(reading.reason) if isinstance(reading, NoReading) else ""
    return Row(start_s, end_s, truth_bpm, bpm, reading.p_ok, isinstance(reading, Estimate), reason)


def _compare_whole(recording: Recording, result: Result) -> Comparison | None:
    """Compare the waveform of the main face over the whole recording, with interpolated peaks."""
    if not result.faces:
        return None
    wave = result.faces[0].wave
    values, known = reference_at(recording.reference, wave.t_s)
    valid = wave.valid & known
    if valid.sum() < 2 * wave.fps:
        return None
    label = Waveform(values, wave.fps, wave.start_s, valid)
    return metrics.compare(Waveform(wave.values, wave.fps, wave.start_s, valid), label)


def mae_interval(evaluation: Evaluation, *, shown: bool) -> metrics.Interval | None:
    """Return the 95 % bootstrap interval of the mean absolute error; None for a single subject."""
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
    """Return the metrics of all windows for every value of every recording condition."""
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
    """Return the JSON document; without `ungated`, rates that the gate refused are null."""
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
        "whole_recordings": summary_json(whole_recordings(evaluation)),
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
    """Return the mean over recordings of the mean absolute error, with and without the gate."""
    ungated = [s.ungated.mae.value for s in per_recording if s.ungated is not None]
    gated = [s.gated.mae.value for s in per_recording if s.gated is not None]
    return {
        "ungated_mae": float(np.mean(ungated)) if ungated else None,
        "gated_mae": float(np.mean(gated)) if gated else None,
        "coverage": float(np.mean([s.coverage for s in per_recording])) if per_recording else None,
    }


def scores_json(scores: Scores) -> dict[str, Any]:
    """Return scores as JSON values."""
    return {
        "count": scores.windows,
        "found": scores.found,
        "shown": scores.shown,
        "coverage": scores.coverage,
        "ungated": summary_json(scores.ungated),
        "gated": summary_json(scores.gated),
    }


def summary_json(summary: Summary | None) -> dict[str, Any] | None:
    """Return a summary as JSON values."""
    if summary is None:
        return None
    named = {
        "mae": summary.mae, "rmse": summary.rmse, "mape": summary.mape, "pearson": summary.pearson,
        "within_5": summary.within, "snr_db": summary.snr_db, "macc": summary.macc,
    }  # fmt: skip
    values = {name: None if s is None else {"value": s.value, "error": s.error} for name, s in named.items()}
    return {"count": summary.count, **values}


def whole_recordings(evaluation: Evaluation) -> Summary | None:
    """Return the metrics of whole recordings; None if no recording could be compared."""
    compared = [result.whole for result in evaluation.results if result.whole is not None]
    return metrics.summarise_comparisons(compared) if compared else None


def _row_json(row: Row, ungated: bool) -> dict[str, Any]:
    return {
        "start_s": row.start_s,
        "end_s": row.end_s,
        "truth_bpm": row.truth_bpm,
        "bpm": row.bpm if row.shown or ungated else None,
        "p_ok": row.p_ok,
        "reason": row.reason or None,
    }
