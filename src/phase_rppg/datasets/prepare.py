"""Prepare a data set for training and evaluation: decode, follow the face, crop, store clips in the cache."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import registry
from ..errors import ArgumentError, InputError, RecordingError
from ..types import BoolArray, FloatArray, Recording, Waveform
from ..workers import Job, WorkerDied, run_jobs
from . import base, cache
from .face_crops import follow, onto_clock

MIN_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What the clips look like; part of the key under which they are stored."""

    size: int = 128  # pixels a side
    fps: float = 30.0
    min_coverage: float = 0.5  # recordings with a face (and reference) in less of their time are left out

    def __post_init__(self) -> None:
        if not 8 <= self.size <= 512:
            raise ArgumentError("size", self.size, "8 … 512 pixels")
        if not 5 <= self.fps <= 240:
            raise ArgumentError("fps", self.fps, "5 … 240")
        if not 0 <= self.min_coverage <= 1:
            raise ArgumentError("min_coverage", self.min_coverage, "0 … 1")


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one recording."""

    name: str
    path: Path | None  # its entry
    action: str  # built, kept, rebuilt or excluded
    problem: RecordingError | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What became of every recording, in the order of the data set."""

    outcomes: tuple[Done, ...]

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
    workers: int = 1,
    on_done: Callable[[Done], None] | None = None,
) -> Report:
    """Fill the cache with the recordings of a data set; sound entries are kept, damaged ones rebuilt."""
    settings = settings or Settings()
    found = base.find(dataset, root)
    cache.sweep(cache_root)
    jobs = [Job(one.name, (dataset, one, str(cache_root), settings)) for one in found]
    outcomes: dict[str, Done] = {}
    for outcome in run_jobs(prepare_one, jobs, workers):
        name, done = outcome.job.name, outcome.result
        if outcome.error is not None:
            done = Done(name, None, "excluded", base.recording_error(name, outcome.error))
        outcomes[name] = done
        if on_done is not None:
            on_done(done)
    report = Report(tuple(outcomes[one.name] for one in found))
    if report.count("excluded") == len(found):
        raise base.nothing_left(root, report.problems)
    return report


def prepare_one(dataset: str, found: base.Found, cache_root: str, settings: Settings) -> Done:
    """Prepare one recording, or keep the sound entry that is already there."""
    module = registry.load("datasets", dataset)
    for what, path in (("video", found.video), ("reference", found.reference)):
        if not path.exists():
            raise RecordingError(found.name, f"the {what} is missing ({path})")
    key = cache.key_of(
        {
            "dataset": dataset,
            "subject": found.subject,
            "name": found.name,
            "conditions": dict(found.conditions),
            "video": cache.fingerprint(found.video),
            "reference": cache.fingerprint(found.reference),
            "settings": dataclasses.asdict(settings),
        }
    )
    target = cache.place(cache_root, dataset, found.name, key)
    action = "built"
    if target.exists():
        try:
            cache.open_entry(target)
            return Done(found.name, target, "kept")
        except InputError:
            action = "rebuilt"
    store(base.read(module, found), target, key, settings)
    return Done(found.name, target, action)


def store(recording: Recording, target: Path, key: str, settings: Settings) -> None:
    """Write one recording's entry; too little face, or no end of the video, leaves nothing behind."""
    with cache.writing(target, settings.size) as writer:
        boxes, seen = array("f"), bytearray()  # 17 bytes per frame are all that grows with the video
        start_s = 0.0
        for tick in onto_clock(follow(recording.video, settings.size), settings.fps):
            start_s = start_s if seen else tick.t_s
            writer.add(tick.picture)
            boxes.extend(tick.box)
            seen.append(tick.valid)
        if len(seen) < MIN_SECONDS * settings.fps:
            raise RecordingError(recording.name, f"the video is shorter than {MIN_SECONDS:g} s")
        t_s = start_s + np.arange(len(seen)) / settings.fps
        wave, known = labels_at(recording.reference, t_s)
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
            "settings": dataclasses.asdict(settings),
        }
        writer.finish(header, wave, face & known, np.array(boxes).reshape(-1, 4))


def labels_at(reference: Waveform, t_s: FloatArray) -> tuple[FloatArray, BoolArray]:
    """The reference at these times of the video's clock, and whether it is known there."""
    wave = np.interp(t_s, reference.t_s, reference.values)
    position = (t_s - reference.start_s) * reference.fps
    left = np.clip(np.floor(position + 1e-6).astype(int), 0, len(reference.values) - 1)
    right = np.clip(np.ceil(position - 1e-6).astype(int), 0, len(reference.values) - 1)
    inside = (position > -1e-6) & (position < len(reference.values) - 1 + 1e-6)
    return wave, inside & reference.valid[left] & reference.valid[right]
