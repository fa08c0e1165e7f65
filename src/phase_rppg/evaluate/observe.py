"""Watch the pipeline at work on worlds whose truth is known: every window before the gate, with its truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..pipeline.api import Order
from ..pipeline.config import SessionConfig
from ..pipeline.result import WindowResult
from ..pipeline.session import Session
from ..synth import world as worlds
from ..synth.codec import transcode
from ..synth.film import Film, film
from ..synth.work import in_order
from ..types import Frame
from .calibrate import Observed

FRAME_SHAPE = (240, 320)  # pixels of the filmed picture: height, width


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
    height, width = shape
    recording = film(
        worlds.load(world_name), seed, index, seconds=seconds, height=height, width=width, fixed=fixed
    )
    pictures = transcode(recording.frames(), recording.codec, recording.fps)
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
            Observed(w.peak, w.quality, truth_bpm(recording, w.start_s, w.end_s), group)
            for w in found
            if w.peak is not None
        ]
        for name, found in windows.items()
    }


def observe_worlds(
    world_names: Sequence[str],
    count: int,
    methods: Sequence[str],
    *,
    seed: int,
    seconds: float,
    workers: int = 1,
    on_done: Callable[[], None] = lambda: None,
) -> dict[str, list[Observed]]:
    """Every window of `count` recordings of each world, by each method; the same whatever the number of
    workers.
    """
    jobs = [(name, seed, index, tuple(methods), seconds) for index in range(count) for name in world_names]
    found: dict[str, list[Observed]] = {method: [] for method in methods}
    for windows in in_order(_job, jobs, workers):
        on_done()
        for method in methods:
            found[method] += windows[method]
    return found


def _job(job: tuple[str, int, int, tuple[str, ...], float]) -> dict[str, list[Observed]]:
    name, seed, index, methods, seconds = job
    configs = {method: Order(method, faces="largest", gated=False).config() for method in methods}
    return observe(name, seed, index, configs, seconds=seconds)


def truth_bpm(recording: Film, start_s: float, end_s: float) -> float | None:
    """The mean true rate within a window; None without a pulse."""
    mean = float(np.mean(recording.bpm(np.arange(start_s, end_s, 1 / 30))))
    return mean if mean > 0 else None


def _windows(events: Sequence[object]) -> list[WindowResult]:
    return [event for event in events if isinstance(event, WindowResult)]
