"""Watch the pipeline at work on worlds whose truth is known: every window before the gate, with its truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..pipeline.config import SessionConfig
from ..pipeline.result import WindowResult
from ..pipeline.session import Session
from ..synth import world as worlds
from ..synth.codec import transcode
from ..synth.sample import Staged, filmed, stage
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
    world = worlds.load(world_name)
    staged = stage(world, seed, index, seconds, shape=shape, fixed=fixed)
    scene = staged.scene
    pictures = transcode(filmed(staged, world, seed, index), staged.codec, scene.camera.fps)
    sessions = {name: Session(config) for name, config in configs.items()}
    windows: dict[str, list[WindowResult]] = {name: [] for name in configs}
    for rgb, t_s in zip(pictures, scene.t_s, strict=False):
        for name, session in sessions.items():
            windows[name] += _windows(session.push(Frame(rgb, float(t_s))))
    for name, session in sessions.items():
        windows[name] += _windows(session.finish())
    group = f"{world_name}/{seed}/{index}"
    return {
        name: [
            Observed(w.peak, w.quality, truth_bpm(staged, w.start_s, w.end_s), group)
            for w in found
            if w.peak is not None
        ]
        for name, found in windows.items()
    }


def truth_bpm(staged: Staged, start_s: float, end_s: float) -> float | None:
    """The mean true rate within a window; None without a pulse."""
    if not staged.has_pulse:
        return None
    pulse = staged.pulses[0]
    inside = (pulse.t_s >= start_s) & (pulse.t_s <= end_s)
    return float(np.mean(pulse.bpm[inside])) if inside.any() else None


def _windows(events: Sequence[object]) -> list[WindowResult]:
    return [event for event in events if isinstance(event, WindowResult)]
