"""Watch the pipeline at work on worlds whose truth is known: every window before the gate, with its truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import InputError
from ..fileio import read_json, write_json
from ..measurement.measure import MeasureOptions
from ..session import calibration as calibrations
from ..session.config import SessionConfig
from ..session.gate import Gate, in_hindsight
from ..session.results import WindowResult
from ..session.session import Session
from ..signal.rate import Peak
from ..synth import world as worlds
from ..synth.clips import GENERATOR
from ..synth.codec import transcode
from ..synth.film import Film, film
from ..synth.sample import FULL_HEIGHT_PX, stream
from ..types import ByteArray, Frame, Quality, Reading
from ..workers import map_in_order
from .fit_calibration import Observed

FRAME_SHAPE = (288, 352)  # pixels of the filmed picture: height, width


def observe(
    world_name: str,
    seed: int,
    index: int,
    configs: Mapping[str, SessionConfig],
    *,
    seconds: float = 20.0,
    shape: tuple[int, int] = FRAME_SHAPE,
    fixed: Mapping[str, Any] | None = None,
) -> dict[str, list[Observed]]:
    """Film sample `index` of a world once and show it to one ungated session per config."""
    recording, pictures = shoot(world_name, seed, index, seconds=seconds, shape=shape, fixed=fixed)
    sessions = {name: Session(config) for name, config in configs.items()}
    windows: dict[str, list[WindowResult]] = {name: [] for name in configs}
    for rgb, t_s in zip(pictures, recording.t_s, strict=False):
        for name, session in sessions.items():
            windows[name] += _windows(session.push(Frame(rgb, float(t_s))))
    for name, session in sessions.items():
        windows[name] += _windows(session.finish())
    group = f"{world_name}/{seed}/{index}"
    return {
        name: [
            Observed(w.peak, w.quality, truth_bpm(recording, w.start_s, w.end_s), group, w.end_s)
            for w in found
            if w.peak is not None
        ]
        for name, found in windows.items()
    }


def shoot(
    world_name: str,
    seed: int,
    index: int,
    *,
    seconds: float,
    shape: tuple[int, int] = FRAME_SHAPE,
    fixed: Mapping[str, Any] | None = None,
) -> tuple[Film, Iterator[ByteArray]]:
    """Sample `index` of a world as a recording, and its pictures (H,W,3) u8 behind its codec."""
    world = worlds.load(world_name)
    drawn = world.draw(worlds.FrameSpec, stream(world, seed, index, "frame"), fixed)
    height, width = shape
    # The picture is a cut-out of a larger one: the face keeps the pixels it has there.
    fixed = {**(fixed or {}), "frame.face_px": drawn.face_px * FULL_HEIGHT_PX / height}
    recording = film(world, seed, index, seconds=seconds, height=height, width=width, fixed=fixed)
    return recording, transcode(recording.frames(), recording.codec, recording.fps)


def observe_worlds(
    recordings: Mapping[str, int],
    methods: Sequence[str],
    *,
    seed: int,
    seconds: float,
    workers: int = 1,
    alone: bool = False,
    camera: bool = False,
    cache: Path | None = None,
    on_done: Callable[[], None] = lambda: None,
) -> dict[str, list[Observed]]:
    """Every window of so many recordings of each world, by each method; the same for any number of workers.

    `alone` watches networks without a second method at their side; `camera` reads as a camera is read, where
    no window waits for what comes after it. With `cache` (a folder) what was watched is kept there, and an
    interrupted run goes on where it stopped.
    """
    jobs = [
        _Job(name, seed, index, tuple(methods), seconds, alone, camera, cache)
        for index in range(max(recordings.values(), default=0))
        for name, count in recordings.items()
        if index < count
    ]
    found: dict[str, list[Observed]] = {method: [] for method in methods}
    for windows in map_in_order(_watch, jobs, workers, name=lambda job: f"{job.world} {job.index}"):
        on_done()
        for method in methods:
            found[method] += windows[method]
    return found


@dataclass(frozen=True, slots=True)
class _Job:
    world: str
    seed: int
    index: int
    methods: tuple[str, ...]
    seconds: float
    alone: bool
    camera: bool
    cache: Path | None


def _watch(job: _Job) -> dict[str, list[Observed]]:
    """Watch one recording by the methods that have not seen it yet; the others' windows are read back."""
    orders = {
        method: MeasureOptions(method, faces="largest", gated=False, alone=job.alone)
        for method in job.methods
    }
    configs = {method: order.config() for method, order in orders.items()}
    if job.camera:
        configs = {method: config.for_camera() for method, config in configs.items()}
    kept = {method: _kept(job, method, config) for method, config in configs.items()}
    missing = {m: config for m, config in configs.items() if (file := kept[m]) is None or not file.exists()}
    found = {
        method: [from_json(row) for row in read_json(file)]
        for method, file in kept.items()
        if file is not None and method not in missing
    }
    if missing:
        found |= observe(job.world, job.seed, job.index, missing, seconds=job.seconds)
    for method in missing:
        if (file := kept[method]) is not None:
            write_json(file, [asdict(o) for o in found[method]])
    return found


