"""Synthetic films as the session samples them: colours, crops and true rates, without the frames.

Rendering and compressing a film takes most of the time of a calibration. A `SampledFilm` holds all that a
method or a network reads of it. It is stored in a cache, so that a calibration of other weights, of another
method or with other features needs no rendering.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..face.crop import CROP_PX
from ..face.detection_scheduler import DetectionScheduler
from ..fileio import open_arrays, write_bytes
from ..session.clock import Clock
from ..session.config import SessionConfig
from ..session.face_pipeline import FacePipeline
from ..session.face_state import FaceState
from ..session.network_feeder import NetworkFeeder
from ..session.pulse_model import PulseModel
from ..session.results import Event
from ..session.segment import Segment
from ..session.skin_sampler import COLUMNS
from ..session.window_analyzer import WindowAssessor
from ..signal.rate import Peak
from ..synth.clips import GENERATOR
from ..synth.sample import CLIP_FPS
from ..types import BoolArray, ByteArray, FloatArray, Frame, Quality

SAMPLER = 1  # version of what the session samples; a change makes the films of a cache unusable
_MAX_SECONDS = 300.0  # the longest window of a session


@dataclass(frozen=True, slots=True)
class FilmSpec:
    """Which film of a world: its number, length and fixed settings."""

    world: str
    seed: int
    index: int
    seconds: float
    settings: tuple[tuple[str, Any], ...] = ()  # replace what the world draws: ("pulse.present", False)

    @property
    def name(self) -> str:
        """The world with its settings: `handheld,pulse.present=false`."""
        changes = (f",{key}={json.dumps(value)}" for key, value in self.settings)
        return self.world + "".join(changes)

    @property
    def group(self) -> str:
        """The name of the recording; the windows of a recording are not independent."""
        return f"{self.name}/{self.seed}/{self.index}"

    def file(self, folder: Path) -> Path:
        """Return the cache file; its name contains the versions of generator and sampler."""
        versions = f"g{GENERATOR}-s{SAMPLER}-{len(COLUMNS)}"
        changed = hashlib.sha256(self.name.encode()).hexdigest()[:8] if self.settings else "plain"
        return folder / f"{self.world}-{changed}-{self.seed}-{self.index}-{self.seconds:g}s-{versions}.npz"


@dataclass(frozen=True, slots=True, eq=False)
class SampledFilm:
    """What a session keeps of the face of one film, at every tick of the uniform clock."""

    rows: FloatArray  # (T,C) columns of the skin sampler and the background
    seen: BoolArray  # (T,)
    crops: ByteArray  # (T,S,S,3)
    first_tick: int
    frame_times_s: FloatArray  # (N,)
    truth_bpm: FloatArray  # (T,) true rate at each tick; 0 without a pulse

    def write(self, path: Path) -> None:
        """Write the film to a file."""
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            rows=self.rows.astype(np.float32),
            seen=self.seen,
            crops=self.crops,
            first_tick=self.first_tick,
            frame_times_s=self.frame_times_s,
            truth_bpm=self.truth_bpm.astype(np.float32),
        )
        write_bytes(path, buffer.getvalue())


def read(path: Path) -> SampledFilm:
    """Read a film from a file of the cache."""
    with open_arrays(path) as data:
        return SampledFilm(
            rows=data["rows"].astype(float),
            seen=data["seen"],
            crops=data["crops"],
            first_tick=int(data["first_tick"]),
            frame_times_s=data["frame_times_s"],
            truth_bpm=data["truth_bpm"].astype(float),
        )


class _RecordingConfig(SessionConfig):
    """Settings of a session that keeps the crops of the whole film."""

    @property
    def wants_clip(self) -> bool:
        return True


class _RecordingSegment(Segment):
    """A segment that measures no windows and keeps its faces."""

    def __init__(self, config: SessionConfig, shape: tuple[int, ...]) -> None:
        super().__init__(config, DetectionScheduler(), shape)
        self.recorded: list[FacePipeline] = []

    def _complete_windows(self, final: bool = False) -> list[Event]:
        del final
        return []

    def _close(self, face: FacePipeline) -> list[Event]:
        if face.track.confirmed:
            self.recorded.append(face)
        return []


NO_FACE = SampledFilm(
    np.zeros((0, len(COLUMNS) + 3)),
    np.zeros(0, bool),
    np.zeros((0, CROP_PX, CROP_PX, 3), np.uint8),
    0,
    np.zeros(0),
    np.zeros(0),
)


def sample_film(frames: Iterable[ByteArray], times_s: FloatArray, truth_bpm: FloatArray) -> SampledFilm:
    """Return what a session samples of the face that is seen longest; NO_FACE if there is none.

    `truth_bpm` (N,) is the true rate at the time of each frame.
    """
    config = _RecordingConfig(faces="largest", fps=CLIP_FPS, window_s=_MAX_SECONDS, step_s=_MAX_SECONDS)
    segment: _RecordingSegment | None = None
    shown_s: list[float] = []
    for rgb, t_s in zip(frames, times_s, strict=False):
        segment = _RecordingSegment(config, rgb.shape) if segment is None else segment
        segment.push(Frame(rgb, float(t_s)))
        shown_s.append(float(t_s))
    if segment is None:
        return NO_FACE
    segment.finish()
    if not segment.recorded:
        return NO_FACE
    state = max(segment.recorded, key=lambda face: int(face.state.rows()[1].sum())).state
    rows, seen = state.rows()
    clip = state.samples(state.first_tick, state.stop_tick).clip
    crops = np.zeros((len(rows), CROP_PX, CROP_PX, 3), np.uint8) if clip is None else clip.pixels
    ticks_s = shown_s[0] + (state.first_tick + np.arange(len(rows))) / CLIP_FPS
    truth = np.interp(ticks_s, times_s[: len(shown_s)], truth_bpm[: len(shown_s)])
    return SampledFilm(rows, seen, crops, state.first_tick, np.array(shown_s), truth)


@dataclass(frozen=True, slots=True)
class FilmWindow:
    """One window of a film before the gate."""

    start_s: float
    end_s: float
    peak: Peak | None
    quality: Quality
    truth_bpm: float | None  # mean true rate; None without a pulse


def windows(film: SampledFilm, config: SessionConfig, state: FaceState | None = None) -> Iterator[FilmWindow]:
    """Yield the windows that a session with this config measures in the film.

    `state` is the `state_of` the film and the model, if the caller has it already.
    """
    if config.crop_px != CROP_PX or config.fps != CLIP_FPS:
        wanted = f"crops of {CROP_PX} px at {CLIP_FPS:g} frames per second"
        raise ArgumentError("config", f"{config.crop_px} px at {config.fps:g}", wanted)
    if not len(film.rows):
        return
    state = state_of(film, config.model) if state is None else state
    assessor = WindowAssessor(config)
    stop, length = film.first_tick + len(film.rows), config.window_ticks
    stops = range(length, stop + 1, config.step_ticks)
    spans = [(last - length, last) for last in stops if last > film.first_tick]
    for first, last in spans or [(max(film.first_tick, stop - length), stop)]:
        samples = state.samples(first, last)
        if samples.coverage <= 0:
            continue
        reach = config.context_ticks
        context = state.context(first, last, reach) if reach else None
        peak, quality = assessor.assess(samples, assessor.extract_wave(samples), context)
        yield FilmWindow(samples.skin.start_s, samples.end_s, peak, quality, _true_bpm(film, first, last))


def state_of(film: SampledFilm, model: PulseModel | None = None) -> FaceState:
    """Return the buffers of a session at the end of the film, with the output of the network."""
    clock = Clock(CLIP_FPS, _MAX_SECONDS)
    for t_s in film.frame_times_s:
        clock.advance(float(t_s))
    config = SessionConfig(fps=CLIP_FPS, window_s=_MAX_SECONDS, step_s=_MAX_SECONDS)
    state = FaceState(clock, film.first_tick, config)
    state.restore(film.rows, film.seen)
    if model is not None and len(film.rows):
        _run_network(film, model, state)
    return state


def _true_bpm(film: SampledFilm, first: int, stop: int) -> float | None:
    ticks = film.truth_bpm[max(first - film.first_tick, 0) : stop - film.first_tick]
    mean = float(np.mean(ticks)) if len(ticks) else 0.0
    return mean if mean > 0 else None


def _run_network(film: SampledFilm, model: PulseModel, state: FaceState) -> None:
    """Write the output of the network to the state."""

    def write(first: int, values: FloatArray) -> None:
        state.add_wave(first, values, np.ones(len(values)))

    feeder = NetworkFeeder(model, film.first_tick, write)
    for tick, (crop, seen) in enumerate(zip(film.crops, film.seen, strict=True), film.first_tick):
        if seen:
            feeder.push(tick, crop)
        else:
            feeder.restart()
    feeder.run()
    feeder.flush(film.crops[-1], film.first_tick + len(film.crops))
