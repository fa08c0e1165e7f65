"""A textured rectangle as a face, a detector that knows where it is, and a network that plays a script.

Sessions over these frames take a fraction of a second, and every colour of every frame is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from phase_rppg.face.crop import Box
from phase_rppg.face.detector import LONG_SIDE_PX, Detection
from phase_rppg.session.results import Event, WindowResult
from phase_rppg.session.session import Session
from phase_rppg.types import ByteArray, FloatArray, Frame

HEIGHT, WIDTH = 60, 80
FACE: Box = (24.0, 8.0, 32.0, 40.0)
SKIN = np.array([180.0, 130.0, 105.0])
BLOOD = np.array([0.33, 0.77, 0.53])  # relative pulsation of red, green and blue
FPS = 30.0


def detection(box: Box = FACE, score: float = 0.9) -> Detection:
    """A face with its landmarks at the usual places of the box."""
    x, y, width, height = box
    places = np.array([[0.3, 0.4], [0.7, 0.4], [0.5, 0.6], [0.35, 0.8], [0.65, 0.8]])
    return Detection(box, score, places * (width, height) + (x, y))


class FixedDetector:
    """Finds the same faces in every picture, and counts its calls."""

    def __init__(self, *boxes: Box) -> None:
        self.boxes = boxes or (FACE,)
        self.sides: list[int] = []

    def detect(self, rgb: ByteArray, long_side_px: int = LONG_SIDE_PX) -> list[Detection]:
        self.sides.append(long_side_px)
        return [detection(box) for box in self.boxes]

    def search(self, rgb: ByteArray) -> list[Detection]:
        return self.detect(rgb)


def seconds(duration_s: float, fps: float = FPS) -> FloatArray:
    return np.arange(round(duration_s * fps)) / fps


def tone(t_s: FloatArray, bpm: float) -> FloatArray:
    return np.sin(2 * np.pi * bpm / 60 * t_s)


def frames(t_s: FloatArray, blood: FloatArray, wall: FloatArray | None = None) -> list[Frame]:
    """Frames at times t_s (T,) of a face with `blood` (T,): 0.01 darkens green by 0.77 %.

    `wall` (T,) is the relative brightness of everything beside the face.
    """
    rng = np.random.default_rng(0)
    still = 110 + rng.normal(0, 12, (HEIGHT, WIDTH, 1)) * np.ones(3)
    x, y, width, height = (int(value) for value in FACE)
    face = SKIN + rng.normal(0, 8, (height, width, 1))
    made = []
    for index, time_s in enumerate(t_s):
        picture = still * (1.0 if wall is None else wall[index])
        picture[y : y + height, x : x + width] = face * (1 - blood[index] * BLOOD)
        made.append(Frame(np.clip(np.rint(picture), 0, 255).astype(np.uint8), float(time_s)))
    return made


def run(session: Session, source: Sequence[Frame]) -> list[Event]:
    return [event for frame in source for event in session.push(frame)] + session.finish()


def windows(events: Sequence[Event]) -> list[WindowResult]:
    return [event for event in events if isinstance(event, WindowResult)]


@dataclass
class ScriptedModel:
    """A network that answers frame n of a face with script(n / fps), whatever it is shown."""

    script: Callable[[FloatArray], FloatArray]
    delay_frames: int = 0
    name: str = "scripted"
    fps: float = FPS
    size: int = 12
    count: int = 0

    def fresh(self) -> ScriptedModel:
        return ScriptedModel(self.script, self.delay_frames, self.name, self.fps, self.size)

    def step(self, crops: ByteArray) -> FloatArray:
        index = np.arange(self.count, self.count + len(crops)) - self.delay_frames
        self.count += len(crops)
        return np.asarray(self.script(index / self.fps))


@dataclass(frozen=True)
class Held:
    """Frames from memory."""

    kept: list[Frame]

    def frames(self) -> Iterator[Frame]:
        return iter(self.kept)
