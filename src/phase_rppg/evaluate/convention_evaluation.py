"""Evaluate a model on a data set in a named convention, recording by recording.

`phase evaluate --convention NAME` calls this. `phase reproduce` calls the same `evaluate_clip` for its cells.
The gate takes no part: every recording gets a rate.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..datasets import base, cache
from ..datasets.prepare import prepare_one
from ..errors import RecordingError
from ..workers import Job
from . import clip_evaluation, conventions, metrics, predictors, synthetic_stamp
from .conventions import Convention
from .session_evaluation import run_recordings, summary_json


@dataclass(frozen=True, slots=True)
class RecordingComparison:
    """The comparisons of one recording."""

    name: str
    subject: str
    conditions: dict[str, str]
    whole: metrics.Comparison | None  # None: the reference has no rate
    windows: tuple[tuple[float, metrics.Comparison | None], ...]
    key: str  # digest of the recording and of its preparation


@dataclass(frozen=True, slots=True)
class ConventionEvaluation:
    """The results of a model on a data set in one convention."""

    dataset: str
    model: str
    convention: Convention
    window_s: float
    results: tuple[RecordingComparison, ...]
    problems: tuple[RecordingError, ...]
    stamp: str = "REAL DATA"

    def comparisons(self, *, windows: bool = False) -> list[tuple[str, metrics.Comparison]]:
        """Return (subject, comparison) of whole recordings or of their windows."""
        return [
            (one.subject, found)
            for one in self.results
            for found in ([f for _, f in one.windows] if windows else [one.whole])
            if found is not None
        ]


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker process needs for every recording."""

    dataset: str
    model: str
    convention: str
    window_s: float
    prepared: str | None  # folder of prepared clips that are kept
    loader: predictors.Loader | None


def evaluate(
    found: Sequence[base.Found],
    task: Task,
    *,
    workers: int = 1,
    on_done: Callable[[str, RecordingError | None], None] | None = None,
) -> ConventionEvaluation:
    """Compare a model with the reference on every recording; continue after a failure."""
    convention = conventions.get(task.convention)
    predictors.load(task.model, task.loader)  # refuses wrong names before any recording is prepared
    jobs = [Job(one.name, (one, task)) for one in found]
    results, problems = run_recordings(evaluate_recording, jobs, workers, on_done)
    used = [one for one in found if one.name in results]
    stamp = synthetic_stamp.stamp_text(synthetic_stamp.synthetic_flags(used))
    ordered = tuple(results[one.name] for one in used)
    return ConventionEvaluation(
        task.dataset, task.model, convention, task.window_s, ordered, tuple(problems), stamp
    )


def evaluate_recording(found: base.Found, task: Task) -> RecordingComparison:
    """Prepare one recording, predict its waveform and compare it with the reference."""
    convention = conventions.get(task.convention)
    predictor = predictors.load(task.model, task.loader)
    with tempfile.TemporaryDirectory(prefix="phase-evaluate-") as temporary:
        folder = task.prepared or temporary
        settings = clip_evaluation.preparation(convention, clip_evaluation.crop_px(convention, predictor))
        outcome = prepare_one(task.dataset, found, folder, settings)
        if outcome.path is None:
            raise outcome.problem or RecordingError(found.name, "cannot be prepared")
        entry = cache.open_entry(outcome.path, verify=False)
        clip = (entry.pixels, entry.wave, entry.valid, entry.fps)
        result = clip_evaluation.evaluate_clip(clip, predictor, convention, task.window_s)
    if result.whole is None:
        raise RecordingError(found.name, "the reference has no heart rate")
    return RecordingComparison(
        found.name, found.subject, dict(entry.conditions), result.whole, result.windows, entry.key
    )


def summaries(evaluation: ConventionEvaluation) -> dict[str, metrics.Summary | None]:
    """Return the metrics of whole recordings and of windows."""
    found = {
        name: [comparison for _, comparison in evaluation.comparisons(windows=name == "windows")]
        for name in ("whole", "windows")
    }
    return {name: metrics.summarise_comparisons(c) if c else None for name, c in found.items()}


def mae_interval(evaluation: ConventionEvaluation) -> metrics.Interval | None:
    """Return the 95 % bootstrap interval over subjects of the error of whole recordings."""
    found = evaluation.comparisons()
    return metrics.bootstrap(
        lambda e: float(np.mean(e)), [s for s, _ in found], [abs(c.bpm - c.truth_bpm) for _, c in found]
    )


def by_condition(evaluation: ConventionEvaluation) -> dict[str, dict[str, metrics.Summary]]:
    """Return the metrics of whole recordings for every value of every recording condition."""
    groups: dict[str, dict[str, list[metrics.Comparison]]] = {}
    for one in evaluation.results:
        for kind, value in one.conditions.items():
            if one.whole is not None:
                groups.setdefault(kind, {}).setdefault(value, []).append(one.whole)
    return {
        kind: {
            value: metrics.summarise_comparisons(found)
            for value, found in sorted(values.items(), key=lambda item: base.natural_key(item[0]))
        }
        for kind, values in sorted(groups.items())
    }


def as_json(evaluation: ConventionEvaluation, run: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the JSON document; `run` describes how the run can be repeated."""
    interval = mae_interval(evaluation)
    convention = evaluation.convention
    return {
        "stamp": evaluation.stamp,
        "dataset": evaluation.dataset,
        "model": evaluation.model,
        "convention": convention.facts(),
        "window_s": evaluation.window_s,
        **{name: summary_json(found) for name, found in summaries(evaluation).items()},
        "mae_interval": None if interval is None else [interval.low, interval.high],
        "conditions": {
            kind: {value: summary_json(summary) for value, summary in values.items()}
            for kind, values in by_condition(evaluation).items()
        },
        "recordings": [
            {
                "name": one.name,
                "subject": one.subject,
                "conditions": one.conditions,
                "key": one.key,
                **clip_evaluation.comparisons_json(one.whole, one.windows, convention),
            }
            for one in evaluation.results
        ],
        "excluded": [{"name": p.recording, "problem": p.problem} for p in evaluation.problems],
        **({} if run is None else {"run": dict(run)}),
    }
