"""Measure recordings of synthetic worlds and collect every window before the gate, with its true rate.

`replay` applies the gate of `session.gate` to such windows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..measurement.measure import MeasureOptions
from ..session import calibration as calibrations
from ..session.config import SessionConfig
from ..session.gate import Gate, in_hindsight
from ..session.results import WindowResult
from ..synth import world as worlds
from ..synth.codec import transcode
from ..synth.recording import SyntheticRecording, make_recording
from ..synth.sample import FULL_HEIGHT_PX, random_stream
from ..types import ByteArray, Reading
from ..workers import map_in_order
from . import films, observation_cache
from .films import FilmSpec, SampledFilm
from .fit_calibration import ObservedWindow

FRAME_SHAPE = (288, 352)  # height and width of the generated video in pixels


def observe(
    spec: FilmSpec,
    configs: Mapping[str, SessionConfig],
    *,
    cache: Path | None = None,
    modes: Sequence[str] = ("file",),
) -> dict[str, list[ObservedWindow]]:
    """Measure one film without a gate, with one session for each config and mode.

    The mode "file" uses the config as it is, "camera" measures each window without the signal after it.
    """
    film = sampled_film(spec, cache)
    return {name: _observe_film(film, spec, config, modes) for name, config in configs.items()}


def _observe_film(
    film: SampledFilm, spec: FilmSpec, config: SessionConfig, modes: Sequence[str]
) -> list[ObservedWindow]:
    state = films.state_of(film, config.model)  # a network runs once for all modes
    return [
        ObservedWindow(w.peak, w.quality, w.truth_bpm, spec.group, w.end_s, mode)
        for mode in modes
        for w in films.windows(film, config if mode == "file" else config.for_camera(), state)
        if w.peak is not None
    ]


def generate(
    world_name: str,
    seed: int,
    index: int,
    *,
    seconds: float,
    shape: tuple[int, int] = FRAME_SHAPE,
    fixed: Mapping[str, Any] | None = None,
) -> tuple[SyntheticRecording, Iterator[ByteArray]]:
    """Return recording `index` of a world and its frames (H,W,3) u8 after compression."""
    world = worlds.load(world_name)
    drawn = world.draw(worlds.FrameSpec, random_stream(world, seed, index, "frame"), fixed)
    height, width = shape
    # The frame is a part of a larger one, so the size of the face in pixels does not change.
    fixed = {**(fixed or {}), "frame.face_px": drawn.face_px * FULL_HEIGHT_PX / height}
    recording = make_recording(world, seed, index, seconds=seconds, height=height, width=width, fixed=fixed)
    return recording, transcode(recording.frames(), recording.codec, recording.fps)


def sampled_film(spec: FilmSpec, cache: Path | None = None) -> SampledFilm:
    """Return a film as the session samples it, from the cache if it is there."""
    file = None if cache is None else spec.file(cache)
    if file is not None and file.exists():
        return films.read(file)
    recording, frames = generate(
        spec.world, spec.seed, spec.index, seconds=spec.seconds, fixed=dict(spec.settings)
    )
    film = films.sample_film(frames, recording.t_s, recording.bpm(recording.t_s))
    if file is not None:
        film.write(file)
    return film


def film_specs(
    recordings: Mapping[str, int], *, seed: int, seconds: float | Sequence[float]
) -> list[FilmSpec]:
    """Return the films of each world, the first of every world first.

    The keys of `recordings` are worlds, with settings after commas: `handheld,pulse.present=false`. Several
    lengths are used in turn.
    """
    lengths = list(seconds) if isinstance(seconds, Sequence) else [seconds]
    specs = []
    for index in range(max(recordings.values(), default=0)):
        for name, count in recordings.items():
            if index < count:
                world, *changes = name.split(",")
                settings = tuple(sorted(worlds.parse_setting(change) for change in changes))
                specs.append(FilmSpec(world, seed, index, lengths[index % len(lengths)], settings))
    return specs


def observe_worlds(
    recordings: Mapping[str, int],
    methods: Sequence[str],
    *,
    seed: int,
    seconds: float | Sequence[float],
    workers: int = 1,
    alone: bool = False,
    modes: Sequence[str] = ("file",),
    cache: Path | None = None,
    on_done: Callable[[], None] = lambda: None,
) -> dict[str, list[ObservedWindow]]:
    """Return the windows of recordings of each world by each method; `workers` does not change them.

    `recordings` and `seconds` are those of `film_specs`. `alone` measures networks without a second method.
    The mode "file" measures as a file, "camera" without later frames. `cache` is a folder for the films and
    their windows; an interrupted run continues from it, and a run with another method renders no film again.
    """
    specs = film_specs(recordings, seed=seed, seconds=seconds)
    jobs = [_Job(spec, tuple(methods), alone, tuple(modes), cache) for spec in specs]
    found: dict[str, list[ObservedWindow]] = {method: [] for method in methods}
    with contextlib.closing(
        map_in_order(_observe_job, jobs, workers, name=lambda job: job.spec.group)
    ) as running:
        for windows in running:
            on_done()
            for method in methods:
                found[method] += windows[method]
    return found


@dataclass(frozen=True, slots=True)
class _Job:
    spec: FilmSpec
    methods: tuple[str, ...]
    alone: bool
    modes: tuple[str, ...]
    cache: Path | None


def _observe_job(job: _Job) -> dict[str, list[ObservedWindow]]:
    """Return the windows of one recording by each method, in every mode; from the cache if they are there."""
    found: dict[str, list[ObservedWindow]] = {}
    film: SampledFilm | None = None
    for method in job.methods:
        file = job.cache and observation_cache.file_of(job.spec, method, job.modes, job.alone, job.cache)
        known = observation_cache.read(file, job.spec) if file else None
        if known is None:
            film = sampled_film(job.spec, job.cache) if film is None else film
            config = MeasureOptions(method, faces="largest", gated=False, alone=job.alone).config()
            known = _observe_film(film, job.spec, config, job.modes)
            if file:
                observation_cache.write(file, known)
        found[method] = known
    return found


def replay(
    observed: Sequence[ObservedWindow], method: str, window_s: float = 10.0, *, hindsight: bool = True
) -> list[Reading]:
    """Return the readings of windows by the bundled gate of `method`.

    With `hindsight` the readings are those of a whole video, otherwise those of a camera. The windows of a
    recording must be in order of time.
    """
    calibration = calibrations.load(method)
    recordings: dict[str, list[int]] = {}
    for index, o in enumerate(observed):
        recordings.setdefault(f"{o.group} {o.mode}", []).append(index)
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
