"""A camera as a source of frames: v4l2 on Linux, AVFoundation on macOS, DirectShow on Windows."""

from __future__ import annotations

import contextlib
import math
import queue
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import VideoError
from ..types import Frame

DRIVERS = ("v4l2", "avfoundation", "dshow", "lavfi")  # accepted in "driver:name"
TIMEOUT_S = 5.0  # without a picture, after which the camera counts as lost
_BACKLOG = 4  # pictures that are kept for a slow reader; older ones are dropped


@dataclass
class Camera:
    """A live camera. If the reader is slower than the camera, the oldest frames are dropped.

    `device` is a number (0 is the first camera) or the name of the system ("/dev/video2", "video=Webcam").
    When the camera cannot be opened or is lost, `frames` raises a VideoError. `state` is "closed", "running"
    or "lost". `driver` is another input format of PyAV.
    """

    device: int | str = 0
    width: int = 640
    height: int = 480
    fps: float = 30.0
    driver: str | None = None
    timeout_s: float = TIMEOUT_S
    state: str = field(default="closed", init=False)
    dropped: int = field(default=0, init=False)  # pictures that were dropped while the reader was busy

    def frames(self) -> Iterator[Frame]:
        """Open the camera and yield its frames until the caller stops or the camera is lost."""
        waiting: queue.Queue[Any] = queue.Queue(_BACKLOG)
        stop = threading.Event()
        threading.Thread(target=self._read, args=(waiting, stop), daemon=True).start()
        self.state, self.dropped = "running", 0
        origin_s, last_s, rotation = math.nan, -math.inf, 0
        try:
            while True:
                try:
                    item = waiting.get(timeout=self.timeout_s)
                except queue.Empty:
                    item = self._lost(f"sent no picture for {self.timeout_s:g} s")
                if isinstance(item, VideoError):
                    self.state = "lost"
                    raise item
                picture, arrival_s = item
                taken_s = arrival_s if picture.time is None else float(picture.time)
                if math.isnan(origin_s):
                    origin_s, rotation = taken_s, round(picture.rotation / 90)
                if taken_s - origin_s <= last_s:
                    continue
                last_s = taken_s - origin_s
                rgb = picture.to_ndarray(format="rgb24")
                yield Frame(np.rot90(rgb, rotation) if rotation else rgb, last_s)
        finally:
            stop.set()
            if self.state == "running":
                self.state = "closed"

    def _open(self) -> Any:
        import av

        name, driver, options = self._address()
        try:
            return av.open(name, format=driver, options=options)
        except (av.FFmpegError, OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise VideoError(f"camera {self.device}", f"cannot be opened ({reason})", _hint()) from None

    def _address(self) -> tuple[str, str, dict[str, str]]:
        """Return the arguments for PyAV: (name, driver, options)."""
        options = {"video_size": f"{self.width}x{self.height}", "framerate": f"{self.fps:g}"}
        if self.driver is not None:
            return str(self.device), self.driver, {}
        if sys.platform == "darwin":
            return f"{self.device}:none", "avfoundation", options
        if sys.platform == "win32":
            return (
                self.device if isinstance(self.device, str) else _windows_name(self.device),
                "dshow",
                options,
            )
        name = f"/dev/video{self.device}" if isinstance(self.device, int) else self.device
        return name, "v4l2", options

    def _read(self, waiting: queue.Queue[Any], stop: threading.Event) -> None:
        """Read pictures from the camera into the queue, in a thread; the last item is an error."""
        import av

        try:
            with self._open() as container:
                for picture in container.decode(video=0):
                    if stop.is_set():
                        return
                    self._put(waiting, (picture, time.monotonic()))
            self._put(waiting, self._lost("stopped sending pictures"))
        except VideoError as error:
            self._put(waiting, error)
        except (av.FFmpegError, OSError, IndexError) as error:
            self._put(waiting, self._lost(f"was lost ({getattr(error, 'strerror', None) or error})"))

    def _put(self, waiting: queue.Queue[Any], item: Any) -> None:
        while True:
            try:
                return waiting.put_nowait(item)
            except queue.Full:
                with contextlib.suppress(queue.Empty):
                    waiting.get_nowait()
                    self.dropped += 1

    def _lost(self, problem: str) -> VideoError:
        return VideoError(f"camera {self.device}", problem, "check the cable and start again")


def parse_camera(text: str) -> Camera:
    """Return the camera for "0", "/dev/video2", another name of the system, or "driver:name"."""
    if text.isascii() and text.isdigit():
        return Camera(int(text))
    driver, colon, name = text.partition(":")
    return Camera(name, driver=driver) if colon and driver in DRIVERS else Camera(text)


def devices() -> list[str]:
    """Return the names of the cameras of the system."""
    if sys.platform.startswith("linux"):
        folders = sorted(Path("/sys/class/video4linux").glob("video*"), key=lambda f: int(f.name[5:] or 0))
        return [
            f"/dev/{f.name} ({_device_name(f / 'name')})" for f in folders if Path("/dev", f.name).exists()
        ]
    return _pyav_devices("avfoundation" if sys.platform == "darwin" else "dshow")


def _pyav_devices(driver: str) -> list[str]:
    """Return the devices that PyAV lists; older versions and some drivers list none."""
    import av

    with contextlib.suppress(av.FFmpegError, OSError, ValueError, AttributeError):
        return [device.description or device.name for device in av.enumerate_input_devices(driver)]
    return []


def _hint() -> str:
    found = devices()
    if not found:
        return "no camera was found: connect one, and allow its use"
    return f"found: {', '.join(found)}; another program may use it, or access is not allowed"


def _device_name(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return "unnamed"


def _windows_name(index: int) -> str:
    """Return the DirectShow name of a camera; DirectShow does not accept numbers."""
    names = _pyav_devices("dshow")
    if not 0 <= index < len(names):
        raise VideoError(f"camera {index}", f"does not exist; there are {len(names)} cameras", _hint())
    return f"video={names[index]}"
