"""Where to look for faces, and how closely: cheap looks at known faces, now and then a wide one."""

from __future__ import annotations

import math

from ..types import ByteArray
from .detector import LONG_SIDE_PX, Detection, Detector, overlap
from .tracker import Tracker

RESCAN_S = 2.0  # between wide looks for newcomers
_SEARCH_S = 2.0  # between close searches while nobody is in the picture
_WORKING_FACE_PX = 32.0  # a known face is followed at about this width …
_WORKING_RANGE_PX = (24.0, 60.0)  # … and the scale is kept while it stays within these
_SMALLEST_SIDE_PX = 96


class DetectionScheduler:
    """Runs the detector at the cheapest scale that will do. Boxes of one face come from one scale."""

    def __init__(self, detector: Detector | None = None) -> None:
        self._detector = detector
        self._side_px = LONG_SIDE_PX
        self._scanned_s = -math.inf
        self._searched_s = -math.inf

    def look(self, rgb: ByteArray, t_s: float, tracker: Tracker) -> list[Detection]:
        """The faces in this picture."""
        if self._detector is None:
            self._detector = Detector()  # loaded at the first frame, while the video is being decoded
        known = tracker.present
        if not known:
            return self._search(rgb, t_s)
        self._choose_scale(rgb, min(track.box[2] for track in known))
        found = self._detector.detect(rgb, self._side_px)
        missed = any(all(overlap(track.box, d.box) < 0.1 for d in found) for track in known)
        if missed or t_s - self._scanned_s >= RESCAN_S:
            self._scanned_s = t_s
            wide = self._detector.detect(rgb, LONG_SIDE_PX)
            found += [d for d in wide if all(overlap(d.box, other.box) < 0.1 for other in found)]
        return found

    def _search(self, rgb: ByteArray, t_s: float) -> list[Detection]:
        assert self._detector is not None
        self._scanned_s = t_s
        found = self._detector.detect(rgb, LONG_SIDE_PX)
        if found or t_s - self._searched_s < _SEARCH_S:
            return found
        self._searched_s = t_s
        return self._detector.search(rgb)

    def _choose_scale(self, rgb: ByteArray, face_px: float) -> None:
        long_px = max(rgb.shape[:2])
        working_px = face_px * self._side_px / long_px
        if not _WORKING_RANGE_PX[0] <= working_px <= _WORKING_RANGE_PX[1]:
            wanted_px = long_px * _WORKING_FACE_PX / face_px
            self._side_px = round(min(max(wanted_px, _SMALLEST_SIDE_PX), long_px))