def _kept(job: _Job, method: str, config: SessionConfig) -> Path | None:
    """Where the windows of one method are kept; another network of the same name has another place."""
    if job.cache is None:
        return None
    sha256 = getattr(getattr(config.model, "manifest", None), "sha256", "")
    beside = config.second if config.model is not None else None
    name = "-".join(filter(None, [Path(method).stem, sha256[:8], beside, "camera" if job.camera else None]))
    return job.cache / f"{job.world}-g{GENERATOR}-{job.seed}-{job.index}-{job.seconds:g}s-{name}.json"


def from_json(row: dict[str, Any]) -> Observed:
    """A window as `asdict` wrote it; one that lacks a feature of today cannot be judged."""
    missing = sorted({field.name for field in fields(Quality)} - set(row["quality"]))
    missing += sorted({field.name for field in fields(Observed)} - set(row))
    if missing:
        raise InputError(
            f"a kept window of {row['group']} knows nothing of {', '.join(missing)}: "
            "it is from an older version; delete the folder given as --cache"
        )
    peak, quality = Peak(**row["peak"]), Quality(**row["quality"])
    return Observed(peak, quality, row["truth_bpm"], row["group"], row["end_s"])


def replay(
    observed: Sequence[Observed], method: str, window_s: float = 10.0, *, hindsight: bool = True
) -> list[Reading]:
    """What the gate, as it is shipped, makes of the windows of recordings that `method` was asked to read.

    In hindsight as in a whole video, or as a camera shows them; the windows of a recording follow each other.
    """
    calibration = calibrations.load(method)
    recordings: dict[str, list[int]] = {}
    for index, o in enumerate(observed):
        recordings.setdefault(o.group, []).append(index)
    readings: dict[int, Reading] = {}
    for indices in recordings.values():
        gate, windows = Gate(calibration), list[WindowResult]()
        for o in (observed[index] for index in indices):
            start_s, end_s = o.end_s - window_s, o.end_s
            reading = gate.push(o.peak, o.quality, start_s, end_s)
            windows.append(WindowResult(0, start_s, end_s, reading, o.peak, o.quality))
        readings |= {index: w.reading for index, w in zip(indices, windows, strict=True)}
        if hindsight:
            readings |= {indices[number]: found for number, found in in_hindsight(windows, calibration)}
    return [readings[index] for index in range(len(observed))]


def truth_bpm(recording: Film, start_s: float, end_s: float) -> float | None:
    """The mean true rate within a window; None without a pulse."""
    mean = float(np.mean(recording.bpm(np.arange(start_s, end_s, 1 / 30))))
    return mean if mean > 0 else None


def _windows(events: Sequence[object]) -> list[WindowResult]:
    return [event for event in events if isinstance(event, WindowResult)]
