"""The work of decoding per picture, beyond that of FFmpeg, as numbers that do not depend on the load.

`tests/session/test_work_per_frame.py` counts the work of the measurement. These tests count that of the
decoder process and of its reader. A second copy of the picture, a conversion to RGB or a message for every
plane exceeds these limits.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from call_counter import count_calls
from phase_rppg.video import write_video
from phase_rppg.video.decode import VideoFile
from phase_rppg.video.decoder_process import serve
from phase_rppg.video.guard import GuardedDecoder
from phase_rppg.video.slot_layout import PlaneLayout, choose_layout

COUNT, SLOTS = 90, 4
HEIGHT, WIDTH = 240, 320
MOST_CALLS_OF_THE_DECODER, MOST_CALLS_OF_THE_READER = 30, 22  # per picture; measured: 24 and 17
MOST_WRITES = 1.1  # of the decoder to its pipe, per picture
MOST_BYTES = 50_000  # of Python memory of the decoder; measured: 16,000; one picture takes 115,200

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the memory is passed as a file descriptor")


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("work") / "video.mp4"
    rng = np.random.default_rng(0)
    write_video(path, (rng.integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8) for _ in range(COUNT)), 30)
    return path


class Pipe(io.RawIOBase):
    """A pipe whose reader keeps up; it counts the writes."""

    writes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        assert isinstance(data, (bytes, memoryview))
        self.writes += 1
        return len(data)


def run_decoder(video: Path, measured: Callable[[Callable[[], None]], float]) -> tuple[float, int]:
    """Run the decoder in this process; return what `measured` finds and the number of writes."""
    with GuardedDecoder(video, {"video": str(video)}) as child:
        layout = choose_layout(child.facts())
    assert isinstance(layout, PlaneLayout)
    pipe, size = Pipe(), SLOTS * layout.slot_bytes
    with tempfile.TemporaryFile() as memory, tempfile.TemporaryFile(buffering=0) as commands:
        memory.truncate(size)
        ring = {"fd": memory.fileno(), "bytes": size, "slots": SLOTS, "planes": True}
        for request in ({"video": str(video)}, ring):
            text = json.dumps(request).encode()
            commands.write(len(text).to_bytes(4, "little") + text)
        commands.write(b"\0" * COUNT)  # every slot is returned at once
        commands.seek(0)
        found = measured(lambda: serve(commands, io.BufferedWriter(pipe)))
        memory.seek(0)
        assert any(memory.read())
    return found, pipe.writes


def calls_per_picture(work: Callable[[], object]) -> float:
    return count_calls(work) / COUNT


def peak_bytes(work: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_calls_and_messages_of_the_decoder(video: Path) -> None:
    calls, writes = run_decoder(video, calls_per_picture)
    assert 0 < calls <= MOST_CALLS_OF_THE_DECODER
    assert COUNT / SLOTS <= writes <= MOST_WRITES * COUNT


def test_the_decoder_copies_no_picture_into_python(video: Path) -> None:
    peak, _ = run_decoder(video, peak_bytes)
    assert 0 < peak < MOST_BYTES


def test_calls_of_the_reader(video: Path) -> None:
    frames = VideoFile(video).frames_without_copy()
    next(frames)  # starts the process
    calls = calls_per_picture(lambda: sum(1 for _ in frames))
    assert 0 < calls <= MOST_CALLS_OF_THE_READER
