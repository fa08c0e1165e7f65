"""The decoder itself: a script that a child process runs, so that a crash in it harms nobody.

It imports nothing but the standard library and av, to start quickly. `guard.py` is the other end. It is told
what to decode by a JSON order on stdin, says what it found (INFO), is given shared memory by a second order,
and then puts one picture after the other into the slots of that memory (FRAME), waiting for a byte on
stdin when all slots are taken. It ends with DONE or ERROR. An exception that nothing here expects is a
fault of this script: its traceback goes to stderr and the exit code is 1.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import signal
import struct
import sys
from collections.abc import Iterator
from typing import IO, Any

MAX_PIXELS = 8192 * 4320  # per picture: 8K video
MIN_SIDE_PX = 32  # nothing smaller can show a face
ONE_THREAD_PIXELS = 1280 * 720  # up to this size one thread keeps up and costs the least
MAX_DAMAGED_IN_A_ROW = 200  # packets
MAX_MEMORY_BYTES = 6 << 30
OUT_OF_MEMORY = 3  # exit code: the video needs more than MAX_MEMORY_BYTES

MESSAGE = struct.Struct("<cxxxIdI")  # kind, slot, time in s (NaN: unknown), length of the JSON that follows
INFO, FRAME, DONE, ERROR = b"I", b"F", b"D", b"E"


class Refused(Exception):
    """The video cannot be used: (problem, hint)."""


def open_video(path: str) -> tuple[Any, Any]:
    """Open a file and choose its video stream: (container, stream); size limits come first."""
    import av

    try:
        container = open_container(path)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise Refused(
            f"is not a video that can be read ({getattr(error, 'strerror', None) or error})",
            "if it is a recording that was cut off, its index is missing: record or copy it again",
        ) from None
    streams = [s for s in container.streams.video if not s.disposition & av.stream.Disposition.attached_pic]
    if not streams:
        raise Refused("has no video stream", "give a file that holds pictures, not only sound")
    stream = streams[0]
    if stream.codec_context is None:
        raise Refused("uses a codec that is not known here", "convert it to H.264 first")
    width, height = stream.codec_context.width, stream.codec_context.height
    check_size(width, height)
    stream.codec_context.options = {"max_pixels": str(MAX_PIXELS)}
    stream.codec_context.thread_count = 1
    if width * height > ONE_THREAD_PIXELS:
        stream.thread_type = "AUTO"
        stream.codec_context.thread_count = min(
            4, os.cpu_count() or 1
        )  # each thread holds pictures in memory
    return container, stream


def open_container(path: str) -> Any:
    """Open a local file with PyAV; metadata that is not UTF-8 does not matter."""
    import av

    # From version 19 on, PyAV keeps such metadata as surrogate escapes and has no option for it.
    major_version = int(av.__version__.partition(".")[0])
    tolerance = {"metadata_errors": "ignore"} if major_version < 19 else {}
    # Only local files: a playlist inside the file must not reach for the network.
    return av.open(f"file:{path}", options={"protocol_whitelist": "file"}, **tolerance)


def check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise Refused(
            f"has {width}×{height} pixels, more than the {MAX_PIXELS / 1e6:.0f} million we accept",
            "scale it down first",
        )
    if 0 < min(width, height) < MIN_SIDE_PX:
        raise Refused(
            f"has only {width}×{height} pixels",
            f"a face needs a picture of at least {MIN_SIDE_PX} pixels a side",
        )


def facts(stream: Any, container: Any, first: Any) -> dict[str, Any]:
    """What the header and the first picture say, as JSON."""
    duration_s = float(stream.duration * stream.time_base) if stream.duration else None
    if duration_s is None and container.duration and len(container.streams) == 1:
        duration_s = container.duration / 1e6
    rate = stream.average_rate or stream.guessed_rate
    return {
        "width": first.width,
        "height": first.height,
        "rotation": int(first.rotation) % 360,
        "pixel_format": first.format.name,
        "bits": max(c.bits for c in first.format.components),
        "grey": sum(not c.is_alpha for c in first.format.components) == 1 and "pal" not in first.format.name,
        "codec": stream.codec_context.name,
        "fps": float(rate) if rate else None,
        "duration_s": duration_s,
        "frame_count": stream.frames or None,
    }


def video_pictures(container: Any, stream: Any, damage: dict[str, int]) -> Iterator[tuple[Any, float]]:
    """Decoded pictures with their times in s (NaN when the file has none); damaged packets are counted."""
    import av

    in_a_row = 0
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets, None)
            if packet is None:
                return
            pictures = packet.decode()
            in_a_row = 0
        except av.FFmpegError as error:
            damage["packets"] += 1
            in_a_row += 1
            if isinstance(error, EOFError) or in_a_row > MAX_DAMAGED_IN_A_ROW:
                return
            continue
        for picture in pictures:
            if picture is not None:
                yield picture, math.nan if picture.time is None else float(picture.time)


def image_pictures(paths: list[str], damage: dict[str, int]) -> Iterator[tuple[Any, float]]:
    """One picture per image file, in order; a file that cannot be read ends the sequence with a reason."""
    import av

    del damage
    for path in paths:
        try:
            with open_container(path) as container:
                picture = next(container.decode(video=0), None)
        except (av.FFmpegError, OSError, IndexError) as error:
            raise Refused(
                f"image {os.path.basename(path)} cannot be read ({error})", "copy it again"
            ) from None
        if picture is None:
            raise Refused(f"image {os.path.basename(path)} is empty", "copy it again")
        yield picture, math.nan


def read_order(commands: IO[bytes]) -> Any:
    """The next JSON order: four bytes of length, then the text; no order means that we are not needed."""
    size = read_exactly(commands, 4)
    return json.loads(read_exactly(commands, int.from_bytes(size, "little")))


def read_exactly(file: IO[bytes], count: int) -> bytes:
    parts = []
    while count:
        part = file.read(count)
        if not part:
            raise BrokenPipeError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def serve(commands: IO[bytes], answers: IO[bytes]) -> None:
    """Carry out one job: describe, then decode into the shared memory that we are given."""
    from av.video.reformatter import VideoReformatter

    def tell(kind: bytes, content: Any = None, *, slot: int = 0, t_s: float = math.nan) -> None:
        payload = b"" if content is None else json.dumps(content).encode()
        answers.write(MESSAGE.pack(kind, slot, t_s, len(payload)) + payload)
        answers.flush()

    job = read_order(commands)
    damage = {"packets": 0}
    try:
        if "images" in job:
            pictures = image_pictures(job["images"], damage)
            container = stream = None
        else:
            container, stream = open_video(job["video"])
            pictures = video_pictures(container, stream, damage)
        first, first_s = next(pictures, (None, math.nan))
        if first is None and stream is not None and not stream.codec_context.width:
            raise Refused(
                "states a picture size that is not possible", "the header is damaged, or it is too large"
            )
        if first is None:
            raise Refused("holds no picture that can be decoded", "the file may be cut off or damaged")
        check_size(first.width, first.height)
        if stream is None:
            header = {"width": first.width, "height": first.height, "pixel_format": first.format.name}
        else:
            header = facts(stream, container, first)
        tell(INFO, header)

        ring = read_order(commands)
        memory = open_memory(ring)
        slots, picture_bytes = ring["slots"], first.width * first.height * 3
        converter, free, count, last_s = VideoReformatter(), slots, 0, first_s
        picture: Any = first
        while picture is not None:
            if free == 0:
                freed = os.read(commands.fileno(), slots)
                if not freed:
                    return
                free += len(freed)
            rgb = to_rgb(converter, picture, first.width, first.height)
            copy_plane(rgb.planes[0], first.width * 3, first.height, memory, (count % slots) * picture_bytes)
            tell(FRAME, slot=count % slots, t_s=first_s if count == 0 else last_s)
            free, count = free - 1, count + 1
            picture, last_s = next(pictures, (None, last_s))
        tell(DONE, {"damaged_packets": damage["packets"]})
    except Refused as refusal:
        tell(ERROR, {"problem": refusal.args[0], "hint": refusal.args[1]})


def to_rgb(converter: Any, picture: Any, width: int, height: int) -> Any:
    """Convert a picture to 8-bit RGB of the given size."""
    import av

    try:
        return converter.reformat(picture, width, height, "rgb24", threads=1)
    except MemoryError:
        raise
    except av.FFmpegError as error:
        raise Refused(
            f"holds pictures that cannot be converted to RGB ({error.strerror or error})",
            "convert it to H.264 first",
        ) from None


def copy_plane(plane: Any, row_bytes: int, rows: int, memory: mmap.mmap, offset: int) -> None:
    """Copy a picture without the padding at the end of its rows."""
    source, stride = memoryview(plane), plane.line_size
    if stride == row_bytes:
        memory[offset : offset + rows * row_bytes] = source[: rows * row_bytes]
        return
    target = memoryview(memory)
    for row in range(rows):
        start = offset + row * row_bytes
        target[start : start + row_bytes] = source[row * stride : row * stride + row_bytes]


def open_memory(ring: dict[str, Any]) -> mmap.mmap:
    """Map the shared memory: by handle where processes inherit them, by name on Windows."""
    if "tag" in ring:
        return mmap.mmap(-1, ring["bytes"], tagname=ring["tag"])  # type: ignore[call-arg]
    return mmap.mmap(ring["fd"], ring["bytes"])


def limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    except (ImportError, ValueError, OSError):
        pass  # not offered by this system


if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its file names must not shadow anybody's modules
    limit_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the reader, who then ends this process
    try:
        serve(os.fdopen(0, "rb", 0), os.fdopen(os.dup(1), "wb", 1 << 16))
    except BrokenPipeError:
        os._exit(0)  # the other end has what it wanted
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
