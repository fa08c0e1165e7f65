"""Decode video files and image sequences into frames with timestamps."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, VideoError
from ..picture import AnyFrame, Picture, YuvFrame, YuvPicture
from ..types import FloatArray, Frame
from .decoder_process import ASSUMED_FPS
from .guard import GuardedDecoder
from .probe import VideoInfo, check_file, check_video_file, from_facts, probe
from .slot_layout import RgbLayout, choose_layout

_MISSING_END = 0.03  # missing share of the stated length from which on a video counts as incomplete


@dataclass
class VideoFile:
    """A video file as a source of frames: timestamps, rotation applied, any bit depth converted to 8-bit RGB.

    The first frame is at 0 s. Decoding runs in a guarded child process. If the file is damaged, the frames
    that could be decoded are yielded before a VideoError is raised, so that a caller can use them.
    `fps` replaces the timestamps by a uniform clock. After the frames were read, `notes` describes problems
    of the file, and `clock_is_guess` is True if it has no timestamps, so that rates are not reliable.
    """

    path: str | Path
    fps: float | None = None
    notes: list[str] = field(default_factory=list, init=False, repr=False, compare=False)
    clock_is_guess: bool = field(default=False, init=False, repr=False, compare=False)
    _info: VideoInfo | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.fps is not None and not (math.isfinite(self.fps) and 0 < self.fps <= 1000):
            raise ArgumentError("fps", self.fps, "a rate above 0, up to 1000")

    @property
    def info(self) -> VideoInfo:
        """The facts of the header; it is read once."""
        if self._info is None:
            self._info = probe(self.path)
        return self._info

    def frames(self) -> Iterator[Frame]:
        """Start decoding and return an iterator over the frames in order of time."""
        return _copied(self._start(planes=False))

    def frames_without_copy(self) -> Iterator[AnyFrame]:
        """Return the frames without copying and, where the file allows it, without converting them to RGB.

        Pixels are valid until the next frame is requested.
        """
        return self._start(planes=True)

    def _start(self, *, planes: bool) -> Iterator[AnyFrame]:
        check_video_file(self.path)
        self.notes.clear()
        return self._frames(GuardedDecoder(self.path, {"video": os.path.abspath(self.path)}), planes)

    def _frames(self, child: GuardedDecoder, planes: bool) -> Iterator[AnyFrame]:
        with child:
            facts = child.facts()
            info = self._info = from_facts(facts)
            if info.grey:
                self.notes.append(f"the video has no colour ({info.pixel_format})")
            clock = _Clock(self.fps, info.fps)
            layout = choose_layout(facts) if planes else RgbLayout(facts["height"], facts["width"])
            for picture, stamp_s in child.pictures(layout, facts["frame_count"] or 0):
                t_s = clock.read(stamp_s)
                if t_s is not None:
                    yield _frame(picture, info.rotation // 90, t_s)
            self.notes += clock.notes()
            self.clock_is_guess = 2 * clock.without_stamp > clock.count
            if child.damaged_packets:
                self.notes.append(f"{child.damaged_packets} damaged packets were skipped")
            self._check_end(info, clock)

    def _check_end(self, info: VideoInfo, clock: _Clock) -> None:
        hint = "the file is incomplete: copy it again"
        has_times = self.fps is None and not clock.without_stamp
        reached_s = clock.last_s + clock.step_s
        # An AVI also counts the frames that its recorder dropped.
        count = max(clock.count, round(reached_s / clock.step_s)) if has_times else clock.count
        if info.frame_count and count < (1 - _MISSING_END) * info.frame_count - 2:
            raise VideoError(self.path, f"ends after {clock.count} of {info.frame_count} frames", hint)
        if info.duration_s is None or not has_times:
            return
        if info.duration_s - reached_s > max(_MISSING_END * info.duration_s, 2 * clock.step_s):
            raise VideoError(self.path, f"ends after {reached_s:.1f} s of {info.duration_s:.1f} s", hint)


@dataclass(frozen=True)
class ImageSequence:
    """Image files as a source of frames, each with a timestamp."""

    paths: Sequence[str | Path]
    t_s: FloatArray | Sequence[float]  # (T,) increasing

    def __post_init__(self) -> None:
        times = np.asarray(self.t_s, dtype=np.float64)
        if times.shape != (len(self.paths),) or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
            raise ArgumentError("t_s", f"{times.size} times", f"{len(self.paths)} finite, increasing times")
        if not len(self.paths):
            raise ArgumentError("paths", "none", "at least one image")

    def frames(self) -> Iterator[Frame]:
        """Yield one frame per image; images are scaled to the size of the first one."""
        first = self.paths[0]
        check_file(first)
        with GuardedDecoder(
            Path(first).parent, {"images": [os.path.abspath(p) for p in self.paths]}
        ) as child:
            facts = child.facts()
            pictures = child.pictures(RgbLayout(facts["height"], facts["width"]))
            for t_s, (picture, _) in zip(self.t_s, pictures, strict=False):
                yield Frame(np.array(picture), float(t_s))


class _Clock:
    """Convert the timestamps of a file to increasing times from 0 s, and count invalid ones."""

    def __init__(self, fps: float | None, header_fps: float | None) -> None:
        self.uniform_step_s = None if fps is None else 1 / fps
        self.step_s = 1 / (fps or header_fps or ASSUMED_FPS)
        self.last_s = -math.inf
        self.without_stamp = 0
        self.backwards = 0
        self._origin_s = math.nan
        self.count = 0
        self._rate_is_known = bool(fps or header_fps)

    def read(self, stamp_s: float) -> float | None:
        """Return the time of the next frame, or None if it is not later than the previous one."""
        self.count += 1
        if self.uniform_step_s is not None:
            self.last_s = (self.count - 1) * self.uniform_step_s
            return self.last_s
        if math.isnan(stamp_s):
            self.without_stamp += 1
            t_s = 0.0 if self.count == 1 else self.last_s + self.step_s
        else:
            if math.isnan(self._origin_s):
                self._origin_s = stamp_s if self.count == 1 else stamp_s - self.last_s - self.step_s
            t_s = stamp_s - self._origin_s
        if t_s <= self.last_s:
            self.backwards += 1
            return None
        self.last_s = t_s
        return t_s

    def notes(self) -> list[str]:
        found = []
        if self.without_stamp:
            source = "of the header" if self._rate_is_known else "(assumed)"
            found.append(
                f"{self.without_stamp} of {self.count} frames have no timestamp: "
                f"{1 / self.step_s:.4g} frames per second {source} are used"
            )
        if self.backwards:
            found.append(
                f"{self.backwards} of {self.count} frames were dropped: not later than the previous one"
            )
        return found


def _copied(frames: Iterator[AnyFrame]) -> Iterator[Frame]:
    for frame in frames:
        yield Frame(frame.rgb.copy(), frame.t_s)


def _frame(picture: Picture, quarter_turns: int, t_s: float) -> AnyFrame:
    """Return the frame of a picture that is rotated counter-clockwise."""
    if isinstance(picture, YuvPicture):
        return YuvFrame(picture.rotated(quarter_turns) if quarter_turns else picture, t_s)
    return Frame(np.rot90(picture, quarter_turns) if quarter_turns else picture, t_s)
