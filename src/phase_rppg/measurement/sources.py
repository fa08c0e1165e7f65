"""Turn what a caller measures into a source of frames: a file, a folder of images, an array, an iterable.

Wrong input raises an ArgumentError or a VideoError that states the remedy.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, VideoError
from ..types import ByteArray, FloatArray, Frame, FrameSource, is_finite_number
from ..video.decode import ImageSequence, VideoFile

Times: TypeAlias = npt.ArrayLike
Video: TypeAlias = "str | Path | npt.NDArray[Any] | FrameSource | Iterable[Frame] | Iterable[ByteArray]"

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp"})
MAX_STEP_S = 1.0  # a median time between two frames above this is not in seconds
_MAX_FPS = 1000.0
_STAMP = re.compile(r"(\d+)$")
_STAMPS_PER_S = {13: 1e3, 16: 1e6, 19: 1e9}  # digits of a time since 1970 in ms, µs and ns
_ACCEPTED = "a path, an array (T,H,W,3), frames with t_s, or a source with a method frames()"
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class ArrayFrames:
    """An array as a source of frames."""

    rgb: ByteArray  # (T,H,W,3)
    t_s: FloatArray  # (T,)
    name: str = field(default="array", init=False)

    def frames(self) -> Iterator[Frame]:
        """Return the frames from the beginning."""
        return (Frame(rgb, float(t_s)) for rgb, t_s in zip(self.rgb, self.t_s, strict=True))


@dataclass(frozen=True, eq=False)
class IterableFrames:
    """Frames, or pictures with a frame rate or times, as a source of frames. A generator is read once."""

    items: Iterable[Any]
    fps: float | None = None
    t_s: FloatArray | None = None
    name: str = field(default="frames", init=False)

    def frames(self) -> Iterator[Frame]:
        """Yield the frames; wrong items and times that do not increase raise an ArgumentError."""
        last_s, shape, count = -math.inf, None, 0
        for index, item in enumerate(self.items):
            frame = self._frame(index, item)
            if not is_finite_number(frame.t_s):
                raise ArgumentError(f"time of frame {index}", frame.t_s, "a finite time in seconds")
            if frame.t_s <= last_s:
                raise ArgumentError(
                    f"time of frame {index}", f"{frame.t_s:g} s after {last_s:g} s", "increasing times"
                )
            if self._has_pictures:
                check_picture(f"frame {index}", frame.rgb)
                if shape not in (None, frame.rgb.shape):
                    raise ArgumentError(f"frame {index}", frame.rgb.shape, f"the shape of frame 0, {shape}")
                shape = frame.rgb.shape
            last_s, count = frame.t_s, index + 1
            yield frame
        if not count:
            raise ArgumentError("video", "no frames", "at least one frame")
        if self.t_s is not None and count != len(self.t_s):
            raise ArgumentError("t_s", f"{len(self.t_s)} times", f"{count}, one for each frame")

    @property
    def _has_pictures(self) -> bool:
        return self.fps is not None or self.t_s is not None

    def _frame(self, index: int, item: Any) -> Frame:
        if hasattr(item, "rgb") and hasattr(item, "t_s"):
            if self._has_pictures:
                accepted = "arrays with fps or t_s, or frames with their own times"
                raise ArgumentError(f"frame {index}", "a frame with t_s", accepted)
            return Frame(item.rgb, float(item.t_s) if is_finite_number(item.t_s) else item.t_s)
        if not self._has_pictures:
            accepted = "a Frame; pictures without times need fps or t_s"
            raise ArgumentError(f"frame {index}", type(item).__name__, accepted)
        if self.fps is not None:
            return Frame(item, index / self.fps)
        assert self.t_s is not None
        if index >= len(self.t_s):
            raise ArgumentError("t_s", f"{len(self.t_s)} times", "one for each frame")
        return Frame(item, float(self.t_s[index]))


def open_source(video: Video, fps: float | None = None, t_s: Times | None = None) -> FrameSource:
    """Return the source of frames of a path, an array, an iterable or a source.

    `fps` or `t_s` gives the times of pictures that have none. For a video file, `fps` replaces the
    timestamps.
    """
    if fps is not None:
        check_fps(fps)
    if fps is not None and t_s is not None:
        raise ArgumentError("fps and t_s", "both", "one of them")
    times_s = None if t_s is None else check_times(t_s)
    if isinstance(video, (str, Path)):
        return _open_path(video, fps, times_s)
    if isinstance(video, FrameSource):
        if fps is not None or times_s is not None:
            raise ArgumentError("fps or t_s", "given", "none: the frames have their own times")
        return video
    if hasattr(video, "__array__"):
        return _open_array(np.asarray(video), fps, times_s)
    if not isinstance(video, Iterable):
        raise ArgumentError("video", type(video).__name__, _ACCEPTED)
    return IterableFrames(video, fps, times_s)


def check_fps(fps: float) -> float:
    """Return the frame rate; raise an ArgumentError unless it is positive and possible."""
    if not (is_finite_number(fps) and 0 < fps <= _MAX_FPS):
        raise ArgumentError("fps", repr(fps), f"a rate above 0, up to {_MAX_FPS:.0f}")
    return fps


def check_times(t_s: Times) -> FloatArray:
    """Return the times (T,) of frames; raise an ArgumentError unless they increase and are in seconds."""
    try:
        times = np.asarray(t_s, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError("t_s", type(t_s).__name__, "a list of times in seconds") from None
    if times.ndim != 1:
        raise ArgumentError("t_s", f"shape {times.shape}", "one time for each frame, shape (T,)")
    if not np.isfinite(times).all():
        raise ArgumentError("t_s", f"{int((~np.isfinite(times)).sum())} times that are not finite", "seconds")
    steps_s = np.diff(times)
    if (steps_s <= 0).any():
        index = int(np.argmax(steps_s <= 0)) + 1
        given = f"{times[index]:g} after {times[index - 1]:g} at frame {index}"
        raise ArgumentError("t_s", given, "increasing times")
    if len(steps_s) and np.median(steps_s) >= MAX_STEP_S:
        raise wrong_unit("t_s", float(np.median(steps_s)))
    return times


def wrong_unit(name: str, step: float) -> ArgumentError:
    """Return the error for times that are probably in milliseconds."""
    return ArgumentError(name, f"steps of {step:g}", "seconds; divide milliseconds by 1000")


def check_picture(name: str, rgb: object, dimensions: int = 3) -> None:
    """Raise an ArgumentError unless `rgb` is a uint8 array (H,W,3), or (T,H,W,3) for 4 dimensions."""
    shape = "(T,H,W,3)" if dimensions == 4 else "(H,W,3)"
    if not isinstance(rgb, np.ndarray):
        raise ArgumentError(name, type(rgb).__name__, f"a uint8 array of shape {shape}")
    given = f"{rgb.dtype} of shape {rgb.shape}"
    if rgb.ndim == dimensions and rgb.shape[-1] != 3 and rgb.shape[-3] == 3:
        raise ArgumentError(name, given, f"uint8 of shape {shape}; move the colour axis to the end")
    if rgb.ndim != dimensions or rgb.shape[-1] != 3 or 0 in rgb.shape[-3:]:
        raise ArgumentError(name, given, f"uint8 of shape {shape}")
    if rgb.dtype != np.uint8:
        hint = "; multiply values of 0–1 by 255" if rgb.dtype.kind == "f" else ""
        raise ArgumentError(name, given, f"uint8 of shape {shape}{hint}")


def is_frame_folder(path: str | Path) -> bool:
    """Return whether a path is a folder with images, also in the layout of PURE."""
    return os.path.isdir(path) and bool(_images(Path(path)))


def _open_array(rgb: npt.NDArray[Any], fps: float | None, times_s: FloatArray | None) -> ArrayFrames:
    if rgb.dtype == object:
        raise ArgumentError("video", "arrays of different shapes or types", "one uint8 array (T,H,W,3)")
    check_picture("video", rgb, 4)
    if not len(rgb):
        raise ArgumentError("video", "no frames", "at least one frame")
    if fps is None and times_s is None:
        raise ArgumentError("fps or t_s", "none", "the frame rate or the times of the frames of an array")
    times_s = np.arange(len(rgb)) / fps if fps is not None else times_s
    assert times_s is not None
    if len(times_s) != len(rgb):
        raise ArgumentError("t_s", f"{len(times_s)} times", f"{len(rgb)}, one for each frame")
    return ArrayFrames(rgb, times_s)


def _open_path(path: str | Path, fps: float | None, times_s: FloatArray | None) -> FrameSource:
    if path == "":
        raise ArgumentError("video", "an empty name", _ACCEPTED)
    if _URL.match(str(path)):
        raise VideoError(path, "is a web address", "download the file first")
    if os.path.isdir(path):
        return _open_folder(Path(path), fps, times_s)
    if Path(path).suffix.lower() in IMAGE_SUFFIXES and os.path.isfile(path):
        raise VideoError(path, "is a still picture", "give a video or a folder of frames")
    if times_s is not None:
        raise ArgumentError("t_s", "given", "none for a video file, which has its own timestamps")
    return VideoFile(path, fps)


def _open_folder(folder: Path, fps: float | None, times_s: FloatArray | None) -> ImageSequence:
    """Return the images of a folder with their times: given, from `fps`, or from their names."""
    images = _images(folder)
    if not images:
        raise VideoError(folder, "is a folder without images", "give a video file or a folder of frames")
    if times_s is not None and len(times_s) != len(images):
        raise ArgumentError("t_s", f"{len(times_s)} times", f"{len(images)}, one for each image")
    if times_s is None and fps is not None:
        times_s = np.arange(len(images)) / fps
    if times_s is None:
        times_s = _times_of_names(folder, images)
    return ImageSequence(images, times_s)


def _images(folder: Path) -> list[Path]:
    """Return the images of a folder in natural order; those of PURE are in a subfolder of the same name."""
    inner = folder / folder.resolve().name
    for place in (folder, inner):
        try:
            names = os.listdir(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise VideoError(place, f"cannot be read ({error.strerror})", "check its permissions") from None
        found = [name for name in names if Path(name).suffix.lower() in IMAGE_SUFFIXES]
        if found:
            return [place / name for name in sorted(found, key=_natural)]
    return []


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts frame2 before frame10."""
    parts = re.findall(r"\d+|\D+", name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _times_of_names(folder: Path, images: list[Path]) -> FloatArray:
    """Return times in seconds after the first image, from the time since 1970 at the end of each name."""
    stamps = [match.group(1) if (match := _STAMP.search(image.stem)) else "" for image in images]
    lengths = {len(stamp) for stamp in stamps}
    if len(lengths) != 1 or (digits := lengths.pop()) not in _STAMPS_PER_S:
        problem = f"the names of the images in {folder} contain no timestamps"
        raise ArgumentError("fps", "none", f"the frame rate, such as --fps 30, because {problem}")
    first = int(stamps[0])
    return check_times([(int(stamp) - first) / _STAMPS_PER_S[digits] for stamp in stamps])
