"""A track is one person: its box is stable, it survives short absences, and it ends when ambiguous."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phase_rppg.face.detection_scheduler import detection_due
from phase_rppg.face.detector import Detection
from phase_rppg.face.tracker import FORGET_AFTER_S, LOST_AFTER_S, Tracker

STEP_S = 0.1


def face(x: float, y: float = 100.0, width: float = 80.0, score: float = 0.9) -> Detection:
    """A detection with its centre at (x, y)."""
    height = 1.3 * width
    return Detection((x - width / 2, y - height / 2, width, height), score, np.full((5, 2), (x, y)))


def run(tracker: Tracker, start_s: float, stop_s: float, *places: object) -> float:
    """Update with faces from start to stop, at an x or a function of time; return the last time."""
    for t_s in np.arange(start_s, stop_s - 1e-9, STEP_S):
        xs = [place(t_s) if callable(place) else place for place in places]
        tracker.update(t_s, [face(x) for x in xs if x is not None])
    return float(t_s)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_jitter_does_not_move_the_crop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tracker = Tracker()
    tracker.update(0.0, [face(100)])
    box = tracker.tracks[0].box
    for i in range(1, 60):
        x, y, width = np.array([100, 100, 80]) + rng.normal(0, 0.008 * 80, 3)
        tracker.update(i * 0.5, [face(x, y, width)])
    assert tracker.tracks[0].box == box


def test_a_moving_face_is_followed_by_one_track() -> None:
    tracker = Tracker()
    run(tracker, 0, 6, lambda t: 100 + 30 * t)
    (track,) = tracker.tracks
    assert track.id == 0
    assert abs(track.box[0] + track.box[2] / 2 - (100 + 30 * 5.9)) < 0.1 * 80


def test_people_keep_their_own_ids_in_any_order_of_detection() -> None:
    tracker = Tracker()
    for i in range(20):
        pair = [face(100 + i), face(300 - i)]
        tracker.update(i * STEP_S, pair if i % 2 else pair[::-1])
    left, right = sorted(tracker.tracks, key=lambda track: track.box[0])
    first = {0: left.id, 1: right.id}
    assert sorted(first.values()) == [0, 1]
    assert abs(left.box[0] + 40 - 119) < 5


def test_a_short_absence_changes_nothing_and_a_long_one_loses_the_face() -> None:
    tracker = Tracker()
    run(tracker, 0, 2, 100)
    run(tracker, 2, 2 + LOST_AFTER_S - 0.2)
    assert not tracker.tracks[0].lost
    run(tracker, 2 + LOST_AFTER_S - 0.2, 4)
    assert tracker.tracks[0].lost
    assert tracker.present == []


def test_a_face_that_returns_to_its_place_is_the_same() -> None:
    tracker = Tracker()
    run(tracker, 0, 2, 100)
    run(tracker, 2, 5)
    changes = tracker.update(5.0, [face(110)])
    assert [track.id for track in changes.found_again] == [0]


@pytest.mark.parametrize(
    ("x", "width", "away_s"), [(260, 80, 3.0), (100, 140, 3.0), (100, 80, FORGET_AFTER_S + 2)]
)
def test_a_face_elsewhere_or_of_other_size_or_much_later_is_another(
    x: float, width: float, away_s: float
) -> None:
    tracker = Tracker()
    run(tracker, 0, 2, 100)
    run(tracker, 2, 2 + away_s)
    changes = tracker.update(2 + away_s, [face(x, width=width)])
    assert [track.id for track in changes.born] == [1]
    assert changes.found_again == ()


def test_crossing_faces_never_swap() -> None:
    """Two faces pass each other; while they overlap only one is seen. No id may pass to another face."""
    tracker = Tracker()
    ended: set[int] = set()
    owners: dict[int, set[str]] = {}
    for t_s in np.arange(0, 8, STEP_S):
        ann, ben = 60 + 30 * t_s, 300 - 30 * t_s
        seen = {"ann": ann, "ben": ben}
        if abs(ann - ben) < 60:
            del seen["ben"]  # hidden behind ann
        changes = tracker.update(float(t_s), [face(x) for x in seen.values()])
        ended |= {track.id for track in changes.ended}
        for track in tracker.present:
            for name, x in seen.items():
                if abs(track.box[0] + track.box[2] / 2 - x) < 8 and track.last_seen_s == t_s:
                    owners.setdefault(track.id, set()).add(name)
    apart = {i: names for i, names in owners.items() if len(names) > 1}
    assert all(i in ended for i in apart), owners  # ambiguous only while they meet, and such a track ends
    final = {track.id for track in tracker.present}
    assert final.isdisjoint({0, 1})


def test_a_single_false_positive_leaves_no_track() -> None:
    tracker = Tracker()
    tracker.update(0.0, [face(100)])
    run(tracker, 0.1, 2)
    assert tracker.tracks == []


def test_a_box_inside_a_face_is_not_a_second_face() -> None:
    tracker = Tracker()
    tracker.update(0.0, [face(100), face(105, 110, 30, score=0.75)])
    assert len(tracker.tracks) == 1


def test_the_number_of_tracks_is_bounded() -> None:
    tracker = Tracker(max_tracks=3)
    tracker.update(0.0, [face(100 * i) for i in range(10)])
    assert len(tracker.tracks) == 3


def test_detection_is_rare_for_still_faces_and_frequent_for_moving_or_missing_ones() -> None:
    tracker = Tracker()
    tracker.update(0.0, [face(100)])
    assert detection_due(tracker, 0.21)  # only one detection so far
    tracker.update(0.21, [face(100)])
    assert not detection_due(tracker, 0.7)
    assert detection_due(tracker, 1.1)
    assert detection_due(tracker, 0.42, shift=0.1)
    tracker.update(1.1, [])
    assert detection_due(tracker, 1.21)
