"""Small videos drawn on the fly, each made once per test run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import badfiles
from drawing import Actor, Film, clock
from phase_rppg.video.encode import write_video


def save(path: Path, film: Film, fps: float | None = 30.0, **options: object) -> Path:
    t_s = None if fps is not None else np.array(film.t_s)
    write_video(
        path, (frame.rgb for frame in film.frames()), fps, t_s=t_s, crf=14, preset="veryfast", **options
    )  # type: ignore[arg-type]
    return path


SIZE = {"height": 160, "width": 208}


def middle(t: float) -> tuple[float, float]:
    return 104.0, 84.0


def film(
    place: Callable[[float], tuple[float, float] | None], t_s: tuple[float, ...], **heart: float
) -> Film:
    """One small face; `heart` is its bpm and amplitude."""
    return Film((Actor(place, width=80, **heart),), t_s, **SIZE)  # type: ignore[arg-type]


class FilmSet:
    """Makes a video when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.get = functools.cache(self._make)

    def _make(self, name: str) -> Path:
        return getattr(self, name)()

    def face(self) -> Path:
        return save(self.folder / "face.mp4", film(middle, clock(11)))

    def other(self) -> Path:
        return save(self.folder / "other.mp4", film(middle, clock(10.5), bpm=96.0))

    def photo(self) -> Path:
        return save(self.folder / "photo.mp4", film(middle, clock(10.5), amplitude=0.0))

    def nobody(self) -> Path:
        return save(self.folder / "nobody.mp4", Film((), clock(3), **SIZE))

    def short(self) -> Path:
        return save(self.folder / "short.mp4", film(middle, clock(2)))

    def slow(self) -> Path:
        return save(self.folder / "slow.mp4", film(middle, clock(11, 7)), 7.0)

    def grey(self) -> Path:
        return save(self.folder / "grey.mp4", replace(film(middle, clock(10.5)), grey=True))

    def one_frame(self) -> Path:
        return save(self.folder / "one.mp4", film(middle, (0.0,)))

    def leaving(self) -> Path:
        """The face is away between 5 and 8 s."""

        def place(t: float) -> tuple[float, float] | None:
            return None if 5 <= t < 8 else middle(t)

        return save(self.folder / "leaving.mp4", film(place, clock(19)))

    def crossing(self) -> Path:
        """Two people walk past each other."""
        speed = 14.0
        left = Actor(lambda t: (60 + speed * t, 115.0), width=80, bpm=66.0)
        right = Actor(lambda t: (260 - speed * t, 125.0), width=90, bpm=102.0, skin=(160.0, 112.0, 90.0))
        return save(self.folder / "crossing.mp4", Film((left, right), clock(14)))

    def two(self) -> Path:
        """A small face at 66 bpm beside a larger one at 96."""
        small = Actor(lambda t: (55.0, 80.0), width=62, bpm=66.0)
        large = Actor(lambda t: (190.0, 90.0), width=96, bpm=96.0, skin=(160.0, 112.0, 90.0))
        return save(self.folder / "two.mp4", Film((small, large), clock(10.5), height=180, width=272))

    def tiny(self) -> Path:
        path = self.folder / "tiny.mp4"
        write_video(path, [np.full((16, 16, 3), i % 255, np.uint8) for i in range(60)], 30)
        return path

    def text(self) -> Path:
        return badfiles.text(self.folder / "text.mp4")

    def empty(self) -> Path:
        return badfiles.empty(self.folder / "empty.mp4")

    def sound(self) -> Path:
        return badfiles.sound(self.folder / "sound.mp4")

    def empty_folder(self) -> Path:
        path = self.folder / "empty_folder"
        path.mkdir(exist_ok=True)
        return path

    def no_frames(self) -> Path:
        """A container that is whole, but holds no picture: the header of a file without its clusters."""
        source = save(self.folder / "whole.mkv", film(middle, clock(0.2)))
        data = source.read_bytes()
        path = self.folder / "no_frames.mkv"
        path.write_bytes(data[: data.find(b"\x1f\x43\xb6\x75")])
        return path

    def truncated(self) -> Path:
        source = save(self.folder / "untruncated.mkv", film(middle, clock(13)))
        path = self.folder / "truncated.mkv"
        data = source.read_bytes()
        path.write_bytes(data[: int(0.8 * len(data))])
        return path

    def beheaded(self) -> Path:
        """An MP4 whose index, at its end, is cut off."""
        path = self.folder / "beheaded.mp4"
        data = self.get("face").read_bytes()
        path.write_bytes(data[: len(data) // 2])
        return path

    def huge(self) -> Path:
        return badfiles.huge(self.folder / "huge.avi")

    def no_timestamps(self) -> Path:
        """A bare H.264 stream: pictures without times."""
        import av

        path = self.folder / "bare.h264"
        with av.open(str(self.get("face"))) as source, av.open(str(path), "w", format="h264") as target:
            stream = target.add_stream_from_template(source.streams.video[0])
            for packet in source.demux(video=0):
                if packet.dts is not None:
                    packet.stream = stream
                    target.mux(packet)
        return path


Film_ = Callable[[str], Path]
