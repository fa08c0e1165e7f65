"""A cut to another person ends the track in the same frame; everything else does not."""

from __future__ import annotations

import numpy as np
import pytest

from phase_rppg import synth
from phase_rppg.face.face_change import FaceChange
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import Event, FaceEvent, WindowResult
from phase_rppg.session.session import Session
from phase_rppg.synth.recording import make_recording
from phase_rppg.types import ByteArray, Frame

FPS, HEIGHT, WIDTH = 30, 180, 240


def film(world: str, seed: int, seconds: float, **fixed: object) -> list[ByteArray]:
    values = {"frame.face_px": 250.0, "camera.fps": 30.0, "camera.jitter": 0.0, **fixed}
    size = {"height": HEIGHT, "width": WIDTH}
    made = make_recording(synth.load(world), seed, 0, seconds=seconds, fixed=values, **size)
    return [rgb.copy() for rgb in made.frames()]


def run(frames: list[ByteArray]) -> list[Event]:
    session = Session(SessionConfig(method="pos", faces="largest"))
    events = [event for i, rgb in enumerate(frames) for event in session.push(Frame(rgb, i / FPS))]
    return events + session.finish()


def test_a_cut_ends_the_track_in_its_frame_and_no_window_spans_both_people() -> None:
    still = {"motion.kind": "fixed", "light.kind": "constant"}
    first = film("studio", 7, 4, **still, **{"subject.fitzpatrick": 2})
    second = film("studio", 3, 4, **still, **{"subject.fitzpatrick": 4})
    cut_s = len(first) / FPS
    events = run([*first, *second])
    changes = [(event.face, event.kind) for event in events if isinstance(event, FaceEvent)]
    assert changes == [(0, "appeared"), (0, "ended"), (1, "appeared")]
    ended = next(event for event in events if isinstance(event, FaceEvent) and event.kind == "ended")
    assert ended.t_s == pytest.approx(cut_s, abs=1e-6)
    windows = {event.face: event for event in events if isinstance(event, WindowResult)}
    assert windows[0].reading.end_s <= cut_s + 0.1
    assert windows[1].reading.start_s >= cut_s - 0.1


@pytest.mark.parametrize("world", ["talk", "handheld", "flicker_face"])
def test_one_person_stays_one_track(world: str) -> None:
    for step in (1, 3):  # also at ten frames per second
        frames = film(world, 2, 4)[::step]
        session = Session(SessionConfig(method="pos", faces="largest"))
        events = [e for i, rgb in enumerate(frames) for e in session.push(Frame(rgb, i * step / FPS))]
        assert [e.kind for e in events if isinstance(e, FaceEvent)] == ["appeared"]


def test_something_in_front_of_the_face_is_forgiven_when_it_goes_away() -> None:
    rng = np.random.default_rng(1)
    face, hand = (np.repeat(np.repeat(rng.uniform(40, 200, (9, 9, 3)), 4, 0), 4, 1) for _ in range(2))
    change = FaceChange(face)
    seen = []
    for picture in (face, 0.7 * face, hand, hand, face):  # a darker picture is the same face
        change.update(picture, 1 / FPS)
        seen.append(change.changed)
    assert seen == [False, False, True, True, False]
