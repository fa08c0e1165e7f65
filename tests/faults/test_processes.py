"""Processes that crash, stop or race: what was finished stays, and the next run succeeds."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from datasets import fake_layouts
from faults.table import Row, faults
from phase_rppg.cli import run
from phase_rppg.datasets import cache
from phase_rppg.infer import manifest
from phase_rppg.types import ByteArray
from phase_rppg.video import camera, decode, guard
from phase_rppg.video.encode import write_video

Pictures = list[ByteArray]
pytestmark = pytest.mark.skipif(os.name != "posix", reason="POSIX signals")


@pytest.fixture(scope="session")
def face(pictures: Pictures, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("face") / "face.mp4"
    write_video(path, pictures, 30, crf=14, preset="veryfast")
    return path


def signal_after(monkeypatch: pytest.MonkeyPatch, frames: int, number: int) -> None:
    """Send a signal to the decoder after it delivered some frames; it counts as hung after 1 s."""

    class Attacked(guard.GuardedDecoder):
        def pictures(self, *arguments: Any) -> Any:
            self._hang_s = 1.0
            for count, picture in enumerate(super().pictures(*arguments)):
                yield picture
                if count == frames:
                    os.kill(self._child.pid, number)

    monkeypatch.setattr(decode, "GuardedDecoder", Attacked)


@faults(
    Row("the decoder is killed after 8 s", "a warning; the rate is correct", 0,
        "the reading up to the kill", case=(240, signal.SIGKILL, "crashed")),
    Row("the decoder crashes after 8 s", "a warning; the rate is correct", 0,
        "the reading up to the crash", case=(240, signal.SIGSEGV, "crashed")),
    Row("the decoder stops answering after 8 s", "it is ended after 30 s; a warning; the rate is correct", 0,
        "the reading up to then", case=(240, signal.SIGSTOP, "did not answer")),
    Row("the decoder crashes after 1 s", "a warning; no reading: TOO_SHORT", 3,
        case=(30, signal.SIGSEGV, "crashed")),
)  # fmt: skip
def test_frames_before_a_crash_are_measured(
    row: Row, measure: Any, face: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames, number, words = row.case
    signal_after(monkeypatch, frames, number)
    found = measure(face, "--model", "pos")
    assert found.code == row.exit_code, found
    assert any(words in text for text in found.document["warnings"])
    assert all(abs(bpm - 72) < 3 for bpm in found.rates)
    assert bool(found.rates) == (row.exit_code == 0)


@faults(Row("a program that reads a camera slowly", "old frames are dropped; times stay true", None,
            "the newest frames"))  # fmt: skip
def test_a_slow_reader_of_a_camera_gets_new_frames(row: Row) -> None:
    source = camera.Camera("testsrc=size=64x48:rate=60,realtime", driver="lavfi")
    frames = source.frames()
    times = [next(frames).t_s]
    start_s = time.monotonic()
    while time.monotonic() - start_s < 1.0:
        time.sleep(0.25)
        times.append(next(frames).t_s)
    elapsed_s = time.monotonic() - start_s
    frames.close()  # type: ignore[attr-defined]
    assert source.dropped > 10
    assert elapsed_s - 0.8 < times[-1] - times[0] < elapsed_s + 0.3


BUNDLED = Path(manifest.__file__).parent / "weights"


@faults(
    Row("one changed bit in the weights of a network", "error: damaged or replaced", 4, case="bit"),
    Row("weights that are cut off", "error: damaged or replaced", 4, case="cut"),
    Row("weights that are absent", "error: no such file", 4, case="absent"),
)
def test_tampered_weights_are_refused(row: Row, measure: Any, face: Path, tmp_path: Path) -> None:
    for file in BUNDLED.glob("phasenet-stream.*"):
        shutil.copy(file, tmp_path)
    weights = next(tmp_path.glob("*.onnx"))
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    changed = {"bit": data, "cut": data[:-100], "absent": None}[row.case]
    weights.unlink() if changed is None else weights.write_bytes(changed)
    found = measure(face, "--model", str(tmp_path / "phasenet-stream.json"))
    assert found.code == row.exit_code
    assert found.out == ""
    assert found.err.count("\n") == 1
    assert row.happens.removeprefix("error: ") in found.err


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ubfc")
    fake_layouts.ubfc_rppg(root, fake_layouts.people(2, seconds=2.5))
    return root


def prepare_words(data: Path, store: Path) -> list[str]:
    return ["prepare", "ubfc_rppg", str(data), "--out", str(store), "--size", "16", "--workers", "0"]


@pytest.fixture(scope="module")
def prepared(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("cache")
    assert run(prepare_words(data, store)) == 0
    return store


def corrupt(entry: Path) -> None:
    pixels = next(entry.glob("pixels*"))
    content = bytearray(pixels.read_bytes())
    content[100] ^= 1
    pixels.write_bytes(content)


def shorten(entry: Path) -> None:
    pixels = next(entry.glob("pixels*"))
    os.truncate(pixels, pixels.stat().st_size // 2)


def make_old(entry: Path) -> None:
    values = json.loads((entry / "entry.json").read_text(encoding="utf-8"))
    values["format"] = 0
    (entry / "entry.json").write_text(json.dumps(values), encoding="utf-8")


def lose_description(entry: Path) -> None:
    (entry / "entry.json").unlink()


@faults(
    Row("one changed bit in the prepared data", "`prepare` rebuilds that recording", 0,
        "the other recordings", case=corrupt),
    Row("a prepared recording that is half written", "`prepare` rebuilds that recording", 0,
        "the other recordings", case=shorten),
    Row("a prepared recording in an old format", "`prepare` rebuilds that recording", 0,
        "the other recordings", case=make_old),
    Row("a prepared recording without its description", "`prepare` rebuilds that recording", 0,
        "the other recordings", case=lose_description),
)  # fmt: skip
def test_a_damaged_cache_is_rebuilt_where_it_is_damaged(
    row: Row, data: Path, prepared: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Path(shutil.copytree(prepared, tmp_path / "cache"))
    row.case(next(store.glob("*/subject1-*")))
    assert run(prepare_words(data, store)) == row.exit_code
    out = capfd.readouterr().out
    assert "1 kept" in out
    assert "1 rebuilt" in out or "1 built" in out
    assert [entry.name for entry in cache.open_cache(store, verify=True)] == ["subject1", "subject2"]


@faults(Row("two `prepare` commands write one folder at the same time", "both succeed", 0,
            "each recording once, complete"))  # fmt: skip
def test_two_processes_share_a_cache(row: Row, data: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "phase_rppg", *prepare_words(data, tmp_path / "cache")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    for process in both:
        _, err = process.communicate(timeout=120)
        assert process.returncode == row.exit_code, err
        assert b"Traceback" not in err
    entries = cache.open_cache(tmp_path / "cache", verify=True)
    assert [entry.name for entry in entries] == ["subject1", "subject2"]
    assert not list((tmp_path / "cache").rglob(".building*"))


@faults(
    Row("the clock of the system jumps back by a day while measuring", "measured as usual", 0, "the reading")
)
def test_a_jump_of_the_system_clock_does_not_matter(
    row: Row, measure: Any, face: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_time, calls = time.time, threading.Event()

    def jumping() -> float:
        now_s = true_time() - 86400 * calls.is_set()
        calls.set()
        return now_s

    monkeypatch.setattr(time, "time", jumping)
    found = measure(face, "--model", "pos")
    assert found.code == row.exit_code
    assert all(abs(bpm - 72) < 3 for bpm in found.rates)
