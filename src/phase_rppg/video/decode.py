"""Videos and image sequences as sources of frames, with the times at which they were taken."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, VideoError
from ..types import ByteArray, FloatArray, Frame
from .guard import GuardedDecoder
from .probe import VideoInfo, check_file, from_facts, probe

_ASSUMED_FPS = 30.0  # only when a file has neither timestamps nor a frame rate
_MISSING_END = 0.03  # a video that ends earlier than this fraction of its stated length was cut off


@dataclass
class VideoFile:
    """A video file as a source of frames: true times, rotation applied, any depth as 8-bit RGB.

    The first frame is at 0 s. Decoding runs in a guarded child process. When the file is damaged, all frames
    that could be decoded are yielded and then a VideoError is raised, so a caller may keep the prefix.
    `notes` says in sentences what was odd about the file, after the frames were read.
    `fps` overrides the timestamps with an even clock. `clock_is_guess` says, after the frames were read, that
    the file has no timestamps of its own, so rates measured on it mean nothing.
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
        """What the header says; read once."""
        if self._info is None:
            self._info = probe(self.path)
        return self._info

    def frames(self) -> Iterator[Frame]:
        """Start decoding at once and yield the frames in order of time."""
        return _kept(self.passing_frames())

    def passing_frames(self) -> Iterator[Frame]:
        """The same without copying: a frame's pixels are valid only until the next frame is asked for."""
        check_file(self.path)
        self.notes.clear()
        return self._frames(GuardedDecoder(self.path, {"video": os.path.abspath(self.path)}))

    def _frames(self, child: GuardedDecoder) -> Iterator[Frame]:
        with child:
            facts = child.facts()
            info = self._info = from_facts(facts)
            if info.grey:
                self.notes.append(f"the video has no colour ({info.pixel_format})")
            clock = _Clock(self.fps, info.fps)
            pictures = child.pictures(facts["width"], facts["height"], facts["frame_count"] or 0)
            for rgb, stamp_s in pictures:
                t_s = clock.read(stamp_s)
                if t_s is not None:
                    yield Frame(_rotated(rgb, info.rotation), t_s)
            self.notes += clock.notes()
            self.clock_is_guess = 2 * clock.without_stamp > clock.count
            if child.damaged_packets:
                self.notes.append(f"{child.damaged_packets} damaged packets were skipped")
            self._check_end(info, clock)

    def _check_end(self, info: VideoInfo, clock: _Clock) -> None:
        hint = "the file was cut off: copy it again to have the rest"
        if info.frame_count and clock.count < (1 - _MISSING_END) * info.frame_count - 2:
            raise VideoError(self.path, f"ends after {clock.count} of {info.frame_count} frames", hint)
        if info.duration_s is None or self.fps is not None or clock.without_stamp:
            return
        reached_s = clock.last_s + clock.step_s
        if info.duration_s - reached_s > max(_MISSING_END * info.duration_s, 2 * clock.step_s):
            raise VideoError(self.path, f"ends after {reached_s:.1f} s of {info.duration_s:.1f} s", hint)


@dataclass(frozen=True)
class ImageSequence:
    """Image files as a source of frames, each with the time at which it was taken."""

    paths: Sequence[str | Path]
    t_s: FloatArray | Sequence[float]  # (T,) rising

    def __post_init__(self) -> None:
        times = np.asarray(self.t_s, dtype=np.float64)
        if times.shape != (len(self.paths),) or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
            raise ArgumentError("t_s", f"{times.size} times", f"{len(self.paths)} finite, rising times")
        if not len(self.paths):
            raise ArgumentError("paths", "none", "at least one image")

    def frames(self) -> Iterator[Frame]:
        """Yield one frame per image; sizes other than the first one's are scaled to it."""
        first = self.paths[0]
        check_file(first)
        with GuardedDecoder(
            Path(first).parent, {"images": [os.path.abspath(p) for p in self.paths]}
        ) as child:
            facts = child.facts()
            pictures = child.pictures(facts["width"], facts["height"])
            for t_s, (rgb, _) in zip(self.t_s, pictures, strict=False):
                yield Frame(rgb.copy(), float(t_s))


class _Clock:
    """Turns a file's timestamps into rising times that start at 0 s, and counts what was wrong with them."""

    def __init__(self, fps: float | None, header_fps: float | None) -> None:
        self.even_step_s = None if fps is None else 1 / fps
        self.step_s = 1 / (fps or header_fps or _ASSUMED_FPS)
        self.last_s = -math.inf
        self.without_stamp = 0
        self.backwards = 0
        self._origin_s = math.nan
        self.count = 0
        self._rate_is_known = bool(fps or header_fps)

    def read(self, stamp_s: float) -> float | None:
        """The time of the next frame, or None when it is not later than the one before it."""
        self.count += 1
        if self.even_step_s is not None:
            self.last_s = (self.count - 1) * self.even_step_s
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
            source = "of the header" if self._rate_is_known else "assumed"
            found.append(
                f"{self.without_stamp} of {self.count} frames have no timestamp: "
                f"{1 / self.step_s:.4g} frames per second {source} were used"
            )
        if self.backwards:
            found.append(
                f"{self.backwards} of {self.count} frames were not later than the one before: left out"
            )
        return found


def _kept(frames: Iterator[Frame]) -> Iterator[Frame]:
    for frame in frames:
        yield Frame(frame.rgb.copy(), frame.t_s)


def _rotated(rgb: ByteArray, rotation: int) -> ByteArray:
    """A turned view of the picture, without copying it."""
    return np.rot90(rgb, rotation // 90) if rotation else rgb
