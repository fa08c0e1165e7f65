"""Prepare a data set for training and evaluation: decode, crop the face, store clips in the cache."""

from __future__ import annotations

import contextlib
import dataclasses
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import registry
from ..errors import ArgumentError, InputError, OutputError, RecordingError
from ..types import BoolArray, FloatArray, Recording, Waveform
from ..workers import LOCAL, Engine, Job, Outcome, WorkerDied, run_jobs
from . import base, cache
from .face_crops import ClipFrame, crop_faces, index_crops, resample_crops, static_crops

MIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of prepared clips; they are a part of the cache key."""

    size: int = 128  # side in pixels
    fps: float = 30.0
    min_coverage: float = (
        0.5  # share of the time with a face and a reference; recordings below it are excluded
    )
    crop: str = "followed"  # or "haar": the face box of the first frame, enlarged, for all frames
    labels: str = "timestamps"  # or "index": every frame once, the reference stretched to their number

    def __post_init__(self) -> None:
        if not 8 <= self.size <= 512:
            raise ArgumentError("size", self.size, "8 … 512 pixels")
        if not 5 <= self.fps <= 240:
            raise ArgumentError("fps", self.fps, "5 … 240")
        if not 0 <= self.min_coverage <= 1:
            raise ArgumentError("min_coverage", self.min_coverage, "0 … 1")
        if self.crop not in ("followed", "haar"):
            raise ArgumentError("crop", self.crop, "followed or haar")
        if self.labels not in ("timestamps", "index"):
            raise ArgumentError("labels", self.labels, "timestamps or index")

    def key_facts(self) -> dict[str, object]:
        """Return what determines the content of an entry; the defaults of later options are left out."""
        later = {"crop": "followed", "labels": "timestamps"}
        return {k: v for k, v in dataclasses.asdict(self).items() if later.get(k) != v}


@dataclass(frozen=True, slots=True)
class RecordingOutcome:
    """The result for one recording."""

    name: str
    path: Path | None  # of its cache entry
    action: str  # built, kept, rebuilt or excluded
    problem: RecordingError | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """The results for all recordings, in the order of the data set."""

    outcomes: tuple[RecordingOutcome, ...]

    @property
    def problems(self) -> list[RecordingError]:
        return [o.problem for o in self.outcomes if o.problem is not None]

    @property
    def died(self) -> list[RecordingError]:
        return [p for p in self.problems if isinstance(p.__cause__, WorkerDied)]

    def count(self, action: str) -> int:
        return sum(o.action == action for o in self.outcomes)


def prepare(
    dataset: str,
    root: str | Path,
    cache_root: str | Path,
    settings: Settings | None = None,
    *,
    workers: int | None = 1,
    engine: Engine = LOCAL,
    allow_outside: bool = False,
    on_done: Callable[[RecordingOutcome], None] | None = None,
) -> Report:
    """Write the recordings of a data set to the cache; valid entries are kept, damaged ones rebuilt.

    If the cache cannot be written, the OutputError of the first entry ends the run. Finished entries stay.
    """
    settings = settings or Settings()
    found = base.find(dataset, root, allow_outside=allow_outside)
    cache.remove_abandoned(cache_root)
    jobs = [Job(one.name, (dataset, one, str(cache_root), settings)) for one in found]
    outcomes: dict[str, RecordingOutcome] = {}
    try:
        with contextlib.closing(run_jobs(prepare_one, jobs, workers, engine=engine)) as running:
            for outcome in running:
                done = _recording_outcome(outcome)
                outcomes[done.name] = done
                if on_done is not None:
                    on_done(done)
    finally:
        cache.remove_abandoned(cache_root)  # of workers that died or were stopped
    report = Report(tuple(outcomes[one.name] for one in found))
    if report.count("excluded") == len(found):
        raise base.no_usable_recording(root, report.problems)
    return report


def _recording_outcome(outcome: Outcome) -> RecordingOutcome:
    if isinstance(outcome.error, OutputError):
        raise outcome.error  # not a fault of the recording: the next one would fail as well
    if outcome.error is not None:
        problem = base.recording_error(outcome.job.name, outcome.error)
        return RecordingOutcome(outcome.job.name, None, "excluded", problem)
    done: RecordingOutcome = outcome.result
    return done


def prepare_one(dataset: str, found: base.Found, cache_root: str, settings: Settings) -> RecordingOutcome:
    """Prepare one recording, or keep its valid cache entry."""
    module = registry.load("datasets", dataset)
    base.check_files(found)
    key = cache.cache_key(
        {
            "dataset": dataset,
            "subject": found.subject,
            "name": found.name,
            "conditions": dict(found.conditions),
            "video": cache.fingerprint(found.video),
            "reference": cache.fingerprint(found.reference),
            "settings": settings.key_facts(),
        }
    )
    target = cache.entry_path(cache_root, dataset, found.name, key)
    action = "built"
    if target.exists():
        try:
            cache.open_entry(target)
            return RecordingOutcome(found.name, target, "kept")
        except InputError:
            action = "rebuilt"
    recording = base.read(module, found)  # also checks the reference
    samples = module.read_reference(found).values if settings.labels == "index" else None
    store(recording, target, key, settings, samples)
    return RecordingOutcome(found.name, target, action)


def store(
    recording: Recording,
    target: Path,
    key: str,
    settings: Settings,
    samples: FloatArray | None = None,
) -> None:
    """Write the cache entry of one recording; if the recording is unusable, nothing is written.

    `samples` are the values of the reference for labels by index.
    """
    with cache.write_entry(target, settings.size) as writer:
        boxes, seen = (
            array("f"),
            bytearray(),
        )  # only these 17 bytes per frame grow with the length of the video
        start_s = 0.0
        for tick in _clip_frames(recording, settings):
            start_s = start_s if seen else tick.t_s
            writer.add(tick.picture)
            boxes.extend(tick.box)
            seen.append(tick.valid)
        if len(seen) < MIN_SECONDS * settings.fps:
            raise RecordingError(recording.name, f"the video is shorter than {MIN_SECONDS:g} s")
        t_s = start_s + np.arange(len(seen)) / settings.fps
        wave, known = (
            reference_at(recording.reference, t_s) if samples is None else stretched(samples, len(seen))
        )
        face = np.frombuffer(seen, bool)
        if (share := float(face.mean())) < settings.min_coverage:
            raise RecordingError(recording.name, f"a face was seen in only {share:.0%} of the video")
        if (share := float(known.mean())) < settings.min_coverage:
            raise RecordingError(recording.name, f"the reference covers only {share:.0%} of the video")
        header = {
            "dataset": recording.dataset,
            "subject": recording.subject,
            "name": recording.name,
            "conditions": dict(recording.conditions),
            "key": key,
            "fps": settings.fps,
            "start_s": start_s,
            "settings": settings.key_facts(),
        }
        writer.finish(header, wave, face & known, np.array(boxes).reshape(-1, 4))


def _clip_frames(recording: Recording, settings: Settings) -> Iterator[ClipFrame]:
    """Return the face crops on the clock of the settings."""
    if settings.crop == "haar":
        crops = static_crops(recording.video, settings.size, recording.name)
    else:
        crops = crop_faces(recording.video, settings.size)
    if settings.labels == "index":
        return index_crops(crops, settings.fps)
    return resample_crops(crops, settings.fps)


def stretched(samples: FloatArray, count: int) -> tuple[FloatArray, BoolArray]:
    """Interpolate a reference by its index to `count` values, first on first and last on last."""
    values = np.asarray(samples, np.float64).ravel()
    places = np.linspace(0, len(values) - 1, count)
    return np.interp(places, np.arange(len(values)), values), np.ones(count, bool)


def reference_at(reference: Waveform, t_s: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Interpolate the reference at times of the video, and return the values and their validity."""
    wave = np.interp(t_s, reference.t_s, reference.values)
    position = (t_s - reference.start_s) * reference.fps
    left = np.clip(np.floor(position + 1e-6).astype(int), 0, len(reference.values) - 1)
    right = np.clip(np.ceil(position - 1e-6).astype(int), 0, len(reference.values) - 1)
    inside = (position > -1e-6) & (position < len(reference.values) - 1 + 1e-6)
    return wave, inside & reference.valid[left] & reference.valid[right]
