"""A textured face that sways across a few frames, with the output of face registration and skin sampler."""

from __future__ import annotations

from typing import Any

import numpy as np

from phase_rppg.face.crop import Box, square
from phase_rppg.face.registration import FaceRegistration
from phase_rppg.face.tracker import Track
from phase_rppg.session.skin_sampler import SkinSampler
from phase_rppg.types import ByteArray, FloatArray

HEIGHT, WIDTH = 48, 64
FACE = (20.0, 8.0, 22.0, 28.0)  # where the detector sees it in the first frame
_MS = (0, 30, 70, 100, 130, 180, 200, 230, 270, 300, 330, 410, 430, 470, 500, 530, 560, 590, 620, 650)
T_S = tuple(2 + 0.001 * ms for ms in _MS)  # irregular, as cameras are
RUNS_S, RUN_PX_S = 2.47, np.array([110.0, -40.0])  # in the end the face goes farther than it is followed
LOOKS = {4: (0.9, -0.6, 1.0), 9: (-1.3, 0.8, 1.06)}  # frames with a new box: its error right, down, in size
MARKS = np.array([[6.0, 10.0], [16.0, 10.2], [11.0, 15.0], [7.5, 21.0], [14.5, 21.2]])  # within the face


def describe() -> dict[str, Any]:
    """The frames and what is seen in them, for the page to do the same."""
    frames = [_frame(t_s) for t_s in T_S]
    return {
        "frames": frames,
        "t_s": T_S,
        "square": square(FACE),
        "registration": [_followed(frames, size) for size in (36, 12)],
        "sampler": _measured(frames),
    }


def _path(t_s: float) -> FloatArray:
    """How far the face is from its first place, in pixels."""
    past_s = t_s - T_S[0]
    sway = np.array([5 * np.sin(5 * past_s), 9 * past_s])  # up to 1.5 of 36 cells in a frame
    return sway + RUN_PX_S * max(0.0, t_s - RUNS_S)


def _frame(t_s: float) -> ByteArray:
    y, x, c = np.mgrid[0:HEIGHT, 0:WIDTH, 0:3]
    right, down = _path(t_s)
    u, v = x + 0.5 - right - FACE[0] - FACE[2] / 2, y + 0.5 - down - FACE[1] - FACE[3] / 2
    inside = np.clip(4 * (1 - np.hypot(u / (FACE[2] / 2), v / (FACE[3] / 2))) + 0.5, 0, 1)
    texture = 30 * np.sin(0.7 * u + 0.2 * v) + 25 * np.cos(0.5 * v - 0.3 * u)
    skin = np.array([170.0, 122.0, 100.0])[c] + texture
    wall = np.array([60.0, 70.0, 80.0])[c] + 30 * ((x // 8 + y // 8) % 2)
    return np.rint(wall + inside * (skin - wall)).astype(np.uint8)


def _box(k: int) -> Box:
    """What the detector says in frame k: its last new box, with its error."""
    last = max((look for look in LOOKS if look <= k), default=0)
    right, down, grow = LOOKS.get(last, (0.0, 0.0, 1.0))
    x, y = FACE[:2] + _path(T_S[last]) + np.array([right, down])
    return float(x), float(y), FACE[2] * grow, FACE[3] * grow


def _followed(frames: list[ByteArray], size: int) -> Any:
    registration = FaceRegistration(square(FACE), size, frames[0], T_S[0])
    steps = []
    for k, (rgb, t_s) in enumerate(zip(frames, T_S, strict=True)):
        registration.update(rgb, t_s)
        box = square(_box(k)) if k in LOOKS else None
        if box is not None:
            registration.set_reference(box, rgb)
        steps.append({"set_reference": box, "box": registration.box, "shift": registration.shift,
                      "following_box": registration.following_box, "displacement": registration.displacement,
                      "detection_offset": registration.detection_offset})  # fmt: skip
    return {"size": size, "steps": steps, "picture": registration.picture}


def _measured(frames: list[ByteArray]) -> Any:
    """Rows and squares of every frame; skin and cut picture of the last."""
    sampler = SkinSampler(_track(0), frames[0])
    steps = []
    for k, (rgb, t_s) in enumerate(zip(frames, T_S, strict=True)):
        track = _track(k)
        sampler.update_mask(track, rgb)
        steps.append({"face": track.box, "landmarks": track.landmarks, "row": sampler.sample(rgb, t_s),
                      "box": sampler.box, "shift": sampler.shift})  # fmt: skip
    return {"steps": steps, "skin": sampler.mask, "cut": sampler.crop(frames[-1])}


def _track(k: int) -> Track:
    return Track(0, _box(k), MARKS + FACE[:2] + _path(T_S[k]), T_S[k])
