"""The script of the decoder child process. A crash of the native decoder ends only this process.

It imports only the standard library and av, to start quickly. `guard.py` is the parent side. The protocol:

1. The parent sends a JSON request on stdin with the file to decode.
2. The child answers with the facts of the header (INFO).
3. The parent sends a second request with shared memory. It asks for RGB pictures or for the planes of the
   video.
4. The child writes each picture into a slot of that memory (FRAME). When all slots are in use, it waits for a
   byte on stdin.
5. The child ends with DONE or ERROR.

An unexpected exception is a bug of this script: its traceback goes to stderr and the exit code is 1.
"""

from __future__ import annotations

import gc
import json
import math
import mmap
import os
import signal
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

MAX_PIXELS = 8192 * 4320  # per picture: 8K video
MIN_SIDE_PX = 32  # smaller pictures cannot show a face
ONE_THREAD_PIXELS = 1280 * 720  # up to this size one thread is fast enough
MAX_THREADS = 4
THREAD_PIXELS = 2 * 3840 * 2160  # in the pictures of all threads: each one keeps a few pictures in memory
THREADS_VARIABLE = "PHASE_DECODER_THREADS"  # lowers the number of threads where several workers decode
MAX_DAMAGED_IN_A_ROW = 200  # packets
ASSUMED_FPS = 30.0  # of a file without a frame rate
MAX_MEMORY_BYTES = 6 << 30
PARENT_POLL_S = 0.5
GC_OBJECTS = 25_000  # between two searches for reference cycles, so that none delays the import of av
LIMITED_RANGE, FULL_RANGE, BT601 = 1, 2, 5  # the numbers of FFmpeg
OUT_OF_MEMORY = 3  # exit code: the video needs more than MAX_MEMORY_BYTES

MESSAGE = struct.Struct("<cxxxIdI")  # kind, slot, time in s (NaN: unknown), length of the JSON that follows
INFO, FRAME, DONE, ERROR = b"I", b"F", b"D", b"E"


class UnusableVideo(Exception):
    """The video cannot be used; the arguments are (problem, hint)."""


def open_video(path: str) -> tuple[Any, Any]:
    """Open a file, check its size limits and return (container, video stream)."""
    import av

    try:
        container = open_container(path)
    except (av.FFmpegError, OSError, ValueError) as error:
        raise UnusableVideo(
            f"is not a video that can be read ({getattr(error, 'strerror', None) or error})",
            "an incomplete recording has no index: record or copy it again",
        ) from None
    streams = [s for s in container.streams.video if not s.disposition & av.stream.Disposition.attached_pic]
    if not streams:
        raise UnusableVideo("has no video stream", "the file holds only sound or data")
    stream = streams[0]
    if stream.codec_context is None:
        raise UnusableVideo("uses an unknown codec", "convert it to H.264 first")
    width, height = stream.codec_context.width, stream.codec_context.height
    check_size(width, height)
    stream.codec_context.options = {"max_pixels": str(MAX_PIXELS)}
    threads = thread_count(width * height)
    stream.codec_context.thread_count = threads
    if threads > 1:
        stream.thread_type = "AUTO"
    try:
        # Not left to the first packet: after a failed attempt, PyAV 19 treats the codec as unknown.
        stream.codec_context.open(strict=False)
    except MemoryError:
        raise
    except av.FFmpegError:
        raise no_picture(stream) from None
    return container, stream


