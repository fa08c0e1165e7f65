"""A little film that Python and the page can both draw, with a detector and a network that are one line each.

Pixel (0,0) says whether a face is there and pixel (0,1) where it is, so the detector is a function of the
picture alone. Everything is integer arithmetic or plain doubles: both languages get the same bytes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from phase_rppg.face.detector import Detection
from phase_rppg.types import ByteArray, FloatArray, Frame

HEIGHT, WIDTH = 48, 64
SECONDS = 19
FACE_W, FACE_H = 34.0, 40.0
AWAY_S = (12.0, 15.0)  # nobody is there
SKIN, CUT_SKIN, CUT_FRAME = (150.0, 105.0, 85.0), (110.0, 70.0, 50.0), 330
PAUSE_FRAME, PAUSE_S = 480, 0.8  # the camera stumbles once
MARKS = ((9.0, 15.0), (24.0, 15.0), (17.0, 22.0), (11.0, 30.0), (23.0, 30.0))  # landmarks within the face


def times_s() -> list[float]:
    """Irregular, as cameras are, with one pause."""
    return [
        i / 30 + 0.004 * ((i * 7) % 5) + (PAUSE_S if i >= PAUSE_FRAME else 0.0) for i in range(30 * SECONDS)
    ]


def frame(i: int, t_s: float, bpm: float, strength: float, cut: bool = False) -> Frame:
    """Return picture i: a skin-coloured disc that pulsates, drifts a little and is away for a while.

    With a cut, another face takes its place from `CUT_FRAME` on.
    """
    y, x, c = np.mgrid[0:HEIGHT, 0:WIDTH, 0:3]
    left = 12 + (2 if i > 150 else 0)
    inside = ((x - left - 17) / 17) ** 2 + ((y - 22) / 20) ** 2 <= 1
    away = AWAY_S[0] <= t_s < AWAY_S[1]
    beat = strength * math.sin(2 * math.pi * bpm / 60 * t_s)
    another = cut and i >= CUT_FRAME
    colour, stripes = (CUT_SKIN, 30.0 * (y // 6 % 2)) if another else (SKIN, 0.5 * (x % 3))
    skin = np.array(colour)[c] - beat * np.array([0.3, 0.9, 0.5])[c] + stripes
    level = np.where(inside & (not away), skin, np.array([60.0, 70.0, 80.0])[c] + (x // 8 + y // 8) % 2 * 30)
    noise = 3 * ((x * (73 + i) + y * (151 + 5 * i) + i * i * 37 + c * 17) % 97) / 97
    rgb = np.floor(level + noise).astype(np.uint8)
    rgb[0, 0], rgb[0, 1] = (0 if away else 1), left
    return Frame(rgb, t_s)


class ScriptedDetector:
    """Reads the answer off the picture."""

    def detect(self, rgb: ByteArray, _long_side_px: int = 0) -> list[Detection]:
        if rgb[0, 0, 0] != 1:
            return []
        left, top = float(rgb[0, 1, 0]), 2.0
        marks: FloatArray = np.add(MARKS, (left, top))
        return [Detection((left, top, FACE_W, FACE_H), 0.9, marks)]

    def search(self, rgb: ByteArray) -> list[Detection]:
        return self.detect(rgb)


class MeanGreen:
    """A network of no layers: the mean green of the crop, two frames late."""

    name, fps, size, delay_frames = "mean-green", 30.0, 12, 2

    def __init__(self) -> None:
        self._waiting = [0.0] * self.delay_frames

    def fresh(self) -> MeanGreen:
        return MeanGreen()

    def step(self, crops: ByteArray) -> FloatArray:
        self._waiting += [100 - float(crop[:, :, 1].mean()) for crop in crops]
        done = self._waiting[: len(crops)]
        del self._waiting[: len(crops)]
        return np.array(done)


def describe() -> dict[str, Any]:
    """The constants that the page needs to draw the same film."""
    return {
        "height": HEIGHT, "width": WIDTH, "face": [FACE_W, FACE_H], "away_s": AWAY_S, "marks": MARKS,
        "times_s": times_s(), "skin": SKIN, "cut_skin": CUT_SKIN, "cut_frame": CUT_FRAME,
    }  # fmt: skip
