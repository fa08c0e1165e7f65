"""A crash or hang of the decoder raises an error after the frames that came before it."""

from __future__ import annotations

import io
import json
import logging
import os
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from phase_rppg.errors import InternalError, VideoError
from phase_rppg.video import decode, decoder_process, guard
from phase_rppg.video.decode import VideoFile
from phase_rppg.video.encode import write_video

pytestmark = pytest.mark.smoke

posix = pytest.mark.skipif(os.name != "posix", reason="signals")


@pytest.fixture
def video(tmp_path: Path) -> Path:
    path = tmp_path / "a.mkv"
    frames = [np.full((64, 64, 3), i, np.uint8) for i in range(60)]
    write_video(path, frames, 30, codec="raw")
    return path


def children(monkeypatch: pytest.MonkeyPatch) -> list[guard.GuardedDecoder]:
    """Return the list of decoders that VideoFile starts from now on."""
    started: list[guard.GuardedDecoder] = []

    class Recorded(guard.GuardedDecoder):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[arg-type]
            started.append(self)

    monkeypatch.setattr(decode, "GuardedDecoder", Recorded)
    return started


@posix
def test_a_crash_becomes_an_error_after_the_frames_that_came(
    video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = children(monkeypatch)
    frames = VideoFile(video).frames()
    shades = [next(frames).rgb[0, 0, 0] for _ in range(3)]
    os.kill(started[0]._child.pid, signal.SIGSEGV)
    with pytest.raises(VideoError, match="SIGSEGV"):
        shades.extend(frame.rgb[0, 0, 0] for frame in frames)
    assert shades == list(range(len(shades)))


RAISES = "raise TypeError('no such option')"
FAULTS = {
    "raises": (RAISES, "TypeError: no such option"),
    "import": ("import no_such_module_of_ours", "ModuleNotFoundError: No module named"),
    "syntax": ("def", "SyntaxError"),
    "exits": ("import sys; sys.exit('odd state')", "odd state"),
    "silent": ("raise SystemExit(7)", "exit code 7"),
    "chatty": (f"import sys; sys.stderr.write('x' * 9_000_000 + chr(10)); {RAISES}", "no such option"),
    "half a message": ("import os; os.write(1, b'I' * 7); raise KeyError('slot')", "KeyError: 'slot'"),
}


def replace_decoder(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    """Let the child process run another script from now on."""
    script = folder / "decoder_of_test.py"
    script.write_text(text)
    monkeypatch.setattr(guard, "DECODER_SCRIPT", script)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_our_own_decoder_is_an_internal_error(
    fault: str, video: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    text, words = FAULTS[fault]
    replace_decoder(monkeypatch, video.parent, text)
    with caplog.at_level(logging.ERROR, "phase_rppg.video"), pytest.raises(InternalError) as caught:
        list(VideoFile(video).frames())
    error = caught.value
    assert error.exit_code == 1
    assert words in str(error)
    assert "\n" not in str(error)
    assert "damaged" not in str(error)
    assert len(error.details) <= guard.KEPT_STDERR_BYTES
    [record] = caplog.records
    assert record.name == "phase_rppg.video"
    assert str(video) in record.getMessage()
    if fault in ("raises", "import", "chatty"):
        for shown in (record.getMessage(), error.details, str(error.__cause__)):
            assert "Traceback" in shown or fault == "chatty"  # its beginning may be cut off
            assert words in shown


def test_an_exception_within_the_real_decoder_is_an_internal_error(
    video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The frames that came before are delivered, and the traceback names the line."""
    changed = Path(decoder_process.__file__).read_text(encoding="utf-8")
    changed = changed.replace(
        "        while picture is not None:\n", "        while count < 5 or picture.no_such:\n"
    )
    replace_decoder(monkeypatch, video.parent, changed)
    shades: list[int] = []
    frames = VideoFile(video).frames()
    with pytest.raises(InternalError, match="AttributeError") as caught:
        shades.extend(int(frame.rgb[0, 0, 0]) for frame in frames)
    assert shades == list(range(5))
    assert "picture.no_such" in caught.value.details


@posix
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_signal_in_the_native_decoder_is_the_files(
    name: str, video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_decoder(monkeypatch, video.parent, f"import os, signal; os.kill(os.getpid(), signal.{name})")
    with pytest.raises(VideoError, match=rf"crashed on this file \({name}\)") as caught:
        list(VideoFile(video).frames())
    assert caught.value.hint


def test_a_lack_of_memory_is_the_files(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = Path(decoder_process.__file__).read_text(encoding="utf-8")
    changed = changed.replace('"""Convert a picture to 8-bit', 'raise MemoryError\n    """')
    replace_decoder(monkeypatch, video.parent, changed)
    with pytest.raises(VideoError, match="6 GiB of memory"):
        list(VideoFile(video).frames())


@posix
def test_a_hang_becomes_an_error(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = children(monkeypatch)
    frames = VideoFile(video).frames()
    next(frames)
    started[0]._hang_s = 0.4
    os.kill(started[0]._child.pid, signal.SIGSTOP)
    before = time.monotonic()
    with pytest.raises(VideoError, match="did not answer"):
        list(frames)
    assert time.monotonic() - before < 5


def test_a_slow_reader_is_not_a_hang(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = children(monkeypatch)
    frames = VideoFile(video).frames()
    next(frames)
    started[0]._hang_s = 1.0
    time.sleep(1.6)
    started[0]._hang_s = 30.0
    assert len(list(frames)) == 59


def test_frames_without_copy_show_the_same_pictures(video: Path) -> None:
    shades = [int(frame.rgb[0, 0, 0]) for frame in VideoFile(video).frames_without_copy()]
    assert shades == list(range(60))


def test_a_long_video_waits_in_a_smaller_ring() -> None:
    """The ring is smaller by the memory of the results, 96 bytes per frame; both processes map it."""
    size = 640 * 480 * 3
    assert guard.ring_slots(size) == guard.ring_slots(size, 1_800) == 8
    for count in (36_000, 54_000, 108_000):
        saved = 2 * size * (8 - guard.ring_slots(size, count))
        assert saved == pytest.approx(96 * count, abs=size)
    assert guard.ring_slots(size, 1 << 31) == 2
    assert guard.ring_slots(3840 * 2160 * 3 // 2) == guard.ring_slots(8192 * 4320 * 3) == 1


def test_a_ring_of_one_slot_delivers_the_same_pictures(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_RING_BYTES", 1)
    shades = [int(frame.rgb[0, 0, 0]) for frame in VideoFile(video).frames_without_copy()]
    assert shades == list(range(60))


def test_no_child_outlives_its_reader(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = children(monkeypatch)
    list(VideoFile(video).frames())
    frames = VideoFile(video).frames()
    next(frames)
    del frames
    never_read = VideoFile(video).frames()
    process = started.pop()._child
    del never_read
    assert process.poll() is not None
    assert len(started) == 2
    assert all(child._child.poll() is not None for child in started)


def test_the_child_imports_only_what_it_needs() -> None:
    text = Path(decoder_process.__file__).read_text(encoding="utf-8")
    top = {
        line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))
    }
    assert top <= set(sys.stdlib_module_names)


class _Picture:
    """A picture of a decoder that counts how many of them exist."""

    alive = 0
    width = height = 64
    time = 0.0
    rotation = 0

    def __init__(self) -> None:
        _Picture.alive += 1

    def __del__(self) -> None:
        _Picture.alive -= 1


def test_no_picture_is_kept_while_the_next_one_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A picture of 4K video takes 12 MB; the decoder has many of its own."""
    kept: list[int] = []

    class Packet:
        def decode(self) -> list[_Picture | None]:
            kept.append(_Picture.alive)
            return [None, _Picture()]

    class Container:
        format = types.SimpleNamespace(name="mov,mp4")

        def demux(self, stream: object) -> Iterator[Packet]:
            return iter([Packet() for _ in range(5)])

    def requests(*contents: dict[str, Any]) -> bytes:
        texts = [json.dumps(content).encode() for content in contents]
        return b"".join(len(text).to_bytes(4, "little") + text for text in texts)

    monkeypatch.setattr(decoder_process, "open_video", lambda _: (Container(), object()))
    monkeypatch.setattr(decoder_process, "describe", lambda *_: {})
    monkeypatch.setattr(decoder_process, "open_memory", lambda _: None)
    monkeypatch.setattr(decoder_process, "RgbCopier", lambda first, memory: lambda picture, offset: None)
    job = requests({"video": "a.mp4"}, {"bytes": 8, "slots": 8, "planes": False})
    decoder_process.serve(io.BytesIO(job), io.BytesIO())
    assert kept == [0] * 5