def thread_count(pixels: int) -> int:
    """Return the number of threads that decode a video with this many pixels per picture."""
    if pixels <= ONE_THREAD_PIXELS:
        return 1
    given = os.environ.get(THREADS_VARIABLE, "")
    wanted = int(given) if given.isdecimal() and int(given) else os.cpu_count() or 1
    return max(1, min(MAX_THREADS, THREAD_PIXELS // pixels, wanted))


def no_picture(stream: Any) -> UnusableVideo:
    """Return the error for a video without a decodable picture."""
    if stream is not None and not stream.codec_context.width:
        return UnusableVideo("has an invalid picture size", "the header is damaged, or the size is too large")
    return UnusableVideo("holds no picture that can be decoded", "the file may be incomplete or damaged")


def open_container(path: str) -> Any:
    """Open a local file with PyAV; metadata that is not UTF-8 is ignored."""
    import av

    # From version 19 on, PyAV keeps such metadata as surrogate escapes and has no option for it.
    major_version = int(av.__version__.partition(".")[0])
    tolerance = {"metadata_errors": "ignore"} if major_version < 19 else {}
    # Only local files: a playlist inside the file must not access the network.
    return av.open(f"file:{path}", options={"protocol_whitelist": "file"}, **tolerance)


def check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise UnusableVideo(
            f"has {width}×{height} pixels, more than the accepted {MAX_PIXELS / 1e6:.0f} million",
            "reduce its resolution first",
        )
    if 0 < min(width, height) < MIN_SIDE_PX:
        raise UnusableVideo(
            f"has only {width}×{height} pixels",
            f"each side needs at least {MIN_SIDE_PX} pixels",
        )


def describe(stream: Any, container: Any, first: Any) -> dict[str, Any]:
    """Return the facts of the header and the first picture, for JSON."""
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
        "planes": describe_planes(first),
    }


def describe_planes(picture: Any) -> dict[str, Any]:
    """Return the memory layout of the planes of a picture and the numbers of its matrix and range."""
    return {
        "line_sizes": [plane.line_size for plane in picture.planes],
        "widths": [plane.width for plane in picture.planes],
        "heights": [plane.height for plane in picture.planes],
        "matrix": int(picture.colorspace),
        "full_range": int(picture.color_range) == FULL_RANGE or picture.format.name.startswith("yuvj"),
    }


def video_pictures(container: Any, stream: Any, damage: dict[str, int]) -> Iterator[tuple[Any, float]]:
    """Yield pictures with their times in s (NaN if the file has none), and count damaged packets.

    No picture is kept while the next one is decoded, because each may take 12 MB or more.
    """
    import av

    in_a_row = 0
    packets = container.demux(stream)
    timed = with_storage_time(stream) if lacks_picture_times(container, stream) else with_time
    while True:
        try:
            packet = next_packet(packets)
            if packet is None:
                return
            pictures = [picture for picture in packet.decode() if picture is not None]
            in_a_row = 0
        except av.FFmpegError as error:
            damage["packets"] += 1
            in_a_row += 1
            if isinstance(error, EOFError) or in_a_row > MAX_DAMAGED_IN_A_ROW:
                return
            continue
        while pictures:
            yield timed(pictures.pop(0))


def with_time(picture: Any) -> tuple[Any, float]:
    """Return a picture and its presentation time in s, NaN if the file has none."""
    return picture, math.nan if picture.time is None else float(picture.time)


def lacks_picture_times(container: Any, stream: Any) -> bool:
    """Return whether FFmpeg guesses presentation times that are wrong.

    AVI only numbers its packets. For H.264 and HEVC, FFmpeg takes these numbers for the order of the
    pictures, but B-frames are stored in another order.
    """
    return container.format.name == "avi" and stream.codec_context.name in ("h264", "hevc")


def with_storage_time(stream: Any) -> Callable[[Any], tuple[Any, float]]:
    """Return a function that adds the time of the packet which completed a picture.

    The decoder returns pictures in the order of presentation, so these times increase. They are late by the
    delay of the decoder, the same for all pictures.
    """
    step_s = float(1 / (stream.average_rate or ASSUMED_FPS))
    last_s = -step_s

    def timed(picture: Any) -> tuple[Any, float]:
        nonlocal last_s
        # The last pictures come after the last packet.
        last_s = last_s + step_s if picture.dts is None else float(picture.dts * picture.time_base)
        return picture, last_s

    return timed


def next_packet(packets: Iterator[Any]) -> Any:
    """Return the next packet, or None at the end."""
    try:
        return next(packets, None)
    except IndexError:  # PyAV 18 counts streams that appeared during decoding when it flushes the decoders
        return None


def image_pictures(paths: list[str], damage: dict[str, int]) -> Iterator[tuple[Any, float]]:
    """Yield one picture per image file; a file that cannot be read raises UnusableVideo."""
    import av

    del damage
    for path in paths:
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise UnusableVideo(f"image {os.path.basename(path)} is not a regular file", "copy it again")
            with open_container(path) as container:
                context = container.streams.video[0].codec_context
                check_size(context.width, context.height)  # before the picture is decoded
                context.options = {"max_pixels": str(MAX_PIXELS)}
                picture = next(container.decode(video=0), None)
        except (av.FFmpegError, OSError, IndexError) as error:
            raise UnusableVideo(
                f"image {os.path.basename(path)} cannot be read ({error})", "copy it again"
            ) from None
        if picture is None:
            raise UnusableVideo(f"image {os.path.basename(path)} is empty", "copy it again")
        yield picture, math.nan


def read_request(commands: IO[bytes]) -> Any:
    """Read the next JSON request: four bytes of length, then the text."""
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
    """Serve one job: send the facts, then decode into the shared memory."""

    def send(kind: bytes, content: Any = None, *, slot: int = 0, t_s: float = math.nan) -> None:
        payload = b"" if content is None else json.dumps(content).encode()
        answers.write(MESSAGE.pack(kind, slot, t_s, len(payload)) + payload)
        answers.flush()

    job = read_request(commands)
    damage = {"packets": 0}
    try:
        if "images" in job:
            pictures = image_pictures(job["images"], damage)
            container = stream = None
        else:
            container, stream = open_video(job["video"])
            pictures = video_pictures(container, stream, damage)
        first, first_s = next(pictures, (None, math.nan))
        if first is None:
            raise no_picture(stream)
        check_size(first.width, first.height)
        if stream is None:
            header = {"width": first.width, "height": first.height, "pixel_format": first.format.name}
        else:
            header = describe(stream, container, first)
        send(INFO, header)

        ring = read_request(commands)
        memory = open_memory(ring)
        slots, picture_bytes = ring["slots"], ring["bytes"] // ring["slots"]
        copy: Any = PlaneCopier(first, memory) if ring["planes"] else RgbCopier(first, memory)
        free, count, t_s = slots, 0, first_s
        picture: Any = first
        del first
        while picture is not None:
            if free == 0:
                freed = os.read(commands.fileno(), slots)
                if not freed:
                    return
                free += len(freed)
            copy(picture, (count % slots) * picture_bytes)
            send(FRAME, slot=count % slots, t_s=t_s)
            free, count = free - 1, count + 1
            picture = None  # its memory is free before the next one is decoded
            picture, t_s = next(pictures, (None, math.nan))
        send(DONE, {"damaged_packets": damage["packets"]})
    except UnusableVideo as error:
        send(ERROR, {"problem": error.args[0], "hint": error.args[1]})


class RgbCopier:
    """Writes pictures into the shared memory as RGB of the size of the first one."""

    def __init__(self, first: Any, memory: mmap.mmap) -> None:
        from av.video.reformatter import VideoReformatter

        self.width, self.height, self.memory = first.width, first.height, memory
        self.converter = VideoReformatter()

    def __call__(self, picture: Any, offset: int) -> None:
        rgb = reformat(self.converter, picture, self.width, self.height, "rgb24")
        copy_plane(rgb.planes[0], self.width * 3, self.height, self.memory, (offset, self.width * 3))


class PlaneCopier:
    """Writes the planes of pictures into the shared memory, in the layout of the first picture."""

    def __init__(self, first: Any, memory: mmap.mmap) -> None:
        from av.video.reformatter import VideoReformatter

        self.kind, self.memory = picture_kind(first), memory
        self.width, self.height, self.pixel_format = first.width, first.height, first.format.name
        self.layout = describe_planes(first)
        self.to_rgb, self.to_planes = VideoReformatter(), VideoReformatter()

    def __call__(self, picture: Any, offset: int) -> None:
        if picture_kind(picture) != self.kind:
            picture = self.like_first(picture)
        layout = self.layout
        for plane, stride, width, rows in zip(
            picture.planes, layout["line_sizes"], layout["widths"], layout["heights"], strict=True
        ):
            copy_plane(plane, width, rows, self.memory, (offset, stride))
            offset += stride * rows

    def like_first(self, picture: Any) -> Any:
        """Convert a picture to the size, format, matrix and range of the first one."""
        rgb = reformat(self.to_rgb, picture, self.width, self.height, "rgb24")
        matrix = {0: BT601, 2: BT601, 6: BT601}.get(self.layout["matrix"], self.layout["matrix"])
        return reformat(
            self.to_planes,
            rgb,
            self.width,
            self.height,
            self.pixel_format,
            dst_colorspace=matrix,
            dst_color_range=FULL_RANGE if self.layout["full_range"] else LIMITED_RANGE,
        )


def picture_kind(picture: Any) -> tuple[Any, ...]:
    """Return what must be equal for two pictures to have the same layout and colours."""
    return (picture.width, picture.height, picture.format.name, picture.colorspace, picture.color_range)


def reformat(converter: Any, picture: Any, width: int, height: int, pixel_format: str, **colours: int) -> Any:
    """Convert a picture to 8-bit values of the given size and format."""
    import av

    try:
        return converter.reformat(picture, width, height, pixel_format, threads=1, **colours)
    except MemoryError:
        raise
    except av.FFmpegError as error:
        raise UnusableVideo(
            f"holds pictures that cannot be converted to RGB ({error.strerror or error})",
            "convert it to H.264 first",
        ) from None


def copy_plane(plane: Any, row_bytes: int, rows: int, memory: mmap.mmap, to: tuple[int, int]) -> None:
    """Copy a plane to (offset, stride); without different strides this is one copy, padding included."""
    (offset, target_stride), stride = to, plane.line_size
    source = memoryview(plane)
    if stride == target_stride:
        count = (rows - 1) * stride + row_bytes
        memory[offset : offset + count] = source[:count]
        return
    target = memoryview(memory)
    for row in range(rows):
        start = offset + row * target_stride
        target[start : start + row_bytes] = source[row * stride : row * stride + row_bytes]


def open_memory(ring: dict[str, Any]) -> mmap.mmap:
    """Map the shared memory, by file descriptor on POSIX systems and by name on Windows."""
    if "tag" in ring:
        return mmap.mmap(-1, ring["bytes"], tagname=ring["tag"])  # type: ignore[call-arg]
    return mmap.mmap(ring["fd"], ring["bytes"])


def limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    except (ImportError, ValueError, OSError):
        pass  # this system has no such limit


def exit_with_parent(parent: int) -> None:
    """End this process soon after its parent was killed, also during a long call of the decoder.

    Not by `PR_SET_PDEATHSIG`: that signal comes when the thread ends that started this process.
    """

    def watch() -> None:
        while os.getppid() == parent:  # an orphan gets another parent
            time.sleep(PARENT_POLL_S)
        os._exit(0)

    if os.name == "posix":
        threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    gc.set_threshold(GC_OBJECTS)
    sys.path.pop(0)  # this folder: its files must not shadow other modules
    limit_memory()
    exit_with_parent(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles the interrupt and ends this process
    try:
        serve(os.fdopen(0, "rb", 0), os.fdopen(os.dup(1), "wb", 1 << 16))
    except BrokenPipeError:
        os._exit(0)  # the parent needs no more pictures
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
