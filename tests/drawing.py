"""Faces drawn with a few ellipses: enough for the detector, and fast; no picture of a person is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from phase_rppg.types import ByteArray, FloatArray, Frame

SKIN = np.array([198.0, 150.0, 128.0])
FACE_ASPECT = 1.35  # height over width


def _blob(x: FloatArray, y: FloatArray, cx: float, cy: float, rx: float, ry: float) -> FloatArray:
    return np.clip((1.0 - np.hypot((x - cx) / rx, (y - cy) / ry)) * min(rx, ry) * 40 + 0.5, 0, 1)[..., None]


def portrait(
    width: int = 120, tint: FloatArray | float = 1.0, skin: FloatArray = SKIN
) -> tuple[FloatArray, FloatArray]:
    """A head: (colour (h,w,3), alpha (h,w,1)), `tint` multiplies the skin."""
    height = int(width * 1.6)
    y, x = np.mgrid[0:height, 0:width]
    x, y = (x + 0.5) / width * 2 - 1, ((y + 0.5) / height * 2 - 1) * 1.6  # face units: half width = 1
    shade = (1 - 0.25 * x**2 - 0.08 * (y - 0.1) ** 2 + 0.08 * np.exp(-((x * 5) ** 2) - (y - 0.2) ** 2 * 6))[
        ..., None
    ]
    colour = np.broadcast_to(np.asarray(skin) * tint, (height, width, 3)) * shade
    dark, white, lip = np.array([35.0, 28, 26]), np.array([235.0, 232, 228]), np.array([150.0, 70, 72])

    def paint(mask: FloatArray, what: FloatArray) -> None:
        nonlocal colour
        colour = colour * (1 - mask) + what * mask

    for side in (-1, 1):
        paint(0.5 * _blob(x, y, side * 0.4, -0.12, 0.27, 0.17), colour * 0.7)
        paint(_blob(x, y, side * 0.4, -0.1, 0.17, 0.075), white)
        paint(_blob(x, y, side * 0.4, -0.1, 0.075, 0.075), dark)
        paint(0.9 * _blob(x, y, side * 0.4, -0.32, 0.24, 0.055), dark)
        paint(0.6 * _blob(x, y, side * 0.1, 0.36, 0.07, 0.04), colour * 0.5)
    paint(0.35 * _blob(x, y, 0.13, 0.15, 0.07, 0.3), colour * 0.8)
    paint(_blob(x, y, 0.0, 0.68, 0.34, 0.1), lip)
    paint(_blob(x, y, 0.0, 0.68, 0.3, 0.018), lip * 0.5)
    face = _blob(x, y, 0.0, 0.1, 0.82, 1.2)
    hair = _blob(x, y, 0.0, -0.25, 0.98, 1.15)
    colour = colour * face + np.array([48.0, 34, 26]) * (1 - face)
    return colour, np.maximum(face, hair)


def put(frame: FloatArray, head: tuple[FloatArray, FloatArray], x: float, y: float) -> None:
    """Place a head with its centre at (x, y), cut at the border."""
    colour, alpha = head
    height, width = alpha.shape[:2]
    left, top = round(x - width / 2), round(y - height / 2)
    x0, y0, x1, y1 = (
        max(left, 0),
        max(top, 0),
        min(left + width, frame.shape[1]),
        min(top + height, frame.shape[0]),
    )
    if x0 >= x1 or y0 >= y1:
        return
    part = (slice(y0 - top, y1 - top), slice(x0 - left, x1 - left))
    frame[y0:y1, x0:x1] += alpha[part] * (colour[part] - frame[y0:y1, x0:x1])


def room(height: int = 240, width: int = 320) -> FloatArray:
    """An empty background with some structure."""
    y, x = np.mgrid[0:height, 0:width]
    shade = 110 + 25 * np.sin(x / 37) + 20 * np.cos(y / 23)
    return shade[..., None] * np.array([0.9, 1.0, 1.05])


@dataclass(frozen=True)
class Actor:
    """A drawn person: where at each time (None: out of the picture), and the pulse."""

    place: Callable[[float], tuple[float, float] | None]
    width: int = 110
    bpm: float = 72.0
    amplitude: float = 0.01  # relative change of green
    skin: tuple[float, float, float] = (198.0, 150.0, 128.0)


@dataclass(frozen=True)
class Film:
    """A source of drawn frames; times may be anything that rises."""

    actors: tuple[Actor, ...]
    t_s: tuple[float, ...]
    height: int = 240
    width: int = 320
    noise: float = 2.0
    light: Callable[[float], float] = lambda t: 1.0
    grey: bool = False

    def frames(self) -> Iterator[Frame]:
        background = room(self.height, self.width)
        heads = [_affine(actor) for actor in self.actors]
        rng = np.random.default_rng(0)
        pool = rng.normal(0, self.noise, (self.height + 64, self.width + 64, 3))
        for t in self.t_s:
            picture = background.copy()
            for actor, (features, flesh, alpha) in zip(self.actors, heads, strict=True):
                where = actor.place(t)
                if where is not None:
                    pulse = np.sin(2 * np.pi * actor.bpm / 60 * t)
                    tint = 1 - actor.amplitude * pulse * np.array([0.35, 1.0, 0.6])
                    put(picture, (features + tint * flesh, alpha), *where)
            picture *= self.light(t)
            dy, dx = rng.integers(0, 64, 2)
            picture += pool[dy : dy + self.height, dx : dx + self.width]
            if self.grey:
                picture[:] = picture.mean(-1, keepdims=True)
            yield Frame(as_bytes(picture), t)


def _affine(actor: Actor) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A head whose colour is features + tint · flesh: (features, flesh, alpha)."""
    whole, alpha = portrait(actor.width, 1.0, np.array(actor.skin))
    features, _ = portrait(actor.width, 0.0, np.array(actor.skin))
    return features, whole - features, alpha


def as_bytes(picture: FloatArray) -> ByteArray:
    return np.clip(np.rint(picture), 0, 255).astype(np.uint8)


def still(x: float = 160, y: float = 125) -> Callable[[float], tuple[float, float]]:
    return lambda t: (x, y)


def clock(seconds: float, fps: float = 30.0, start_s: float = 0.0) -> tuple[float, ...]:
    return tuple(start_s + np.arange(round(seconds * fps)) / fps)
