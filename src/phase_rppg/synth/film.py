"""Whole recordings: full frames with time stamps, and the finger clip that ran beside the camera."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..types import ByteArray, FloatArray
from .codec import CodecSpec
from .follow import true_boxes
from .render import frames
from .sample import Staged, stage, stream
from .world import World


@dataclass(frozen=True, slots=True, eq=False)
class Film:
    """A recording that can be watched once or many times; its clock starts with the first frame."""

    staged: Staged
    t_s: FloatArray  # (T,) time stamps, 0 first
    start_s: float  # of the first frame, on the clock of the staged scene
    noise: tuple[World, int, int]

    def frames(self) -> Iterator[ByteArray]:
        """(H,W,3) u8 before any codec."""
        world, seed, index = self.noise
        pictures = frames(self.staged.scene, stream(world, seed, index, "noise"))
        for _, picture in zip(self.t_s, pictures, strict=False):
            yield picture

    def wave(self, t_s: FloatArray, person: int = 0) -> FloatArray:
        """The finger clip at any times: blood volume, upstroke positive; flat without a pulse."""
        if not self.staged.has_pulse:
            return np.zeros(len(t_s))
        return self.staged.pulses[person].at(t_s + self.start_s)

    def bpm(self, t_s: FloatArray, person: int = 0) -> FloatArray:
        """True instantaneous rate; 0 without a pulse."""
        if not self.staged.has_pulse:
            return np.zeros(len(t_s))
        pulse = self.staged.pulses[person]
        rate: FloatArray = np.interp(t_s + self.start_s, pulse.t_s, pulse.bpm)
        return rate

    def beats_s(self, person: int = 0) -> FloatArray:
        if not self.staged.has_pulse:
            return np.zeros(0)
        beats = self.staged.pulses[person].beat_times_s - self.start_s
        return beats[(beats >= 0) & (beats <= self.t_s[-1])]

    def boxes(self, person: int = 0) -> FloatArray:
        """(T,4) where a perfect detector would see the face, in pixels."""
        return true_boxes(self.staged.scene.actors[person])[: len(self.t_s)]

    @property
    def codec(self) -> CodecSpec:
        return self.staged.codec

    @property
    def fps(self) -> float:
        """Mean frame rate."""
        return (len(self.t_s) - 1) / float(self.t_s[-1]) if len(self.t_s) > 1 else 30.0

    @property
    def people(self) -> int:
        return len(self.staged.scene.actors)


def film(
    world: World,
    seed: int,
    index: int,
    *,
    seconds: float,
    height: int = 480,
    width: int = 640,
    faces: Path | None = None,
    fixed: Mapping[str, Any] | None = None,
    who: int | None = None,
) -> Film:
    """Recording `index` of a world; recordings with the same `who` show the same people."""
    staged = stage(world, seed, index, seconds, shape=(height, width), faces=faces, fixed=fixed, who=who)
    t_s = staged.scene.t_s - staged.scene.t_s[0]
    return Film(staged, t_s[t_s < seconds - 1e-6], float(staged.scene.t_s[0]), (world, seed, index))
