"""What a person's network and methods are shown: the face, wherever it went."""

from __future__ import annotations

import numpy as np

from drawing import Actor, Film, clock
from phase_rppg.face.crop import AreaCrop, square
from phase_rppg.face.detector import Detector
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.session import Session
from phase_rppg.types import ByteArray, FloatArray

MIDDLE = (slice(None), slice(9, -9), slice(9, -9))  # of the pictures: the face, and nothing of the wall


class Album:
    """A network that keeps every picture that it was shown; all of its copies share one album."""

    name, fps, size, delay_frames = "album", 30.0, 36, 0

    def __init__(self, shown: list[ByteArray]) -> None:
        self.shown = shown

    def fresh(self) -> Album:
        return Album(self.shown)

    def step(self, crops: ByteArray) -> FloatArray:
        self.shown.extend(crops)
        return np.zeros(len(crops))


def test_a_network_sees_a_face_that_sways_stand_still() -> None:
    """Measured: 18 % of what changes in a crop that stands still."""
    actor = Actor(lambda t: (100 + 6 * np.sin(np.pi * t), 80 + 3 * np.sin(2 * np.pi * t)), 80, amplitude=0.0)
    frames = list(Film((actor,), clock(5), height=160, width=200, noise=1.0).frames())
    detector, shown = Detector(), list[ByteArray]()
    session = Session(SessionConfig(model=Album(shown)), detector)
    for frame in frames:
        session.push(frame)
    session.finish()
    (face,) = detector.detect(frames[0].rgb)
    crop = AreaCrop(square(face.box), Album.size, frames[0].rgb.shape)
    standing = np.stack([crop.mean(frame.rgb) for frame in frames])
    going = np.stack(shown).astype(float)
    assert len(going) == len(frames)
    assert going[MIDDLE].std(0).mean() < 0.3 * standing[MIDDLE].std(0).mean()


def test_the_path_of_a_face_is_where_it_went() -> None:
    actor = Actor(lambda t: (100 + 6 * np.sin(np.pi * t), 80 + 3 * np.sin(2 * np.pi * t)), 80, amplitude=0.0)
    session = Session(SessionConfig(model=Album([])))
    frames = list(Film((actor,), clock(5), height=160, width=200, noise=1.0).frames())
    for frame in frames:
        session.push(frame)
    (person,) = session.present
    path = person.path(3.0)  # (90,2)
    t_s = np.array([frame.t_s for frame in frames])[-len(path) :]
    went = np.stack([6 * np.sin(np.pi * t_s), 3 * np.sin(2 * np.pi * t_s)], 1) / person.track.box[2]
    assert path.shape == (90, 2)
    off = (path - path.mean(0)) - (went - went.mean(0))
    assert np.abs(off).max() < 0.15 * np.ptp(went)
    assert len(person.path(1.0)) == 30
    assert np.array_equal(person.path(1.0), path[-30:])
