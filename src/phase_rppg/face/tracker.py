"""Follow faces from picture to picture: each person is one track, and tracks are never spliced.

A crop is held still while the face is: the detector's boxes jitter by about one percent, and a crop that
jitters with them puts a false rhythm into the colour. It moves only when the face has left its dead zone.
When it is not certain who is who, the tracks end and new ones begin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..types import FloatArray
from .crop import Box
from .detector import Detection, overlap

LOST_AFTER_S = 1.0  # not seen for so long: the face is gone
FORGET_AFTER_S = 10.0  # a face that comes back later than this is a new one
MAX_TRACKS = 8
STILL_INTERVAL_S = 0.8  # between detections of faces that keep still; motion is noticed in between
EMPTY_INTERVAL_S = 0.5  # while nobody is in the picture
MOVING_INTERVAL_S = 0.2  # 5 Hz: above the band of heart rates
MISSED_INTERVAL_S = 0.1  # after a face was not found where it was

_DEAD_ZONE = 0.04  # shift of the face that leaves the crop where it is, in face widths
_DEAD_ZONE_SIZE = 0.08  # the same for a change of size
_SMOOTHING = 0.5  # weight of the newest detection while the face is in its dead zone
_GATE = 0.5  # a detection this near (in face widths) can be the same face …
_GATE_GROWTH_PER_S = 1.0  # … and further away when it was not seen for a while
_GATE_SIZE = math.log(1.6)
_REFOUND_SIZE = math.log(1.3)
_MOVED_RECENTLY_S = 1.0


@dataclass(slots=True, eq=False)
class Track:
    """One face: where its crop is now, and when it was last seen."""

    id: int
    box: Box  # held still; what is cropped
    landmarks: FloatArray  # (5,2) at the last detection
    seen_s: float  # time of the last detection
    born_s: float
    sightings: int = 1
    lost: bool = False
    moved_s: float = -math.inf  # when the crop moved last
    _smooth: FloatArray = field(default_factory=lambda: np.zeros(3))  # offset from the crop: x, y, log size

    @property
    def confirmed(self) -> bool:
        """Seen more than once: a single detection may be a mistake."""
        return self.sightings > 1

    def distance(self, box: Box) -> tuple[float, float]:
        """How far away a box is: (centre distance in face widths, log of the size ratio)."""
        offset = _offset(self.box, box)
        return float(math.hypot(offset[0], offset[1])), abs(float(offset[2]))

    def see(self, t_s: float, found: Detection) -> bool:
        """Take a new detection; True when the crop had to move."""
        self.seen_s, self.sightings, self.lost = t_s, self.sightings + 1, False
        self.landmarks = found.landmarks
        offset = _offset(self.box, found.box)
        self._smooth += _SMOOTHING * (offset - self._smooth)
        shift, size = math.hypot(offset[0], offset[1]), abs(offset[2])
        smooth_shift, smooth_size = math.hypot(self._smooth[0], self._smooth[1]), abs(self._smooth[2])
        if min(shift, smooth_shift) <= _DEAD_ZONE and min(size, smooth_size) <= _DEAD_ZONE_SIZE:
            return False
        self.box, self.moved_s = found.box, t_s
        self._smooth = np.zeros(3)
        return True

    def resume(self, t_s: float, found: Detection) -> None:
        """Come back after an absence."""
        self.see(t_s, found)
        self.box, self.moved_s = found.box, t_s


@dataclass(frozen=True, slots=True)
class Changes:
    """What one update changed; a lost track may be found again, an ended one never."""

    born: tuple[Track, ...] = ()
    moved: tuple[Track, ...] = ()
    lost: tuple[Track, ...] = ()
    found_again: tuple[Track, ...] = ()
    ended: tuple[Track, ...] = ()


class Tracker:
    """Keeps the tracks; give it the detections of a picture whenever `due` says that it is time to look."""

    def __init__(self, max_tracks: int = MAX_TRACKS) -> None:
        self.tracks: list[Track] = []  # in order of birth, lost ones included until they are forgotten
        self.max_tracks = max_tracks
        self.next_id = 0  # of the next new face
        self._looked_s = -math.inf

    @property
    def present(self) -> list[Track]:
        """The tracks whose face is in the picture."""
        return [track for track in self.tracks if not track.lost]

    def due(self, t_s: float, shift: float = 0.0) -> bool:
        """Whether to run the detector on the picture of this time.

        `shift` is how far any face seems to have moved since its crop was placed, in face widths.
        """
        present = self.present
        interval_s = STILL_INTERVAL_S if present else EMPTY_INTERVAL_S
        if any(track.seen_s < self._looked_s for track in present):
            interval_s = MISSED_INTERVAL_S
        elif shift > _DEAD_ZONE or any(
            not track.confirmed or t_s - track.moved_s < _MOVED_RECENTLY_S for track in present
        ):
            interval_s = MOVING_INTERVAL_S
        return t_s - self._looked_s >= interval_s - 1e-6

    def update(self, t_s: float, detections: Sequence[Detection]) -> Changes:
        """Give the detections of the picture at `t_s` to the tracks they belong to."""
        self._looked_s = t_s
        ended = self._forget(t_s)
        found = _without_nested(detections)
        claims = [[t for t in self.present if self._may_be(t, d, t_s)] for d in found]
        rivals = {id(t) for claim in claims if len(claim) > 1 for t in claim}
        rivals |= self._merged(found, claims)
        ended += [t for t in self.tracks if id(t) in rivals]
        self.tracks = [t for t in self.tracks if id(t) not in rivals]

        born, moved, again = [], [], []
        taken: set[int] = set()
        for detection, claim in zip(found, claims, strict=True):
            track = next((t for t in claim if id(t) not in rivals and t.id not in taken), None)
            if track is not None:
                taken.add(track.id)
                if track.see(t_s, detection):
                    moved.append(track)
            elif (back := self._refound(detection, found)) is not None and back.id not in taken:
                taken.add(back.id)
                back.resume(t_s, detection)
                again.append(back)
            elif len(self.present) < self.max_tracks:
                new = Track(self.next_id, detection.box, detection.landmarks, t_s, t_s)
                self.next_id += 1
                taken.add(new.id)
                self.tracks.append(new)
                born.append(new)
        lost, never = self._lose(t_s)
        return Changes(tuple(born), tuple(moved), tuple(lost), tuple(again), tuple(ended + never))

    def _may_be(self, track: Track, found: Detection, t_s: float) -> bool:
        gate = min(_GATE + _GATE_GROWTH_PER_S * max(t_s - track.seen_s - EMPTY_INTERVAL_S, 0), 1.0)
        shift, size = track.distance(found.box)
        return shift < gate and size < _GATE_SIZE

    def _merged(self, found: Sequence[Detection], claims: list[list[Track]]) -> set[int]:
        """Tracks that claim two detections: which of them is the face cannot be told."""
        rivals: set[int] = set()
        for track in self.present:
            mine = [d for d, claim in zip(found, claims, strict=True) if track in claim]
            if len(mine) > 1:
                rivals.add(id(track))
        return rivals

    def _refound(self, detection: Detection, found: Sequence[Detection]) -> Track | None:
        """The lost track that was here, if position and size agree and nobody else could be meant."""

        def agrees(track: Track, box: Box) -> bool:
            shift, size = track.distance(box)
            return shift < _GATE and size < _REFOUND_SIZE

        back = [track for track in self.tracks if track.lost and agrees(track, detection.box)]
        if len(back) != 1 or sum(agrees(back[0], other.box) for other in found) != 1:
            return None
        return back[0]

    def _lose(self, t_s: float) -> tuple[list[Track], list[Track]]:
        """(tracks that were lost just now, unconfirmed ones that are dropped altogether)."""
        gone = [t for t in self.present if t_s - t.seen_s > LOST_AFTER_S]
        never = [t for t in gone if not t.confirmed]
        self.tracks = [t for t in self.tracks if t not in never]
        lost = [t for t in gone if t.confirmed]
        for track in lost:
            track.lost = True
        return lost, never

    def _forget(self, t_s: float) -> list[Track]:
        old = [t for t in self.tracks if t.lost and t_s - t.seen_s > FORGET_AFTER_S]
        self.tracks = [t for t in self.tracks if t not in old]
        return old


def _offset(box: Box, other: Box) -> FloatArray:
    """From one box to another: x and y of the centre in widths of the first, log of the size ratio."""
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


def _without_nested(detections: Sequence[Detection]) -> list[Detection]:
    """Leave out boxes that lie inside a more certain one: an eye or a chin taken for a face."""
    kept: list[Detection] = []
    for candidate in sorted(detections, key=lambda d: -d.score):
        area = candidate.box[2] * candidate.box[3]
        if not any(
            _shared(candidate.box, other.box) > 0.7 * min(area, other.box[2] * other.box[3]) for other in kept
        ):
            kept.append(candidate)
    return kept


def _shared(a: Box, b: Box) -> float:
    ratio = overlap(a, b)  # shared / (A + B − shared)
    return ratio / (1 + ratio) * (a[2] * a[3] + b[2] * b[3])
