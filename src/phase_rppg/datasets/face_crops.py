"""Follow the face of a recording from frame to frame and cut it out, in bounded memory.

The recordings of a data set show one person: when there are several faces the largest is followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..face.crop import CROP_PX, AreaCrop, Box, square, to_bytes
from ..face.detector import Detector
from ..face.registration import FaceRegistration
from ..face.tracker import Track, Tracker
from ..signal.uniform_clock import UniformClock
from ..types import ByteArray, FloatArray, FrameSource

_ALWAYS_LOOK = 1.0  # shift that makes the tracker look at its fastest pace: nothing here is in a hurry


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """One frame of a recording, reduced to the face."""

    t_s: float
    picture: FloatArray  # (S,S,3) f32, 0–255
    box: Box  # what the picture shows
    present: bool  # False: there was no face, and the picture shows where it was last (or nothing)
    landmarks: FloatArray | None  # (5,2) at the last detection
    face: Box | None  # the detector's box


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """One moment of a uniform clock."""

    t_s: float
    picture: ByteArray  # (S,S,3) u8
    box: FloatArray  # (4,)
    valid: bool


def follow(video: FrameSource, size: int, detector: Detector | None = None) -> Iterator[Seen]:
    """Every frame of a video as a square picture that goes with the main face, as `phase measure` cuts it."""
    detector = detector or Detector()
    tracker = Tracker()
    main: Track | None = None
    followed: tuple[Track, FaceRegistration] | None = None
    shape: tuple[int, ...] = ()
    crop: AreaCrop | None = None
    for frame in video.frames():
        if tracker.due(frame.t_s, _ALWAYS_LOOK):
            tracker.update(frame.t_s, detector.detect(frame.rgb))
            main = _main(tracker, main)
        present = main is not None and not main.lost
        if present and main is not None:
            if followed is None or followed[0] is not main or shape != frame.rgb.shape:
                followed = (main, FaceRegistration(square(main.box), CROP_PX, frame.rgb, frame.t_s))
            shape = frame.rgb.shape
            crop = AreaCrop(followed[1].go(square(main.box), frame.rgb, frame.t_s), size, shape)
        else:
            followed = None
        if crop is None:
            yield Seen(frame.t_s, np.zeros((size, size, 3), np.float32), (0, 0, 0, 0), False, None, None)
            continue
        landmarks, face = (main.landmarks, main.box) if main is not None else (None, None)
        yield Seen(frame.t_s, crop.mean(frame.rgb), crop.box, present, landmarks, face)


def _main(tracker: Tracker, main: Track | None) -> Track | None:
    """Stay with the face that is followed while it is there; else take the largest."""
    present = tracker.present
    if main is not None and any(track is main for track in present):
        return main
    return max(present, key=lambda track: track.box[2] * track.box[3], default=None)


def onto_clock(seen: Iterator[Seen], fps: float) -> Iterator[Tick]:
    """Blend neighbouring pictures linearly in time onto a uniform clock that starts with the first frame."""
    clock = UniformClock(fps)
    before: Seen | None = None
    for after in seen:
        before = before or after
        step = clock.advance(after.t_s)
        usable = before.present and after.present and step.seen
        for tick, share in enumerate(step.shares, step.first):
            blend = before.picture + np.float32(share) * (after.picture - before.picture)
            box = np.array(before.box if share < 0.5 else after.box)
            yield Tick(clock.time_s(tick), to_bytes(np.clip(blend, 0, 255)), box, usable)
        before = after
