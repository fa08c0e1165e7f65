"""Synthetic recordings: full frames with timestamps, and a simulated contact PPG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..types import ByteArray, FloatArray
from .codec import CodecSpec
from .crop import true_boxes
from .render import frames
from .sample import DrawnScene, draw_scene, random_stream
from .world import World


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticRecording:
    """A recording that is rendered each time its frames are read. Its clock starts with the first frame."""

    drawn: DrawnScene
    t_s: FloatArray  # (T,) timestamps, starting at 0
    start_s: float  # of the first frame, on the clock of the scene
    source: tuple[World, int, int]  # world, seed, index

    def frames(self) -> Iterator[ByteArray]:
        """Render the frames (H,W,3) u8, without the codec."""
        world, seed, index = self.source
        pictures = frames(self.drawn.scene, random_stream(world, seed, index, "noise"))
        for _, picture in zip(self.t_s, pictures, strict=False):
            yield picture

    def wave(self, t_s: FloatArray, person: int = 0) -> FloatArray:
        """Return the contact PPG at any times: blood volume, upstroke positive, 0 without a pulse."""
        if not self.drawn.has_pulse:
            return np.zeros(len(t_s))
        return self.drawn.pulses[person].at(t_s + self.start_s)

    def bpm(self, t_s: FloatArray, person: int = 0) -> FloatArray:
        """Return the true instantaneous rate; 0 without a pulse."""
        if not self.drawn.has_pulse:
            return np.zeros(len(t_s))
        pulse = self.drawn.pulses[person]
        rate: FloatArray = np.interp(t_s + self.start_s, pulse.t_s, pulse.bpm)
        return rate

    def beats_s(self, person: int = 0) -> FloatArray:
        if not self.drawn.has_pulse:
            return np.zeros(0)
        beats = self.drawn.pulses[person].beat_times_s - self.start_s
        return beats[(beats >= 0) & (beats <= self.t_s[-1])]

    def boxes(self, person: int = 0) -> FloatArray:
        """Return the face box (T,4) of a perfect detector, in pixels."""
        return true_boxes(self.drawn.scene.actors[person])[: len(self.t_s)]

    @property
    def codec(self) -> CodecSpec:
        return self.drawn.codec

    @property
    def fps(self) -> float:
        """The mean frame rate."""
        return (len(self.t_s) - 1) / float(self.t_s[-1]) if len(self.t_s) > 1 else 30.0

    @property
    def people(self) -> int:
        return len(self.drawn.scene.actors)


def make_recording(
    world: World,
    seed: int,
    index: int,
    *,
    seconds: float,
    height: int = 480,
    width: int = 640,
    faces: Path | None = None,
    fixed: Mapping[str, Any] | None = None,
    identity: int | None = None,
) -> SyntheticRecording:
    """Draw recording `index` of a world. Recordings with the same `identity` show the same people."""
    drawn = draw_scene(
        world, seed, index, seconds, shape=(height, width), faces=faces, fixed=fixed, identity=identity
    )
    t_s = drawn.scene.t_s - drawn.scene.t_s[0]
    return SyntheticRecording(
        drawn, t_s[t_s < seconds - 1e-6], float(drawn.scene.t_s[0]), (world, seed, index)
    )
