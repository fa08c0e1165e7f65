"""Track the face of a recording and crop it in every frame, in bounded memory.

The recordings of a data set show one person. If there are several faces, the largest is tracked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .. import limits
from ..errors import InputError, RecordingError
from ..face import haar_cascade
from ..face.crop import CROP_PX, AreaCrop, Box, square, to_bytes
from ..face.detection_scheduler import DetectionScheduler, detection_due
from ..face.detector import Detector
from ..face.registration import FaceRegistration
from ..face.tracker import Track, Tracker
from ..picture import Picture, decoded_frames, picture_of
from ..signal.uniform_clock import UniformClock
from ..types import ByteArray, FloatArray, Frame, FrameSource

STATIC_SCALE = 1.5  # side of the static crop over the longer side of the face box
STATIC_SEARCH_S = 1.0  # time in which the static crop looks for a face
STATIC_SEARCH_FRAMES = 60  # at most as many frames are kept while it looks


@dataclass(frozen=True, slots=True, eq=False)
class FaceFrame:
    """The face crop of one frame."""

    t_s: float
    picture: FloatArray  # (S,S,3) f32, 0–255
    box: Box  # of the crop in the frame
    present: bool  # False: no face; the crop is at its last position, or black
    landmarks: FloatArray | None  # (5,2) at the last detection
    face: Box | None  # of the detector


@dataclass(frozen=True, slots=True, eq=False)
class ClipFrame:
    """The face crop at one time of a uniform clock."""

    t_s: float
    picture: ByteArray  # (S,S,3) u8
    box: FloatArray  # (4,)
    valid: bool


def crop_faces(video: FrameSource, size: int, detector: Detector | None = None) -> Iterator[FaceFrame]:
    """Yield the crop of the main face in every frame: the crop and the detections of `phase measure`."""
    scheduler, tracker = DetectionScheduler(detector), Tracker()
    main: Track | None = None
    registered: tuple[Track, FaceRegistration] | None = None
    replaced_before: set[int] = set()
    shape: tuple[int, ...] = ()
    crop: AreaCrop | None = None
    for frame in decoded_frames(video):
        picture = picture_of(frame)
        shift, replaced = 0.0, set[int]()
        if registered is not None and shape == picture.shape:
            shift, replaced = _motion(*registered, picture, frame.t_s)
        if replaced - replaced_before or detection_due(tracker, frame.t_s, shift):
            tracker.update(frame.t_s, scheduler.detect(picture, frame.t_s, tracker), replaced)
            main = _main(tracker, main)
        replaced_before = replaced
        present = main is not None and not main.lost
        if present and main is not None:
            if registered is None or registered[0] is not main or shape != picture.shape:
                registered = (main, FaceRegistration(square(main.box), CROP_PX, picture, frame.t_s))
            shape = picture.shape
            crop = AreaCrop(registered[1].follow(square(main.box), picture, frame.t_s), size, shape)
        else:
            registered = None
        if crop is None:
            yield FaceFrame(frame.t_s, np.zeros((size, size, 3), np.float32), (0, 0, 0, 0), False, None, None)
            continue
        landmarks, face = (main.landmarks, main.box) if main is not None else (None, None)
        yield FaceFrame(frame.t_s, crop.mean(picture), crop.box, present, landmarks, face)


def static_crops(
    video: FrameSource, size: int, name: str, detector: Detector | None = None
) -> Iterator[FaceFrame]:
    """Yield the same crop of every frame, as rPPG-Toolbox does: the face box of the first frame, enlarged.

    The box is that of the Haar cascade. If it finds no face, rPPG-Toolbox takes the whole picture; here the
    box is that of YuNet in the first frame with a face within the first second. Without one, the recording is
    excluded by its name. The crop is the square around the longer side of the box, enlarged by STATIC_SCALE
    and cut at the border of the frame.
    """
    detector = detector or Detector()
    waiting: list[Frame] = []  # frames before the first face
    crop: AreaCrop | None = None
    face: Box | None = None
    shape: tuple[int, ...] = ()
    for frame in video.frames():
        if face is None:
            waiting.append(frame)
            found = [] if len(waiting) > 1 else haar_cascade.detect(frame.rgb)
            found = found or [one.box for one in detector.detect(frame.rgb)]
            if not found:
                if frame.t_s - waiting[0].t_s > STATIC_SEARCH_S or len(waiting) > STATIC_SEARCH_FRAMES:
                    break
                continue
            face = max(found, key=lambda box: box[2] * box[3])
        if crop is None or shape != frame.rgb.shape:
            shape = frame.rgb.shape
            crop = AreaCrop(static_box(face, shape), size, shape)
        for one in [*waiting] or [frame]:
            yield FaceFrame(one.t_s, crop.mean(one.rgb), crop.box, True, None, face)
        waiting.clear()
    if crop is None:
        raise RecordingError(name, f"no face in the first {STATIC_SEARCH_S:g} s, which the static crop needs")


def static_box(face: Box, frame_shape: tuple[int, ...]) -> Box:
    """Return the enlarged square around a face box in whole pixels, cut at the border of the frame."""
    x, y, width, height = face
    side = max(width, height)
    left, top = x + (width - side) / 2, y + (height - side) / 2
    margin = (STATIC_SCALE - 1) / 2 * side
    first_x, first_y = (int(max(0.0, start - margin)) for start in (left, top))
    length = int(STATIC_SCALE * side)
    last_x, last_y = min(first_x + length, frame_shape[1]), min(first_y + length, frame_shape[0])
    return float(first_x), float(first_y), float(last_x - first_x), float(last_y - first_y)


def index_crops(crops: Iterator[FaceFrame], fps: float) -> Iterator[ClipFrame]:
    """Yield every crop once on a clock of equal steps, whatever the timestamps say."""
    for number, one in enumerate(crops):
        yield ClipFrame(number / fps, to_bytes(one.picture), np.array(one.box), one.present)


def _motion(
    track: Track, registration: FaceRegistration, picture: Picture, t_s: float
) -> tuple[float, set[int]]:
    """Return how far the face has moved since the last new box, in face widths, and whether it was replaced.

    The second value contains the id of the track if the picture suddenly shows something else there.
    """
    registration.update(picture, t_s)
    cells = math.hypot(*registration.displacement.tolist())
    replaced = {track.id} if registration.shows_another_face else set()
    return cells * registration.cell_px / track.box[2], replaced


def _main(tracker: Tracker, main: Track | None) -> Track | None:
    """Return the tracked face while it is present, otherwise the largest face."""
    present = tracker.present
    if main is not None and any(track is main for track in present):
        return main
    return max(present, key=lambda track: track.box[2] * track.box[3], default=None)


def resample_crops(crops: Iterator[FaceFrame], fps: float) -> Iterator[ClipFrame]:
    """Interpolate crops linearly in time to a uniform clock that starts with the first frame."""
    clock = UniformClock(fps)
    before: FaceFrame | None = None
    most_s = limits.current().clip_hours * 3600
    for after in crops:
        before = before or after
        # A wrong timestamp must not fill the disk with empty pictures.
        if clock.count and after.t_s - clock.origin_s > most_s:
            late_s = after.t_s - clock.origin_s
            raise InputError(f"a frame is {late_s:.3g} s after the first; {limits.hint('clip_hours')}")
        step = clock.advance(after.t_s)
        usable = before.present and after.present and step.seen
        for tick, weight in enumerate(step.weights, step.first):
            blend = after.picture
            if weight < 1:  # the tick is not at the time of a frame
                blend = before.picture + np.float32(weight) * (after.picture - before.picture)
            box = np.array(before.box if weight < 0.5 else after.box)
            yield ClipFrame(clock.time_s(tick), to_bytes(blend), box, usable)
        before = after
