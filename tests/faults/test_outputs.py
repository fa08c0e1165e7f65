"""A full or read-only disk, and a camera that is unplugged: one line, and what was finished stays."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.filmset import SIZE, middle
from datasets import fake_layouts
from drawing import Actor, Film, clock
from faults.table import Row, faults
from phase_rppg.cli import run
from phase_rppg.errors import VideoError
from phase_rppg.measurement.live import LiveSession
from phase_rppg.types import ByteArray, Frame, FrameSource
from phase_rppg.video import camera, reconnect
from phase_rppg.video.encode import write_video
from phase_rppg.video.reconnect import CameraLoss

resource = pytest.importorskip("resource", reason="needs POSIX limits")
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1  # of <linux/prctl.h> and <linux/capability.h>


@dataclass(frozen=True)
class Output:
    """A command, the number of bytes that a file may have, and the files that remain."""

    words: Callable[[Path, Path], list[str]]  # of the video or data, and of the output folder
    max_bytes: int = 0
    remain: tuple[str, ...] = ()
    module: str = ""


def measure_words(given: Path, out: Path) -> list[str]:
    return ["measure", str(given / "face.mp4"), "--model", "pos", "--json", "--csv", str(out / "windows.csv")]


def synth_words(given: Path, out: Path) -> list[str]:
    return ["synth", "--out", str(out), "--n", "2", "--seconds", "1", "--size", "32", "--world", "studio"]


def prepare_words(given: Path, out: Path) -> list[str]:
    data = str(given / "data")
    return ["prepare", "ubfc_rppg", data, "--out", str(out), "--size", "16", "--workers", "0"]


def train_words(given: Path, out: Path) -> list[str]:
    changes = ["--set", "optimise.epochs=1", "--set", "data.train.0.count=2"]
    return ["train", "smoke", "--out", str(out), "--quiet", *changes]


def video_words(given: Path, out: Path) -> list[str]:
    return ["synth", "--as", "ubfc_rppg", "--out", str(out), "--n", "1", "--seconds", "2", "--size", "96"]


@pytest.fixture(scope="module")
def given(pictures: list[ByteArray], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a video and a data set that every user may read."""
    root = tmp_path_factory.mktemp("given")
    write_video(root / "face.mp4", pictures[:30], 30, crf=14, preset="veryfast")
    fake_layouts.ubfc_rppg(root / "data", fake_layouts.people(1, seconds=2.5))
    return root


def phase(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "phase_rppg", *words],
        stderr=subprocess.PIPE, text=True, check=False, timeout=240, **options,
    )  # fmt: skip


def assert_one_line(done: subprocess.CompletedProcess[str], row: Row) -> None:
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    assert done.returncode == row.exit_code, done.stderr
    assert len(errors) == 1
    assert errors[0].startswith(row.happens)
    assert "Traceback" not in done.stderr


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@faults(
    Row("a full disk in `phase synth`", "error: cannot write", 4, "the finished parts",
        case=Output(synth_words, max_bytes=50_000, remain=("clips.json",), module="scipy")),
    Row("a full disk in `phase synth --as ubfc_rppg`", "error: cannot write", 4, "the finished recordings",
        case=Output(video_words, max_bytes=5_000, module="scipy")),
    Row("a full disk in `phase prepare`", "error: cannot write", 4, "the finished recordings",
        case=Output(prepare_words, max_bytes=5_000)),
    Row("a full disk in `phase train`", "error: cannot write", 4, "the last complete checkpoint",
        case=Output(train_words, max_bytes=100_000, module="torch")),
)  # fmt: skip
def test_a_full_disk_leaves_no_partial_files(row: Row, given: Path, tmp_path: Path) -> None:
    """No file may grow beyond a limit: the write fails, as on a full disk."""
    if row.case.module:
        pytest.importorskip(row.case.module)
    out = tmp_path / "out"
    out.mkdir()

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (row.case.max_bytes, row.case.max_bytes))

    done = phase(row.case.words(given, out), preexec_fn=limit, stdout=subprocess.PIPE)
    assert_one_line(done, row)
    assert not [path for path in out.rglob(".*") if path.is_file()]
    assert all((out / name).exists() for name in row.case.remain)


