"""A session and its results survive pickling; a restored session continues as the original would."""

from __future__ import annotations

import pickle
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from phase_rppg.face.detector import Detector
from phase_rppg.infer import onnx
from phase_rppg.measurement.offline import measure
from phase_rppg.session.config import SessionConfig
from phase_rppg.session.results import Event, FacePosition, WavePiece
from phase_rppg.session.session import Session
from plain_face import FixedDetector, Held, frames, seconds, tone

pytestmark = pytest.mark.smoke


def plain(event: Event) -> Any:
    """Return an event as values that can be compared."""
    if isinstance(event, WavePiece):
        return event.face, event.wave.start_s, event.wave.values.tolist(), event.wave.valid.tolist()
    if isinstance(event, FacePosition):
        return event.face, event.t_s, event.box, event.landmarks.tolist()
    return asdict(event)


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("cut_s", [0.0, 5.3, 11.0])
def test_a_restored_session_continues_with_the_same_events(network: bool, cut_s: float) -> None:
    t_s = seconds(13)
    source = frames(t_s, 0.01 * tone(t_s, 75))
    config = SessionConfig(model=onnx.load() if network else None, context_s=2.0, gated=False)
    detector: Any = FixedDetector()
    session = Session(config, detector)
    cut = round(30 * cut_s)
    for frame in source[:cut]:
        session.push(frame)
    restored = pickle.loads(pickle.dumps(session))
    events = [
        [e for frame in source[cut:] for e in one.push(frame)] + one.finish() for one in (session, restored)
    ]
    assert len(events[0]) > 5
    assert list(map(plain, events[0])) == list(map(plain, events[1]))


def test_faces_of_a_restored_session_share_one_graph() -> None:
    model = onnx.load()
    one, other = pickle.loads(pickle.dumps((model, model.fresh())))
    assert one._graph is other._graph


def test_a_detector_is_restored() -> None:
    assert pickle.loads(pickle.dumps(Detector(0.6))).min_score == 0.6


def test_a_result_is_restored() -> None:
    t_s = seconds(12)
    source = Held(frames(t_s, 0.01 * tone(t_s, 75)))
    detector: Any = FixedDetector()
    result = measure(source, SessionConfig(gated=False), detector=detector)
    restored = pickle.loads(pickle.dumps(result))
    assert restored.to_dict() == result.to_dict()
    (face,), (mine,) = restored.faces, result.faces
    np.testing.assert_array_equal(face.wave.values, mine.wave.values)
    np.testing.assert_array_equal(face.thumbnail, mine.thumbnail)
    np.testing.assert_array_equal(face.boxes.boxes, mine.boxes.boxes)
