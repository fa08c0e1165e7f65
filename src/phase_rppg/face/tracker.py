"""Matching faces over time: each person is one track, and tracks of two persons are never joined.

The box of a track stays constant while the face stays within a dead zone. Detector boxes jitter by about 1 %,
and a crop with this jitter adds a false rhythm to the colour. When the assignment of detections to tracks is
ambiguous, the tracks end and new tracks begin.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..types import FloatArray
from .crop import Box
from .detector import Detection, overlap

LOST_AFTER_S = 1.0  # a face without detection for longer is lost
FORGET_AFTER_S = 10.0  # a lost face that returns later gets a new track
MAX_TRACKS = 8
DEAD_ZONE = 0.04  # a smaller shift of the face leaves the box unchanged, in face widths
_DEAD_ZONE_SIZE = 0.08  # the same for a change of size, as a logarithm
_SMOOTHING = 0.5  # weight of the latest detection in the average offset
_GATE = 0.5  # largest distance of a detection of the same face, in face widths
_GATE_GROWTH_PER_S = 1.0  # the gate widens while the face is not detected …
_GATE_GROWS_AFTER_S = 0.5  # … for longer than this
_GATE_SIZE = math.log(1.6)
_RETURN_GATE_SIZE = math.log(1.3)


@dataclass(slots=True, eq=False)
class Track:
    """One face: its box, and the time of its last detection."""

    id: int
    box: Box  # constant within the dead zone; the crop is taken from it
    landmarks: FloatArray  # (5,2) at the last detection
    last_seen_s: float  # time of the last detection
    detection_count: int = 1
    lost: bool = False
    moved_s: float = -math.inf  # time of the last change of `box`
    # Exponential moving average of the offset from `box`: x, y, log size.
    _smooth: FloatArray = field(default_factory=lambda: np.zeros(3))

    @property
    def confirmed(self) -> bool:
        """Return whether there was more than one detection; a single one may be a false positive."""
        return self.detection_count > 1

    def distance(self, box: Box) -> tuple[float, float]:
        """Return the distance of a box: (between centres in face widths, absolute log of the size ratio)."""
        offset = _offset(self.box, box)
        return float(math.hypot(offset[0], offset[1])), abs(float(offset[2]))

    def add_detection(self, t_s: float, found: Detection) -> bool:
        """Add a detection and return whether `box` changed."""
        self.last_seen_s, self.detection_count, self.lost = t_s, self.detection_count + 1, False
        self.landmarks = found.landmarks
        offset = _offset(self.box, found.box)
        self._smooth += _SMOOTHING * (offset - self._smooth)
        shift, size = math.hypot(offset[0], offset[1]), abs(offset[2])
        smooth_shift, smooth_size = math.hypot(self._smooth[0], self._smooth[1]), abs(self._smooth[2])
        if min(shift, smooth_shift) <= DEAD_ZONE and min(size, smooth_size) <= _DEAD_ZONE_SIZE:
            return False
        self.box, self.moved_s = found.box, t_s
        self._smooth = np.zeros(3)
        return True

    def resume(self, t_s: float, found: Detection) -> None:
        """Continue a lost track with a new detection."""
        self.add_detection(t_s, found)
        self.box, self.moved_s = found.box, t_s


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of one update. A lost track may be found again; an ended one may not."""

    born: tuple[Track, ...] = ()
    moved: tuple[Track, ...] = ()
    lost: tuple[Track, ...] = ()
    found_again: tuple[Track, ...] = ()
    ended: tuple[Track, ...] = ()