@faults(Row("a full disk in `phase measure`", "error: cannot write", 4, "the JSON on standard output",
            case=measure_words))  # fmt: skip
def test_a_file_that_cannot_be_written_does_not_lose_the_json(
    row: Row, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(source: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    assert run(row.case(given, tmp_path)) == row.exit_code
    out, err = capfd.readouterr()
    assert json.loads(out)["video"] == str(given / "face.mp4")
    assert err.startswith(row.happens)
    assert err.count("\n") == 1
    assert files_below(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@faults(Row("a full disk behind standard output", "error: cannot write", 4, case=measure_words))
def test_a_full_standard_output_is_one_line(row: Row, given: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        words = [word for word in row.case(given, tmp_path) if "csv" not in word]
        assert_one_line(phase(words, stdout=full), row)


@pytest.mark.skipif(sys.platform != "linux", reason="drops a capability")
@faults(
    *(Row(f"a read-only folder in `phase {words(Path(), Path())[0]}`", "error: cannot write", 4,
          case=Output(words, module=module))
      for words, module in (
          (measure_words, ""), (synth_words, "scipy"), (prepare_words, ""), (train_words, "torch"))),
)  # fmt: skip
def test_a_read_only_folder_is_one_line(row: Row, given: Path, tmp_path: Path) -> None:
    if row.case.module:
        pytest.importorskip(row.case.module)
    out = tmp_path / "out"
    out.mkdir(mode=0o555)

    def drop_rights() -> None:
        """Give up the right of the superuser to write everywhere."""
        if os.geteuid() == 0:
            ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)

    done = phase(
        row.case.words(given, out), preexec_fn=drop_rights, stdout=subprocess.DEVNULL
    )  # fmt: skip
    assert_one_line(done, row)
    assert files_below(out) == []


def fifo(folder: Path) -> Path:
    os.mkfifo(folder / "fifo.mp4")
    return folder / "fifo.mp4"


@faults(
    Row("a FIFO instead of a video", "error: is a pipe or a device", 4, case=fifo),
    Row("a device instead of a video", "error: is a pipe or a device", 4, case=lambda _: Path("/dev/zero")),
)
def test_a_special_file_is_refused_without_opening_it(row: Row, measure: Any, tmp_path: Path) -> None:
    found: list[Any] = []
    path = row.case(tmp_path)
    worker = threading.Thread(target=lambda: found.append(run(["measure", str(path)])), daemon=True)
    worker.start()
    worker.join(60)
    assert found == [row.exit_code]
    assert row.happens.removeprefix("error: ") in measure(path).err


class Unplugged:
    """A camera that plays a film each time it is opened, and then is unplugged."""

    def __init__(self, films: list[Film]) -> None:
        self.films = films

    def frames(self) -> Iterator[Frame]:
        if not self.films:
            raise KeyboardInterrupt
        yield from self.films.pop(0).frames()
        raise VideoError("camera 0", "was unplugged")


@faults(Row("a camera that is unplugged and plugged in again", "camera lost: was unplugged; reopened", 0,
            "the readings before and after"))  # fmt: skip
def test_a_camera_that_is_unplugged_is_opened_again(
    row: Row, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    frames, now_s = reconnect.reconnecting_frames, [0.0]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    def watch(source: FrameSource) -> Iterator[Frame | CameraLoss]:
        for item in frames(source, sleep=sleep, clock=lambda: now_s[0]):
            now_s[0] = max(now_s[0], item.t_s) if isinstance(item, Frame) else now_s[0]
            yield item

    film = Film((Actor(middle, width=80),), clock(9, 15), **SIZE)  # type: ignore[arg-type]
    monkeypatch.setattr(camera, "parse_camera", lambda text: Unplugged([film, film]))
    monkeypatch.setattr(LiveSession.run, "__defaults__", (watch,))
    words = ["measure", "--camera", "0", "--model", "pos", "--window", "6", "--json"]
    assert run(words) == row.exit_code
    out, err = capfd.readouterr()
    rows = [json.loads(line) for line in out.splitlines()]
    rates = {each["face"]: each["bpm"] for each in rows if each["bpm"] is not None}
    assert len(rates) == 2
    assert all(abs(bpm - 72) < 4 for bpm in rates.values())
    assert err.count("camera lost: was unplugged") == 2
