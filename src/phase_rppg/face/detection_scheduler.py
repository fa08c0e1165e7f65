"""The detection schedule: when to run the detector, at which scale, and when to scan for new faces."""

from __future__ import annotations

import math

from ..picture import Picture
from .detector import LONG_SIDE_PX, Detection, Detector, overlap, readable_by
from .tracker import DEAD_ZONE, Tracker

STILL_INTERVAL_S = 0.8  # detection interval while all faces are still; registration notices motion earlier
EMPTY_INTERVAL_S = 0.5  # detection interval while no face is present
MOVING_INTERVAL_S = 0.2  # detection interval while a face moves; 5 Hz is above the band of heart rates
MISSED_INTERVAL_S = 0.1  # detection interval after a face was missed
_MOVED_RECENTLY_S = 1.0
RESCAN_S = 2.0  # interval of scans for new faces while known faces are present
_SEARCH_S = 2.0  # interval of searches for small faces while no face is present
_WORKING_FACE_PX = 32.0  # known faces are detected at about this width
_WORKING_RANGE_PX = (24.0, 60.0)  # the scale changes when the width leaves this range
_SMALLEST_SIDE_PX = 96


def detection_due(tracker: Tracker, t_s: float, shift: float = 0.0) -> bool:
    """Return whether to run the detector on the picture at `t_s`.

    `shift` is the largest motion of a face since its last reference picture, in face widths.
    """
    present = tracker.present
    interval_s = STILL_INTERVAL_S if present else EMPTY_INTERVAL_S
    if any(track.last_seen_s < tracker.last_detection_s for track in present):
        interval_s = MISSED_INTERVAL_S
    elif shift > DEAD_ZONE or any(
        not track.confirmed or t_s - track.moved_s < _MOVED_RECENTLY_S for track in present
    ):
        interval_s = MOVING_INTERVAL_S
    return t_s - tracker.last_detection_s >= interval_s - 1e-6


class DetectionScheduler:
    """Runs the detector at the lowest sufficient scale, which changes rarely: boxes depend on the scale."""

    def __init__(self, detector: Detector | None = None) -> None:
        self._detector = detector
        self._side_px = LONG_SIDE_PX
        self._scanned_s = -math.inf
        self._searched_s = -math.inf

    def detect(self, picture: Picture, t_s: float, tracker: Tracker) -> list[Detection]:
        """Return the faces in this picture."""
        if self._detector is None:
            self._detector = Detector()  # loaded here, so that decoding runs at the same time
        picture = readable_by(self._detector, picture)
        known = tracker.present
        if not known:
            return self._search(picture, t_s)
        self._choose_scale(picture, min(track.box[2] for track in known))
        found = self._detector.detect(picture, self._side_px)
        missed = any(all(overlap(track.box, d.box) < 0.1 for d in found) for track in known)
        if missed or t_s - self._scanned_s >= RESCAN_S:
            self._scanned_s = t_s
            scan = self._detector.detect(picture, LONG_SIDE_PX)
            found += [d for d in scan if all(overlap(d.box, other.box) < 0.1 for other in found)]
        return found

    def _search(self, picture: Picture, t_s: float) -> list[Detection]:
        assert self._detector is not None
        self._scanned_s = t_s
        found = self._detector.detect(picture, LONG_SIDE_PX)
        if found or t_s - self._searched_s < _SEARCH_S:
            return found
        self._searched_s = t_s
        return self._detector.search(picture)

    def _choose_scale(self, picture: Picture, face_px: float) -> None:
        long_px = max(picture.shape[:2])
        working_px = face_px * self._side_px / long_px
        if not _WORKING_RANGE_PX[0] <= working_px <= _WORKING_RANGE_PX[1]:
            wanted_px = long_px * _WORKING_FACE_PX / face_px
            self._side_px = round(min(max(wanted_px, _SMALLEST_SIDE_PX), long_px))