class Tracker:
    """Assigns detections to tracks; `detection_scheduler.detection_due` says when to detect."""

    def __init__(self, max_tracks: int = MAX_TRACKS) -> None:
        self.tracks: list[Track] = []  # in order of creation; lost ones included until FORGET_AFTER_S
        self.max_tracks = max_tracks
        self.next_id = 0  # id of the next new track
        self.last_detection_s = -math.inf  # time of the last call of `update`

    @property
    def present(self) -> list[Track]:
        """Return the tracks that are not lost."""
        return [track for track in self.tracks if not track.lost]

    def update(self, t_s: float, detections: Sequence[Detection], replaced: Collection[int] = ()) -> Changes:
        """Assign the detections of the picture at `t_s` to tracks.

        `replaced` are the ids of tracks whose picture changed at once. If a face is detected there, it is
        another one: the track ends, and a new one begins.
        """
        self.last_detection_s = t_s
        ended = self._remove_old(t_s)
        found = _remove_nested(detections)
        matches = [[t for t in self.present if self._matches(t, d, t_s)] for d in found]
        ambiguous = {id(t) for tracks in matches if len(tracks) > 1 for t in tracks}
        ambiguous |= self._with_several_matches(found, matches)
        ambiguous |= {id(t) for tracks in matches for t in tracks if t.id in replaced}
        ended += [t for t in self.tracks if id(t) in ambiguous]
        self.tracks = [t for t in self.tracks if id(t) not in ambiguous]

        born, moved, again = [], [], []
        taken: set[int] = set()
        for detection, matching in zip(found, matches, strict=True):
            track = next((t for t in matching if id(t) not in ambiguous and t.id not in taken), None)
            if track is not None:
                taken.add(track.id)
                if track.add_detection(t_s, detection):
                    moved.append(track)
            elif (back := self._find_lost(detection, found)) is not None and back.id not in taken:
                taken.add(back.id)
                back.resume(t_s, detection)
                again.append(back)
            elif len(self.present) < self.max_tracks:
                new = Track(self.next_id, detection.box, detection.landmarks, t_s)
                self.next_id += 1
                taken.add(new.id)
                self.tracks.append(new)
                born.append(new)
        lost, dropped = self._mark_lost(t_s)
        return Changes(tuple(born), tuple(moved), tuple(lost), tuple(again), tuple(ended + dropped))

    def _matches(self, track: Track, found: Detection, t_s: float) -> bool:
        """Return whether the detection is within the gate of the track."""
        gate = min(_GATE + _GATE_GROWTH_PER_S * max(t_s - track.last_seen_s - _GATE_GROWS_AFTER_S, 0), 1.0)
        shift, size = track.distance(found.box)
        return shift < gate and size < _GATE_SIZE

    def _with_several_matches(self, found: Sequence[Detection], matches: list[list[Track]]) -> set[int]:
        """Return the ids of tracks that match more than one detection."""
        ambiguous: set[int] = set()
        for track in self.present:
            mine = [d for d, matching in zip(found, matches, strict=True) if track in matching]
            if len(mine) > 1:
                ambiguous.add(id(track))
        return ambiguous

    def _find_lost(self, detection: Detection, found: Sequence[Detection]) -> Track | None:
        """Return the lost track with the position and size of the detection, if the match is unique."""

        def agrees(track: Track, box: Box) -> bool:
            shift, size = track.distance(box)
            return shift < _GATE and size < _RETURN_GATE_SIZE

        back = [track for track in self.tracks if track.lost and agrees(track, detection.box)]
        if len(back) != 1 or sum(agrees(back[0], other.box) for other in found) != 1:
            return None
        return back[0]

    def _mark_lost(self, t_s: float) -> tuple[list[Track], list[Track]]:
        """Return (newly lost tracks, unconfirmed tracks that were removed)."""
        gone = [t for t in self.present if t_s - t.last_seen_s > LOST_AFTER_S]
        dropped = [t for t in gone if not t.confirmed]
        self.tracks = [t for t in self.tracks if t not in dropped]
        lost = [t for t in gone if t.confirmed]
        for track in lost:
            track.lost = True
        return lost, dropped

    def _remove_old(self, t_s: float) -> list[Track]:
        """Remove and return the tracks that are lost for longer than FORGET_AFTER_S."""
        old = [t for t in self.tracks if t.lost and t_s - t.last_seen_s > FORGET_AFTER_S]
        self.tracks = [t for t in self.tracks if t not in old]
        return old


def _offset(box: Box, other: Box) -> FloatArray:
    """Return the offset between two boxes: x, y of the centres in widths of the first, log size ratio."""
    x, y, width, height = box
    ox, oy, other_width, other_height = other
    size = math.sqrt(width * height)
    return np.array(
        [
            (ox + other_width / 2 - x - width / 2) / width,
            (oy + other_height / 2 - y - height / 2) / width,
            math.log(math.sqrt(other_width * other_height) / size),
        ]
    )


def _remove_nested(detections: Sequence[Detection]) -> list[Detection]:
    """Remove boxes inside one with a higher score: an eye or a chin that was detected as a face."""
    kept: list[Detection] = []
    for candidate in sorted(detections, key=lambda d: -d.score):
        area = candidate.box[2] * candidate.box[3]
        if not any(
            _intersection_area(candidate.box, other.box) > 0.7 * min(area, other.box[2] * other.box[3])
            for other in kept
        ):
            kept.append(candidate)
    return kept


def _intersection_area(a: Box, b: Box) -> float:
    ratio = overlap(a, b)  # intersection / (A + B − intersection)
    return ratio / (1 + ratio) * (a[2] * a[3] + b[2] * b[3])
